"""What becomes of what checks beside jobs have found: notes, drains and answers, against a Slurm in memory."""

import json
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace

import pytest

from programs.node_checks.collect import Answer, Collector, Reply, Waiting, one_round
from programs.node_checks.collect_plan import Found, Report, ReportError, plan_collect, plan_renewal, read_report
from slurm.check_results import FAILED, PASSED, SKIPPED, UNKNOWN, CheckResult, Driver, Failure, failures, read_results, with_result
from slurm.commands import SlurmError
from slurm.retelling import RENEW_AFTER_S, RENEW_EVERY_S
from slurm.scontrol import Node
from slurm.states import node_state
from tests.support.programs.node_checks.fake import FakeSlurm

AT, EARLIER = "2026-01-02T03:04:05Z", "2026-01-01T00:00:00Z"
GONE = Failure(EARLIER, "/home is not mounted")
FAILS = CheckResult(FAILED, EARLIER, GONE)
MINE = '{"mine": 1}'


def node(name: str, *state: str, extra: str = "", reason: str = "") -> Node:
    return Node(name, node_state(state or ("IDLE", "CLOUD")), reason, "", ("main",), extra)


def noted(result: CheckResult, extra: str = "") -> str:
    return with_result(extra, "mounts", result) or ""


def found(result: str, text: str = "/home is not mounted", most: int = 2) -> Found:
    return Found("mounts", result, text, "node", most)


def report(name: str, result: str, context: str = "interval", job: str = "", most: int = 2) -> Report:
    return Report(name, context, job, (found(result, most=most),))


def slurm_of(*nodes: Node) -> FakeSlurm:
    return FakeSlurm({each.name: each for each in nodes}, {})


def take(slurm: FakeSlurm, *reports: Report) -> list[tuple[str, ...]]:
    return [reply.refused for reply in replies(Collector(slurm, lambda _: None), *reports)]


def replies(collector: Collector, *reports: Report) -> list[Reply]:
    """Of a round in which Slurm refuses nothing."""
    taken = collector.take(reports)
    assert not [each for each in taken if isinstance(each, SlurmError)]
    return [each for each in taken if isinstance(each, Reply)]


def noted_on(slurm: FakeSlurm, name: str) -> CheckResult | None:
    return (read_results(slurm.known[name].extra) or {}).get("mounts")


def test_failure_on_another_machine_is_news_and_has_that_machine() -> None:
    there = noted(CheckResult(FAILED, EARLIER, Failure(EARLIER, GONE.found, machine="m-1/b-1", seen=EARLIER)))
    same, other = (replace_instance(node(name, extra=there), machine) for name, machine in (("n-0", "m-1/b-1"), ("n-1", "m-2/b-2")))
    plan = plan_collect([report("n-0", FAILED), report("n-1", FAILED)], {"n-0": same, "n-1": other}, {}, AT)
    [(text, names)] = plan.extras.items()
    failure = failures(read_results(text) or {})["mounts"]
    assert (names, failure.machine, failure.seen, failure.since) == (("n-1",), "m-2/b-2", AT, EARLIER)


def replace_instance(known: Node, machine: str) -> Node:
    return Node(known.name, known.state, known.reason, "", known.partitions, known.extra, instance=machine)


@pytest.mark.parametrize(
    ("before", "result", "after"),
    [
        pytest.param("", PASSED, CheckResult(PASSED, AT), id="first-pass"),
        pytest.param("", FAILED, CheckResult(FAILED, AT, Failure(AT, GONE.found)), id="first-failure"),
        pytest.param(noted(FAILS), PASSED, CheckResult(PASSED, AT), id="pass-after-a-failure"),
        pytest.param(noted(FAILS), FAILED, FAILS, id="same-failure-is-not-written-again"),
        pytest.param(noted(FAILS), UNKNOWN, CheckResult(UNKNOWN, AT, GONE), id="unknown-ends-no-failure"),
        pytest.param(noted(CheckResult(PASSED, EARLIER)), PASSED, CheckResult(PASSED, EARLIER), id="same-pass-is-not-written-again"),
        pytest.param(MINE, PASSED, CheckResult(PASSED, AT), id="other-keys-stay"),
    ],
)
def test_result_is_noted_where_it_is_news(before: str, result: str, after: CheckResult) -> None:
    nodes = {"gpu-0": node("gpu-0", extra=before)}
    plan = plan_collect([report("gpu-0", result)], nodes, {}, AT)
    written = {name: text for text, names in plan.extras.items() for name in names}
    extra = written.get("gpu-0", before)
    assert (read_results(extra) or {})["mounts"] == after
    assert ("mine" in extra) == (before == MINE)
    assert bool(written) == bool(plan.changed)
    assert (plan.drains, plan.refused) == ({}, ((),))


