"""Nodes that cannot start jobs, against a Slurm in memory: who is drained, which jobs come back, and that a killed run leaves nothing."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.node_checks.collect import Collector
from programs.node_checks.launch_plan import most_drained, plan_free, read_launch
from programs.node_checks.launches import Launches, Suspect, TrialJobs
from programs.node_checks.plan import Outcome, Reservation
from slurm.check_results import FAILED, LAUNCH, PASSED, UNKNOWN, failures, read_results
from slurm.commands import SlurmError
from slurm.scontrol import Node
from slurm.states import node_state
from tests.support.programs.node_checks.fake import FakeSlurm, Killed

STARTS, FAILS, SILENT = Outcome(PASSED, "slurmd starts jobs"), Outcome(FAILED, "no job starts"), Outcome(UNKNOWN, "no answer")
NODES = [f"gpu-{number}" for number in range(20)]
READ_ONLY = "/var/spool/slurmd cannot be written to: Read-only file system"


@dataclass
class Cluster(FakeSlurm, TrialJobs):
    """Where test jobs find what the checks of other tests find."""

    jobs: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    """The records of jobs, one for each reading, an empty one where Slurm does not answer; the last one stays."""
    freed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def try_launch(self, node: Node, held: Reservation | None, timeout_s: int) -> Outcome:
        self._operate("try", node.name)
        assert held is not None, "a user's job could come between"
        assert self.held.get(node.name) == held
        return self.found[node.name]

    def job(self, job: str) -> dict[str, Any]:
        if job not in self.jobs:
            raise SlurmError(f"no job {job}")
        records = self.jobs[job]
        if not (record := records.pop(0) if len(records) > 1 else records[0]):
            raise SlurmError("Socket timed out on send/recv operation")
        return record

    def free(self, job: str, how: str) -> None:
        self.freed.append((job, how))


def cluster_of(*outcomes: Outcome, count: int = 1) -> Cluster:
    names = NODES[: max(count, len(outcomes))]
    known = {name: Node(name, node_state(("IDLE", "CLOUD")), "", "", ("main",), "") for name in names}
    return Cluster(known, dict(zip(names, [*outcomes, *[STARTS] * len(names)], strict=False)))


def launches_of(slurm: Cluster, clock: list[float] | None = None) -> Launches:
    taker = Collector(slurm, lambda _: None)
    return Launches(slurm, lambda report: taker.take([report]), lambda _: None, lambda: (clock or [0.0])[0], lambda _: None)


def look(launches: Launches, suspect: Suspect, clock: list[float]) -> None:
    """The look, and the two minutes after it."""
    launches.look(suspect)
    for _ in range(130):
        clock[0] += 1
        launches.return_jobs()


def is_noted(slurm: Cluster, name: str) -> bool:
    return LAUNCH in failures(read_results(slurm.known[name].extra) or {})


def is_drained(slurm: Cluster, name: str) -> bool:
    return "DRAIN" in slurm.known[name].state.flags


def held_job(reason: str = "JobHeldUser", words: str = "launch failed requeued held") -> dict[str, Any]:
    return {"job_state": ["PENDING"], "restart_cnt": 1, "hold": True, "state_reason": reason, "state_description": words}


def waiting_job(waits_s: int = 121, reason: str = "BeginTime", restarts: int = 1) -> dict[str, Any]:
    times = {"submit_time": {"number": 1000}, "eligible_time": {"number": 1000 + waits_s}}
    return {"job_state": ["PENDING"], "restart_cnt": restarts, "hold": False, "state_reason": reason, **times}


@pytest.mark.parametrize(
    ("row", "result"),
    [
        pytest.param("COMPLETED 2026-11-26T17:11:59", PASSED, id="completed"),
        pytest.param("CANCELLED 2026-11-26T17:11:59", FAILED, id="cancelled-by-slurmd"),
        pytest.param("FAILED 2026-11-26T17:11:59", FAILED, id="refused-by-slurmd"),
        pytest.param("CANCELLED N/A", UNKNOWN, id="cancelled-before-its-start"),
        pytest.param("NODE_FAIL 2026-11-26T17:11:59", UNKNOWN, id="node-lost"),
        pytest.param("PREEMPTED 2026-11-26T17:11:59", UNKNOWN, id="preempted"),
        pytest.param("", UNKNOWN, id="forgotten"),
        pytest.param("PENDING N/A", None, id="pending"),
        pytest.param("RUNNING 2026-11-26T17:11:59", None, id="running"),
        pytest.param("COMPLETING 2026-11-26T17:11:59", None, id="completing"),
    ],
)
def test_only_slurmds_own_refusal_is_a_failure(row: str, result: str | None) -> None:
    outcome = read_launch(row)
    assert (outcome.result if outcome else None) == result


@pytest.mark.parametrize(
    ("job", "free"),
    [
        pytest.param(held_job(), "release", id="held-by-a-failed-launch"),
        pytest.param(held_job("JobHoldMaxRequeue", "launch failure limit exceeded"), "release", id="held-after-five"),
        pytest.param(held_job(words=""), "", id="held-by-its-user"),
        pytest.param(held_job("JobHeldAdmin", ""), "", id="held-by-an-administrator"),
        pytest.param(waiting_job(), "start", id="waits-after-a-requeue"),
        pytest.param(waiting_job(3600), "", id="begins-later-as-its-user-wants"),
        pytest.param(waiting_job(restarts=0), "", id="never-began"),
        pytest.param(waiting_job(reason="Dependency"), "", id="waits-for-another-job"),
        pytest.param({**waiting_job(), "job_state": ["PENDING", "COMPLETING"]}, "wait", id="taken-back-now"),
        pytest.param({"job_state": ["RUNNING"], "state_reason": "Prolog"}, "wait", id="its-failure-is-not-told-yet"),
        pytest.param({"job_state": ["RUNNING"], "state_reason": "None"}, "wait", id="runs-or-its-failure-is-not-told-yet"),
        pytest.param({"job_state": ["COMPLETED"]}, "", id="ended"),
        pytest.param({}, "", id="unknown"),
    ],
)
def test_job_comes_back_from_slurms_own_waits_alone(job: dict[str, Any], free: str) -> None:
    assert plan_free(job) == free


def test_node_that_finds_its_fault_is_drained_without_a_test_job() -> None:
    slurm = cluster_of(STARTS)
    launches_of(slurm).look(Suspect(NODES[0], READ_ONLY))
    assert slurm.known[NODES[0]].reason == f"slipway: check launch: {READ_ONLY}"
    assert "try" not in {operation for operation, _ in slurm.log}


def test_node_is_kept_from_jobs_before_anything_else() -> None:
    slurm = cluster_of(FAILS)
    launches_of(slurm).look(Suspect(NODES[0]))
    assert [operation for operation, _ in slurm.log] == ["reserve", "try", "record", "drain", "release"]


@pytest.mark.parametrize("outcome", [pytest.param(STARTS, id="starts"), pytest.param(SILENT, id="unknown")])
def test_node_without_proof_stays_in_service(outcome: Outcome) -> None:
    slurm, clock = cluster_of(outcome), [0.0]
    slurm.jobs["7"] = [waiting_job()]
    look(launches_of(slurm, clock), Suspect(NODES[0], jobs=("7",)), clock)
    assert not is_noted(slurm, NODES[0])
    assert not is_drained(slurm, NODES[0])
    assert not slurm.held
    assert not slurm.freed, "it would get the job again at once"


def test_user_whose_jobs_fail_has_a_node_tried_once_in_a_while() -> None:
    slurm, clock = cluster_of(STARTS), [0.0]
    launches = launches_of(slurm, clock)
    tried_at: list[int] = []
    for at in [*range(0, 600, 5), 900]:
        clock[0] = float(at)
        before = len(slurm.log)
        launches.look(Suspect(NODES[0]))
        tried_at += [at] * (len(slurm.log) > before)
    assert tried_at == [0, 30, 90, 210, 330, 450, 570, 900]
    assert {operation for operation, _ in slurm.log} == {"reserve", "try", "release"}


def test_node_tried_a_moment_ago_still_releases_the_jobs_of_slurms_drain() -> None:
    slurm, clock = cluster_of(STARTS), [0.0]
    launches = launches_of(slurm, clock)
    launches.look(Suspect(NODES[0]))
    slurm.drain(NODES[0], "batch job complete failure")
    slurm.jobs["7"] = [held_job()]
    look(launches, Suspect(NODES[0], jobs=("7",)), clock)
    assert slurm.freed == [("7", "release")]


def test_jobs_of_a_drained_node_come_back_with_words() -> None:
    slurm, clock = cluster_of(FAILS), [0.0]
    taken_back = {**held_job(), "job_state": ["PENDING", "COMPLETING"]}
    slurm.jobs = {
        "7": [taken_back] * 6 + [held_job()],
        "8": [{}, waiting_job()],
        "9": [running := {"job_state": ["RUNNING"], "state_reason": "None"}],
        "11": [running, waiting_job()],
    }
    look(launches_of(slurm, clock), Suspect(NODES[0], jobs=("7", "8", "9", "10", "11")), clock)
    assert sorted(slurm.freed) == [("11", "start"), ("7", "release"), ("8", "start")]
    assert slurm.remarks == dict.fromkeys(("7", "8", "11"), "did not start on gpu-0: check launch: no job starts")


def test_node_drained_by_slurm_releases_its_jobs_and_keeps_the_reason() -> None:
    slurm, clock = cluster_of(FAILS), [0.0]
    slurm.drain(NODES[0], "Prolog error")
    slurm.jobs["7"] = [held_job()]
    look(launches_of(slurm, clock), Suspect(NODES[0], READ_ONLY, ("7",)), clock)
    assert slurm.known[NODES[0]].reason == "Prolog error"
    assert slurm.freed == [("7", "release")]


def test_node_that_another_check_has_is_left_to_it() -> None:
    slurm = cluster_of(FAILS)
    slurm.reserve(Reservation(f"slipway-check-{NODES[0]}", NODES[0], "slipway: check disk: "))
    launches_of(slurm).look(Suspect(NODES[0], READ_ONLY))
    assert not is_noted(slurm, NODES[0])
    assert NODES[0] in slurm.held


def test_job_in_a_second_report_is_released_after_the_first_look() -> None:
    slurm, clock = cluster_of(FAILS), [0.0]
    slurm.jobs["7"] = [held_job()]
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            slurm.held.clear()
            slurm.drain(NODES[0], "slipway: check launch: no job starts")

    slurm.reserve(Reservation(f"slipway-check-{NODES[0]}", NODES[0], "slipway: check launch: a job could not be started"))
    look(Launches(slurm, lambda _: None, lambda _: None, lambda: clock[0], pause), Suspect(NODES[0], jobs=("7",)), clock)
    assert slurm.freed == [("7", "release")]


def test_second_report_of_a_node_keeps_the_jobs_of_the_first() -> None:
    slurm, clock = cluster_of(FAILS), [0.0]
    slurm.jobs = {job: [waiting_job()] for job in ("7", "8")}
    launches = launches_of(slurm, clock)
    launches.look(Suspect(NODES[0], jobs=("7",)))
    look(launches, Suspect(NODES[0], jobs=("8",)), clock)
    assert slurm.freed == [("7", "start"), ("8", "start")]


def test_job_that_goes_on_is_looked_at_a_few_times() -> None:
    slurm, clock = cluster_of(FAILS), [0.0]
    slurm.jobs["7"] = [{"job_state": ["RUNNING"], "state_reason": "None"} for _ in range(20)]
    look(launches_of(slurm, clock), Suspect(NODES[0], jobs=("7",)), clock)
    assert len(slurm.jobs["7"]) == 20 - 7


def test_mass_failure_drains_a_tenth_of_a_set() -> None:
    slurm = cluster_of(*[FAILS] * 20)
    launches = launches_of(slurm)
    for name in NODES:
        launches.look(Suspect(name))
    assert sum(is_drained(slurm, name) for name in NODES) == 2
    assert all(is_noted(slurm, name) for name in NODES)


@pytest.mark.parametrize(("count", "most"), [(1, 1), (9, 1), (20, 2), (19, 1)])
def test_small_set_may_lose_one_node(count: int, most: int) -> None:
    assert most_drained(dict.fromkeys([*NODES[:count], "cpu-0"], cluster_of(STARTS).known[NODES[0]]), NODES[0]) == most


def test_node_that_starts_jobs_again_fails_no_more() -> None:
    slurm = cluster_of(FAILS, FAILS, count=3)
    launches = launches_of(slurm)
    for name in NODES[:2]:
        launches.look(Suspect(name))
    assert [is_drained(slurm, name) for name in NODES[:2]] == [True, False]
    slurm.found = dict.fromkeys(NODES[:3], STARTS)
    launches.look_again()
    assert not any(is_noted(slurm, name) for name in NODES[:2])
    assert not slurm.held


@given(st.integers(0, 30), st.booleans(), st.booleans())
def test_killed_run_leaves_a_broken_node_drained_and_a_good_one_free(kill_at: int, is_broken: bool, has_found_it: bool) -> None:
    slurm = cluster_of(FAILS if is_broken else STARTS)
    slurm.kill_at = kill_at
    fault = READ_ONLY if is_broken and has_found_it else ""
    try:
        launches_of(slurm).look(Suspect(NODES[0], fault))
        launches_of(slurm).look_again()
    except Killed:
        pass
    slurm.kill_at = -1
    slurm.held = {name: Reservation(each.name, each.node, each.comment, age_s=100) for name, each in slurm.held.items()}
    for _ in range(2):
        launches_of(slurm).look_again()
        launches_of(slurm).look(Suspect(NODES[0], fault))  # its next launch, where it gets one
    assert not slurm.held
    assert is_noted(slurm, NODES[0]) == is_broken
    assert is_drained(slurm, NODES[0]) or not is_broken
