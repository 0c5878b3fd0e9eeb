"""What checks note in a node's `Extra`: what stays, what goes, and whose field it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.check_results import (
    FAILED,
    PASSED,
    SKIPPED,
    UNKNOWN,
    CheckResult,
    Driver,
    Failure,
    failures,
    following,
    read_results,
    seen_on,
    with_result,
)
from slurm.instances import instance, read_instance

AT, BEFORE = "2026-01-02T03:04:05Z", "2026-01-01T00:00:00Z"
FULL = Failure(BEFORE, "full", "node")
texts = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
results = st.builds(
    CheckResult,
    st.sampled_from([PASSED, FAILED, UNKNOWN]),
    texts,
    st.none()
    | st.builds(Failure, texts, texts, st.sampled_from(["node", "hardware"]), st.booleans(), wish=st.sampled_from(["drain", "reboot"]))
    | st.builds(Failure, texts, texts, drains=st.just(False), wish=st.just("none"))
    | st.builds(Failure, texts, texts, machine=texts.filter(bool), seen=texts),
    st.none() | st.builds(Driver, st.from_regex(r"[0-9][0-9.]{0,20}", fullmatch=True), st.integers(0, 9)),
)


@given(st.dictionaries(texts, results), st.dictionaries(st.sampled_from(["rack", "row"]), st.integers()))
def test_what_is_written_is_read_again_and_keys_of_others_stay(written: dict[str, CheckResult], others: dict[str, int]) -> None:
    extra = json.dumps(others)
    for name, result in written.items():
        extra = with_result(extra, name, result) or pytest.fail("a field of our own was refused")
    expected = {
        name: CheckResult(FAILED, each.at, Failure(each.at, "what it found is in the log of its run"), each.driver)
        if each.result == FAILED and each.failure is None
        else each
        for name, each in written.items()
    }
    assert read_results(extra) == expected
    assert {key: value for key, value in json.loads(extra).items() if key != "slipway"} == others


@pytest.mark.parametrize(
    "extra", [pytest.param("rack 7", id="text"), pytest.param("[1]", id="list"), pytest.param('{"slipway":"mine"}', id="their-own-key")]
)
def test_field_of_somebody_else_is_neither_read_nor_written(extra: str) -> None:
    assert read_results(extra) is None
    assert with_result(extra, "disk", CheckResult(PASSED, AT)) is None


@pytest.mark.parametrize(
    ("given", "read"),
    [
        pytest.param({"result": "passed", "at": AT}, CheckResult(PASSED, AT), id="passed"),
        pytest.param(
            {"result": "failed", "at": AT},
            CheckResult(FAILED, AT, Failure(AT, "what it found is in the log of its run")),
            id="failed-as-earlier-releases-wrote-it",
        ),
        pytest.param(
            {"result": "failed", "at": AT, "failure": {"since": AT, "found": "x", "kind": "surprise", "drains": True}},
            CheckResult(FAILED, AT, Failure(AT, "x", "node")),
            id="kind-that-is-not-known-here",
        ),
        pytest.param(
            {"result": "failed", "at": AT, "failure": {"since": AT, "found": "x", "kind": "node", "drains": True, "wish": "repaint"}},
            CheckResult(FAILED, AT, Failure(AT, "x", "node")),
            id="wish-that-is-not-known-here",
        ),
        pytest.param(
            {"result": "failed", "at": AT, "failure": {"since": AT, "found": "x", "kind": "node", "drains": True, "wish": "none"}},
            CheckResult(FAILED, AT, Failure(AT, "x", "node", drains=False, wish="none")),
            id="without-a-wish-nothing-is-drained",
        ),
        pytest.param({"result": "passed", "at": AT, "driver": {"version": "x" * 41}}, CheckResult(PASSED, AT), id="no-version"),
        pytest.param({"result": "passed", "at": AT, "driver": "550"}, CheckResult(PASSED, AT), id="no-driver"),
        pytest.param({"result": "passed"}, None, id="no-time"),
        pytest.param("passed", None, id="no-object"),
    ],
)
def test_one_result_is_read_or_left_out(given: object, read: CheckResult | None) -> None:
    assert read_results(json.dumps({"slipway": {"disk": given}})) == ({} if read is None else {"disk": read})


@pytest.mark.parametrize(
    ("before", "result", "failure"),
    [
        pytest.param(None, FAILED, Failure(AT, "new"), id="first-failure"),
        pytest.param(CheckResult(FAILED, BEFORE, FULL), FAILED, Failure(BEFORE, "new"), id="failure-goes-on-since-the-first"),
        pytest.param(CheckResult(FAILED, BEFORE, FULL), UNKNOWN, FULL, id="unknown-ends-no-failure"),
        pytest.param(CheckResult(UNKNOWN, BEFORE, FULL), UNKNOWN, FULL, id="unknown-again-ends-none-either"),
        pytest.param(CheckResult(UNKNOWN, BEFORE, FULL), PASSED, None, id="pass-ends-it"),
        pytest.param(CheckResult(PASSED, BEFORE), UNKNOWN, None, id="unknown-is-no-failure"),
    ],
)
def test_failure_stays_until_the_check_has_passed(before: CheckResult | None, result: str, failure: Failure | None) -> None:
    assert following(before, result, "new", AT, "node", True) == CheckResult(result, AT, failure)
    assert failures({"disk": following(before, result, "new", AT, "node", True)}) == ({"disk": failure} if failure else {})


def test_failure_of_a_flapping_check_ends_after_passes_in_a_row_alone() -> None:
    kept: CheckResult | None = None
    seen: list[bool] = []
    for result in (FAILED, PASSED, FAILED, PASSED, PASSED, UNKNOWN, FAILED, PASSED, PASSED, PASSED, PASSED):
        kept = following(kept, result, "new", AT, "node", True, passes=3)
        again = read_results(with_result("", "disk", kept) or "")
        assert again == {"disk": kept}  # a collector that starts again counts on
        seen.append(kept.failure is not None)
    assert seen == [True] * 9 + [False] * 2


def test_skipped_check_keeps_its_failure() -> None:
    """A card that falls off the bus leaves nothing to look at."""
    before = CheckResult(FAILED, BEFORE, FULL)
    assert following(before, SKIPPED, "new", AT, "node", True) == CheckResult(SKIPPED, AT, FULL)


OLD, NEW = instance("m-1", "b-1\n"), instance("m-2", "b-2")
HERE = CheckResult(FAILED, BEFORE, Failure(BEFORE, "full", machine=OLD, seen=BEFORE))


@pytest.mark.parametrize(
    ("before", "result", "machine", "seen_at"),
    [
        pytest.param(None, FAILED, OLD, (OLD, AT), id="first-failure"),
        pytest.param(HERE, FAILED, OLD, (OLD, BEFORE), id="seen-there-again"),
        pytest.param(HERE, FAILED, NEW, (NEW, AT), id="seen-on-the-next-machine"),
        pytest.param(HERE, UNKNOWN, NEW, (OLD, BEFORE), id="unknown-on-the-next-machine"),
        pytest.param(HERE, SKIPPED, NEW, (OLD, BEFORE), id="skipped-on-the-next-machine"),
        pytest.param(HERE, PASSED, NEW, (OLD, BEFORE), id="one-pass-of-two-on-the-next-machine"),
        pytest.param(CheckResult(FAILED, BEFORE, FULL), FAILED, NEW, (NEW, AT), id="a-note-of-an-earlier-release"),
        pytest.param(CheckResult(FAILED, BEFORE, FULL), FAILED, "", ("", ""), id="a-worker-of-an-earlier-release"),
    ],
)
def test_failure_keeps_the_machine_on_which_it_was_last_seen(
    before: CheckResult | None, result: str, machine: str, seen_at: tuple[str, str]
) -> None:
    after = seen_on(machine, before, following(before, result, "full", AT, "node", True, passes=2)).failure
    assert after is not None
    assert (after.since, after.machine, after.seen) == (AT if before is None else BEFORE, *seen_at)


def test_failure_that_drains_no_node_is_alike_on_all_machines() -> None:
    spared = {seen_on(machine, None, following(None, FAILED, "full", AT, "node", False)) for machine in (OLD, NEW)}
    assert spared == {CheckResult(FAILED, AT, Failure(AT, "full", drains=False))}
    [before] = spared
    assert seen_on(NEW, before, following(before, FAILED, "full", AT, "node", True)).failure == Failure(AT, "full", machine=NEW, seen=AT)


def test_instance_has_the_kubernetes_node_and_its_boot_or_is_empty() -> None:
    assert (read_instance(OLD), read_instance(instance("", "b-1")), read_instance("i-0abc")) == (("m-1", "b-1"), ("", ""), ("i-0abc", ""))


DEEP = "[" * 100_000
OTHER = json.dumps({"result": PASSED, "at": AT})
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from([*Failure.__match_args__, "failure", "passedFor"]), each),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "extra", [pytest.param(DEEP, id="text"), pytest.param(f'{{"slipway":{DEEP}', id="cut"), '{"a":' * 5_000 + "1" + "}" * 5_000]
)
def test_lists_in_lists_without_end_are_somebody_elses_field(extra: str) -> None:
    assert read_results(extra) is None
    assert with_result(extra, "disk", CheckResult(PASSED, AT)) is None


@pytest.mark.parametrize(
    "result",
    [
        pytest.param('{"result":"failed","at":"","failure":{"since":"","found":"","kind":"","drains":true,"passes":1e400}}', id="infinite"),
        pytest.param('{"result":"failed","at":"","failure":{"since":"","found":"","kind":"","drains":true,"passes":NaN}}', id="no-number"),
        pytest.param('{"result":"failed","at":"","failure":[1]}', id="list"),
        pytest.param('{"result":"failed"}', id="no-time"),
        pytest.param("7", id="number"),
    ],
)
def test_result_that_cannot_be_read_hides_no_other(result: str) -> None:
    assert read_results(f'{{"slipway":{{"disk":{result},"gpu":{OTHER}}}}}') == {"gpu": CheckResult(PASSED, AT)}


def test_driver_with_an_infinite_number_is_none() -> None:
    extra = f'{{"slipway":{{"gpu":{{"result":"passed","at":"{AT}","driver":{{"version":"550","drains":1e400}}}}}}}}'
    assert read_results(extra) == {"gpu": CheckResult(PASSED, AT)}


@given(JSON, JSON)
def test_no_extra_ends_its_reader(result: object, failure: object) -> None:
    given_result = {"result": FAILED, "at": AT, "failure": failure, "driver": result, "passedFor": result}
    for extra in (result, {"slipway": result}, {"slipway": {"disk": result}}, {"slipway": {"disk": given_result}}):
        read_results(json.dumps(extra))