def test_driver_is_noted_once_and_kept_by_a_look_that_does_not_meet_it() -> None:
    met = {"check": "mounts", "result": PASSED, "found": "2 GPUs", "kind": "node", "maxDrained": 2, "driver": {"version": "550.90.07"}}
    told = read_report(json.dumps({"node": "gpu-0", "context": "interval", "job": "", "results": [met]}).encode())
    slurm = slurm_of(node("gpu-0"))
    take(slurm, told)
    take(slurm, told)
    take(slurm, report("gpu-0", UNKNOWN))
    assert slurm.log == [("record", "gpu-0")] * 2
    noted_now = noted_on(slurm, "gpu-0")
    assert noted_now is not None
    assert (noted_now.result, noted_now.driver) == (UNKNOWN, Driver("550.90.07"))
    take(slurm, replace(told, found=(replace(told.found[0], driver=Driver("560.35.03", 1)),)))
    noted_now = noted_on(slurm, "gpu-0")
    assert noted_now is not None
    assert noted_now.driver == Driver("560.35.03", 1)


@pytest.mark.parametrize(
    ("state", "reason", "drains"),
    [
        pytest.param(("MIXED", "CLOUD"), "", True, id="takes-jobs"),
        pytest.param(("MIXED", "CLOUD", "DRAIN"), "fan is loud", False, id="administrator-has-drained-it"),
        pytest.param(("DOWN",), "no power", False, id="down"),
        pytest.param(("MIXED", "CLOUD", "POWERING_UP"), "", False, id="wakes-for-a-job"),
    ],
)
def test_job_whose_prolog_fails_does_not_start_there(state: tuple[str, ...], reason: str, drains: bool) -> None:
    slurm = slurm_of(node("gpu-0", *state, reason=reason))
    assert take(slurm, report("gpu-0", FAILED, "prolog", "12")) == [("mounts",)]
    assert slurm.remarks == {"12": "did not start on gpu-0: check mounts: /home is not mounted"}
    assert (slurm.known["gpu-0"].reason == "slipway: check mounts: /home is not mounted") == drains
    assert slurm.known["gpu-0"].reason == (reason or slurm.known["gpu-0"].reason)


@pytest.mark.parametrize("extra", [pytest.param("", id="noted"), pytest.param("rack 7", id="no-room-for-a-note")])
def test_job_starts_where_the_check_that_fails_has_the_wish_none(extra: str) -> None:
    slurm = slurm_of(node("gpu-0", "MIXED", extra=extra))
    told = report("gpu-0", FAILED, "prolog", "12")
    assert take(slurm, replace(told, found=(replace(told.found[0], wish="none"),))) == [()]
    assert (slurm.remarks, slurm.known["gpu-0"].reason) == ({}, "")
    known = noted_on(slurm, "gpu-0")
    assert extra or (known is not None and known.failure is not None and known.failure.wish == "none" and not known.failure.drains)


@pytest.mark.parametrize(
    ("refused", "told"),
    [pytest.param(2, True, id="until-slurm-has-taken-it-back"), pytest.param(99, False, id="not-without-end")],
)
def test_job_that_slurm_still_takes_back_gets_its_comment_later(refused: int, told: bool) -> None:
    slurm, now, said = slurm_of(node("gpu-0", "MIXED")), [0.0], list[str]()
    slurm.refuses_comments = refused
    collector = Collector(slurm, said.append, lambda: now[0])
    collector.take([report("gpu-0", FAILED, "prolog", "12")])
    assert slurm.remarks == {}
    for _ in range(20):
        now[0] += 1
        collector.settle()
    assert bool(slurm.remarks) == told
    assert any("has no comment" in line for line in said) != told
    assert collector.pause_s() is None


