"""Which nodes are told of: out of service at two readings, not for what ends by itself, and back only when Slurm says so."""

import pytest

from programs.notify.nodes import Known, Reading, first_known, plan_changes, read_nodes
from slurm.check_results import FAILED, CheckResult, Failure, with_result
from slurm.reasons import BEFORE_JOBS, POD_STOPPING, RESUME_FAILED, SCALE_IN, UPDATE
from slurm.scontrol import AnswerError
from tests.unit.programs.notify.examples import BETWEEN, sinfo

FAN = {"StateComplete": "idle+drain", "Reason": "fan", "User": "root(0)"}


def reading(*lines: dict[str, str]) -> Reading:
    return read_nodes(sinfo(*lines), BETWEEN)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param({}, None, id="in-service"),
        pytest.param(FAN, "fan", id="drained"),
        pytest.param({**FAN, "StateComplete": "mixed+drain"}, "fan", id="draining"),
        pytest.param({"StateComplete": "down+not_responding", "Reason": "Not responding"}, "Not responding", id="down"),
        pytest.param({"StateComplete": "strange"}, "", id="unknown-state"),
        pytest.param({**FAN, "Reason": "fan : Not responding"}, "fan", id="what-slurmctld-appended"),
        pytest.param({**FAN, "Reason": SCALE_IN}, None, id="scale-in"),
        pytest.param({**FAN, "Reason": POD_STOPPING}, None, id="pod-stops"),
        pytest.param({**FAN, "Reason": BEFORE_JOBS}, None, id="waits-for-its-checks"),
        pytest.param({"StateComplete": "idle+cloud+powered_down"}, None, id="off"),
        pytest.param({"StateComplete": "down+cloud+powered_down", "Reason": f"fan : {RESUME_FAILED}"}, "fan", id="did-not-come-up"),
    ],
)
def test_nodes_out_of_service_have_their_reason(line: dict[str, str], reason: str | None) -> None:
    found = reading(line).faults.get("gpu-0")
    assert (found.reason if found else None) == reason


def test_checks_that_failed_beside_the_reason_are_evidence() -> None:
    at = "2027-01-15T08:00:00Z"
    extra = with_result("", "disk", CheckResult(FAILED, at, Failure(at, "sda is full")))
    assert extra is not None
    found = reading({**FAN, "Extra": extra}).faults["gpu-0"]
    assert (found.by, found.evidence) == ("root", ("check disk failed: sda is full",))


def test_node_of_several_partitions_has_them_all() -> None:
    assert reading({}, {"Partition": "more"}).partitions == {"gpu-0": {"gpu", "more"}}


@pytest.mark.parametrize("text", ["", "gpu-0 idle", sinfo({}) + "x"], ids=["empty", "words", "more"])
def test_answer_that_is_not_made_of_rows_is_refused(text: str) -> None:
    with pytest.raises(AnswerError, match="not rows"):
        read_nodes(text, BETWEEN)


def test_node_is_told_at_the_second_reading_and_once() -> None:
    known = first_known(reading({}))
    out: list[bool] = []
    for _ in range(4):
        changes, known = plan_changes(known, reading(FAN))
        out.append(bool(changes.out))
    assert out == [False, True, False, False]
    changes, known = plan_changes(known, reading({}))
    assert (changes.back, known) == ({"gpu-0": "fan"}, Known({}))


def test_another_cause_is_told_as_well() -> None:
    known = Known({"gpu-0": "fan"})
    changes, known = plan_changes(known, reading({**FAN, "Reason": "disk"}))
    assert not changes.out
    changes, known = plan_changes(known, reading({**FAN, "Reason": "disk"}))
    assert changes.out["gpu-0"].reason == "disk"
    assert plan_changes(known, reading({}))[0].back == {"gpu-0": "disk"}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param({}, [FAN, {}, FAN, {}], id="for-one-reading-only"),
        pytest.param(FAN, [FAN, FAN], id="before-the-first-reading"),
        pytest.param(FAN, [{"NodeList": "other"}], id="removed-from-the-cluster"),
        pytest.param(FAN, [{**FAN, "StateComplete": "idle+cloud+drain+powering_down"}], id="powered-down-while-drained"),
        pytest.param(FAN, [{**FAN, "Reason": UPDATE}], id="replaced-while-drained"),
    ],
)
def test_no_news_are_not_told(first: dict[str, str], then: list[dict[str, str]]) -> None:
    known = first_known(reading(first))
    for each in then:
        changes, known = plan_changes(known, reading(each))
        assert not changes.out
        assert not changes.back
