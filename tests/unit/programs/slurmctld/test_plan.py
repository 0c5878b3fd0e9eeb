"""What slurmctld starts with, and what follows from a look at it."""

import pytest

from programs.slurmctld.plan import (
    Files,
    Found,
    Step,
    Watch,
    cannot_read_files,
    is_key_due,
    is_to_forget,
    must_await_key,
    plan_files,
    plan_look,
    setting,
    unready_nodes,
)


@pytest.mark.parametrize(
    ("has_before", "copy", "files"),
    [
        pytest.param(False, Found.MISSING, Files.OFFERED, id="first-start"),
        pytest.param(False, Found.READABLE, Files.KEPT, id="as-ever"),
        pytest.param(False, Found.UNREADABLE, Files.NONE, id="unreadable-is-not-missing"),
        pytest.param(True, Found.READABLE, Files.BEFORE, id="killed-while-slurmctld-read-it"),
        pytest.param(True, Found.MISSING, Files.BEFORE, id="killed-and-gone"),
        pytest.param(True, Found.UNREADABLE, Files.BEFORE, id="killed-and-unreadable"),
    ],
)
def test_files_of_a_start(has_before: bool, copy: Found, files: Files) -> None:
    assert plan_files(has_before, copy) is files


@pytest.mark.parametrize(
    ("has_accounting", "saved", "is_gone"),
    [
        pytest.param(True, {"clustername"}, True, id="ended-before-it-saved"),
        pytest.param(True, {"clustername", "assoc_usage"}, False, id="saved"),
        pytest.param(True, {"clustername", "assoc_usage.old"}, False, id="killed-while-it-saved"),
        pytest.param(True, {"job_state"}, False, id="no-cluster-name"),
        pytest.param(False, {"clustername"}, False, id="no-accounting"),
    ],
)
def test_name_of_the_cluster_goes_only_where_usage_was_never_saved(has_accounting: bool, saved: set[str], is_gone: bool) -> None:
    assert is_to_forget(has_accounting, frozenset(saved)) is is_gone


def test_setting_is_that_of_the_last_line() -> None:
    text = "StateSaveLocation=/a\nAccountingStorageType=\n#StateSaveLocation=/no\nStateSaveLocation=/b c\n"
    assert [setting(text, key) for key in ("StateSaveLocation", "AccountingStorageType", "Location")] == ["/b c", "", ""]


@pytest.mark.parametrize(
    ("last", "own", "waits"),
    [
        pytest.param("", "a", False, id="first-start"),
        pytest.param("a", "a", False, id="same-key"),
        pytest.param("a", "b", True, id="new-pod-with-another-key"),
    ],
)
def test_new_pod_with_another_key_waits_for_the_others(last: str, own: str, waits: bool) -> None:
    assert must_await_key(last, own) is waits


@pytest.mark.parametrize(
    ("since", "is_due"),
    [pytest.param(None, False, id="none"), pytest.param(881.0, False, id="new"), pytest.param(880.0, True, id="in-all-pods")],
)
def test_key_is_due_when_all_kubelets_had_their_time(since: float | None, is_due: bool) -> None:
    assert is_key_due(since, 1000, 120) is is_due


@pytest.mark.parametrize(
    ("watch", "is_there", "is_stopping", "is_due", "step", "after"),
    [
        pytest.param(Watch(), True, False, False, Step.WATCH, Watch(), id="runs"),
        pytest.param(Watch(9), True, False, False, Step.WATCH, Watch(), id="back-after-a-reconfigure"),
        pytest.param(Watch(), True, False, True, Step.CHANGE_KEY, Watch(), id="key-is-due"),
        pytest.param(Watch(), True, True, True, Step.TELL, Watch(0, True), id="stop-goes-before-a-key"),
        pytest.param(Watch(0, True), True, True, True, Step.WATCH, Watch(0, True), id="told-once"),
        pytest.param(Watch(0, True), False, True, False, Step.LEAVE, Watch(0, True), id="has-stopped"),
        pytest.param(Watch(3), False, True, False, Step.LEAVE, Watch(3), id="stopped-while-it-was-away"),
        pytest.param(Watch(), False, False, True, Step.WATCH, Watch(1), id="away"),
        pytest.param(Watch(8), False, False, False, Step.WATCH, Watch(9), id="long-away"),
        pytest.param(Watch(9), False, False, False, Step.FAIL, Watch(10), id="ended"),
    ],
)
def test_look(watch: Watch, is_there: bool, is_stopping: bool, is_due: bool, step: Step, after: Watch) -> None:
    assert plan_look(watch, is_there, is_stopping, is_due) == (step, after)


@pytest.mark.parametrize(
    ("age_s", "is_new", "cannot"),
    [
        pytest.param(6, True, True, id="new-slurm-that-ends-at-once"),
        pytest.param(6, False, False, id="the-same-slurm"),
        pytest.param(16, True, False, id="new-slurm-that-ran"),
    ],
)
def test_files_are_given_up_only_for_a_new_slurm_that_ends_at_its_start(age_s: float, is_new: bool, cannot: bool) -> None:
    assert cannot_read_files(age_s, is_new) is cannot


def test_nodes_on_their_way_up_are_those_with_a_mark() -> None:
    states = "allocated gpu-0\nmixed# el-1\nallocated~ el-0\nmixed# el-1\ncompleting* gpu-3\nmixed- gpu-4\nallocated% el-5\nmixed! el-6\n"
    assert unready_nodes(states) == ["el-0", "el-1", "el-5", "el-6", "gpu-3"]
    assert unready_nodes("") == []