@pytest.mark.parametrize("context", ["interval", "epilog"])
def test_failure_beside_a_job_is_noted_and_the_controller_drains(context: str) -> None:
    slurm = slurm_of(node("gpu-0", "MIXED"))
    assert take(slurm, report("gpu-0", FAILED, context, "12")) == [()]
    assert slurm.log == [("record", "gpu-0")]
    assert slurm.remarks == {}


def test_checks_hold_their_maximum_of_nodes_and_jobs_start_on_the_others() -> None:
    names = [f"gpu-{at}" for at in range(6)]
    disk = with_result("", "disk", FAILS) or ""
    others = [node("gpu-9", "IDLE", "DRAIN", extra=disk), node("cpu-0", "IDLE", "DRAIN", extra=disk)]
    slurm = slurm_of(*others, *(node(name) for name in names))
    refused = take(slurm, *(report(name, FAILED, "prolog", name) for name in names))
    assert refused == [("mounts",), (), (), (), (), ()]
    drained = {name for name, each in slurm.known.items() if "DRAIN" in each.state.flags}
    assert drained == {"gpu-0", "gpu-9", "cpu-0"}
    drains = {name: failures(read_results(slurm.known[name].extra) or {})["mounts"].drains for name in names}
    assert drains == {name: name == "gpu-0" for name in names}


def test_spared_node_is_drained_once_there_is_room() -> None:
    spared = CheckResult(FAILED, EARLIER, Failure(EARLIER, GONE.found, "node", False))
    slurm = slurm_of(node("gpu-0", extra=noted(spared)))
    take(slurm, report("gpu-0", FAILED))
    assert noted_on(slurm, "gpu-0") == CheckResult(FAILED, noted_on(slurm, "gpu-0").at, GONE)  # type: ignore[union-attr]


def test_nodes_that_find_the_same_are_written_together() -> None:
    nodes = {f"gpu-{at}": node(f"gpu-{at}") for at in range(300)}
    plan = plan_collect([report(name, FAILED, most=75) for name in nodes], nodes, {}, AT)
    assert sorted(map(len, plan.extras.values())) == [75, 225]


def test_text_of_somebody_else_stays_and_the_node_is_drained_all_the_same() -> None:
    slurm = slurm_of(node("gpu-0", extra="rack 7"), node("gpu-1", "IDLE", "RESERVED", "MAINTENANCE", extra="rack 7"))
    take(slurm, report("gpu-0", FAILED), report("gpu-1", FAILED))
    assert [each.extra for each in slurm.known.values()] == ["rack 7", "rack 7"]
    assert [each.reason for each in slurm.known.values()] == ["slipway: check mounts: /home is not mounted", ""]


def test_node_that_slurm_does_not_know_is_nobodys() -> None:
    slurm = slurm_of(node("gpu-0"))
    assert take(slurm, report("gpu-9", FAILED, "prolog", "12")) == [()]
    assert (slurm.log, slurm.remarks) == ([], {})


def test_repeated_results_are_renewed_together_and_not_at_each_look() -> None:
    now = [0.0]
    slurm = slurm_of(*(node(f"gpu-{at}", extra=noted(CheckResult(PASSED, EARLIER))) for at in range(3)))
    collector = Collector(slurm, lambda _: None, lambda: now[0], lambda: f"2026-01-02T03:{int(now[0]) // 60:02}:{int(now[0]) % 60:02}Z")
    for name in slurm.known:
        collector.take([report(name, PASSED)])
        now[0] += 10
    collector.settle()
    assert slurm.log == []
    now[0] = RENEW_EVERY_S
    collector.settle()
    assert slurm.log == [("record", name) for name in slurm.known]
    assert {noted_on(slurm, name) for name in slurm.known} == {CheckResult(PASSED, "2026-01-02T03:00:00Z")}
    now[0] = RENEW_AFTER_S - 1
    collector.take([report("gpu-0", PASSED)])
    assert collector.pause_s() is None
    now[0] += 1
    collector.take([report("gpu-0", PASSED)])
    assert collector.pause_s() == RENEW_EVERY_S


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(noted(FAILS), noted(CheckResult(FAILED, AT, GONE)), id="failure-keeps-its-beginning"),
        pytest.param(
            noted(CheckResult(PASSED, EARLIER), noted(CheckResult(PASSED, EARLIER)).replace("mounts", "disk")),
            noted(CheckResult(PASSED, AT), noted(CheckResult(PASSED, EARLIER)).replace("mounts", "disk")),
            id="other-checks-keep-their-time",
        ),
        pytest.param(noted(CheckResult(PASSED, "2026-01-02T03:00:00Z")), None, id="news-since-then"),
        pytest.param("rack 7", None, id="text-of-somebody-else"),
        pytest.param("", None, id="result-that-is-gone"),
    ],
)
def test_time_alone_is_renewed(before: str, after: str | None) -> None:
    nodes = {"gpu-0": node("gpu-0", extra=before)}
    assert plan_renewal({"gpu-0": {"mounts"}, "gone-1": {"mounts"}}, nodes, AT) == ({after: ("gpu-0",)} if after else {})


def test_nodes_with_equal_texts_are_renewed_by_one_write() -> None:
    nodes = {f"gpu-{at}": node(f"gpu-{at}", extra=noted(CheckResult(PASSED, EARLIER))) for at in range(300)}
    assert [*plan_renewal(dict.fromkeys(nodes, ("mounts",)), nodes, AT).values()] == [tuple(nodes)]


def test_failure_that_a_job_of_a_check_has_overwritten_is_noted_again() -> None:
    now = [0.0]
    slurm = slurm_of(node("gpu-0"))
    collector = Collector(slurm, lambda _: None, lambda: now[0])
    collector.take([report("gpu-0", FAILED)])
    slurm.known["gpu-0"] = node("gpu-0", extra=with_result("", "disk", CheckResult(PASSED, EARLIER)) or "")
    collector.settle()
    assert noted_on(slurm, "gpu-0") is None  # not yet
    pause = collector.pause_s()
    assert pause is not None
    now[0] += pause
    collector.settle()
    assert failures(read_results(slurm.known["gpu-0"].extra) or {}).keys() == {"mounts"}
    assert "disk" in slurm.known["gpu-0"].extra
    assert collector.pause_s() is None


def test_second_look_writes_what_was_found_last() -> None:
    now = [0.0]
    slurm = slurm_of(node("gpu-0"))
    collector = Collector(slurm, lambda _: None, lambda: now[0])
    collector.take([report("gpu-0", FAILED)])
    collector.take([report("gpu-0", PASSED)])
    now[0] += 10
    collector.settle()
    assert noted_on(slurm, "gpu-0") == CheckResult(PASSED, noted_on(slurm, "gpu-0").at)  # type: ignore[union-attr]


def test_node_tells_of_each_pass_until_its_failure_has_ended() -> None:
    slurm = slurm_of(node("gpu-0"))
    collector = Collector(slurm, lambda _: None)
    passed = Report("gpu-0", "interval", "", (replace(found(PASSED), passes=3),))
    collector.take([report("gpu-0", FAILED)])
    assert [replies(collector, passed)[0].held for _ in range(4)] == [("mounts",), ("mounts",), (), ()]
    assert not failures(read_results(slurm.known["gpu-0"].extra) or {})


def test_second_look_counts_no_pass_twice() -> None:
    now = [0.0]
    slurm = slurm_of(node("gpu-0"))
    collector = Collector(slurm, lambda _: None, lambda: now[0])
    collector.take([report("gpu-0", FAILED)])
    collector.take([Report("gpu-0", "interval", "", (replace(found(PASSED), passes=2),))])
    now[0] += 10
    collector.settle()
    assert failures(read_results(slurm.known["gpu-0"].extra) or {})["mounts"].passes == 1


def test_node_without_the_hardware_is_noted_as_skipped_and_not_drained() -> None:
    slurm = slurm_of(node("gpu-0"))
    assert take(slurm, report("gpu-0", SKIPPED, "prolog", "12")) == [()]
    noted_now = noted_on(slurm, "gpu-0")
    assert noted_now is not None
    assert (noted_now.result, noted_now.failure) == (SKIPPED, None)
    assert slurm.known["gpu-0"].state == node("gpu-0").state


def test_slurm_that_is_silent_is_told_to_the_node_which_tells_again() -> None:
    class Silent(FakeSlurm):
        def nodes(self, name: str = "") -> dict[str, Node]:
            raise SlurmError("scontrol did not answer within 30 s")

    answer, silent = Answer(), Collector(Silent({}, {}), lambda _: None)
    one_round(silent, [(report("gpu-0", FAILED), answer)])
    assert isinstance(answer.exception(0), SlurmError)
    assert not silent.notes


def test_collector_notes_again_after_a_round_that_went_well() -> None:
    collector = Collector(slurm_of(node("gpu-0")), lambda _: None)
    collector.notes = False
    one_round(collector, [])
    assert not collector.notes, "a round without reports has shown nothing"
    one_round(collector, [(report("gpu-0", PASSED), Answer())])
    assert collector.notes


def waiting_for(*reports: Report) -> Waiting:
    waiting = Waiting()
    for each in reports:
        waiting.put(each, Future())
    return waiting


@pytest.mark.parametrize(
    ("contexts", "rounds"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(["interval", "interval"], [["gpu-0", "gpu-1"]], id="what-comes-together-is-one-round"),
        pytest.param(["interval", "prolog", "epilog", "prolog"], [["gpu-1", "gpu-3"], ["gpu-0", "gpu-2"]], id="prologs-first"),
        pytest.param(["interval"] * 600, [256, 256, 88], id="a-round-has-an-end"),
    ],
)
def test_reports_are_taken_in_rounds(contexts: list[str], rounds: list[list[str] | int]) -> None:
    waiting = waiting_for(*(report(f"gpu-{at}", FAILED, context) for at, context in enumerate(contexts)))
    taken = [[each.node for each, _ in batch] for batch in iter(lambda: waiting.gather(0), [])]
    assert [len(names) if isinstance(expected, int) else names for names, expected in zip(taken, rounds, strict=True)] == rounds


def test_node_refused_by_slurm_reports_again_and_its_round_is_noted() -> None:
    slurm, said = slurm_of(*(node(f"gpu-{at}", "MIXED") for at in range(3))), list[str]()
    slurm.refuses = {"gpu-1"}
    batch = [(report(name, FAILED, "prolog", name, most=3), Answer()) for name in slurm.known]
    one_round(Collector(slurm, said.append), batch)
    answers = {each.node: answer for each, answer in batch}
    assert isinstance(answers.pop("gpu-1").exception(0), SlurmError)
    assert [answer.result(0).refused for answer in answers.values()] == [("mounts",)] * 2
    assert slurm.remarks.keys() == {"gpu-0", "gpu-2"}, "the job of the other one starts"
    assert "DRAIN" not in slurm.known["gpu-1"].state.flags
    assert sum("Invalid node name specified" in line for line in said) == 1


def test_storm_of_prologs_comments_on_some_jobs_first_and_on_all_later() -> None:
    slurm = slurm_of(*(node(f"gpu-{at}", "MIXED") for at in range(40)))
    collector = Collector(slurm, lambda _: None, lambda: 0)
    collector.take([report(name, FAILED, "prolog", name, most=40) for name in slurm.known])
    assert len(slurm.remarks) == 16
    for _ in range(2):
        collector.settle()
    assert slurm.remarks.keys() == slurm.known.keys()


RESULT = {"check": "mounts", "result": "failed", "found": "x", "kind": "node", "maxDrained": 1}
TOLD = {"node": "gpu-0", "context": "prolog", "job": "12", "results": [RESULT]}


def test_report_is_read() -> None:
    assert read_report(json.dumps(TOLD).encode()) == Report("gpu-0", "prolog", "12", (Found("mounts", "failed", "x", "node", 1),))


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff", id="no-text"),
        pytest.param(b"[]", id="no-object"),
        pytest.param({**TOLD, "results": [{**RESULT, "result": "fine"}]}, id="unknown-result"),
        pytest.param({**TOLD, "results": [{**RESULT, "maxDrained": "many"}]}, id="no-number"),
        pytest.param({**TOLD, "results": None}, id="no-results"),
        pytest.param({"node": "gpu-0"}, id="keys-missing"),
        pytest.param({**TOLD, "results": [{**RESULT, "maxDrained": float("inf")}]}, id="infinite"),
        pytest.param(b"[" * 100_000, id="lists-in-lists-without-end"),
    ],
)
def test_text_that_is_no_report_is_refused(told: bytes | Mapping[str, object]) -> None:
    with pytest.raises(ReportError):
        read_report(told if isinstance(told, bytes) else json.dumps(told).encode())
