"""Takes nodes that cannot start jobs out of service: the check `launch`, which every cluster has. Runs beside slurmctld, in `collect`.

A node reports a launch that has failed (programs/worker/launches.py). It is reserved and tested, and drained if it is at fault. This
program keeps nothing: a killed run leaves a reservation or a note in Slurm.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slurm import collector, logs
from slurm.check_results import FAILED, FAILURE, LAUNCH, PASSED, RESERVATION, failures, read_results
from slurm.commands import SlurmError
from slurm.scontrol import Node

from .collect_plan import Found, Report, did_not_start
from .launch_plan import is_closed, most_drained, plan_free
from .outcome_lines import check_line
from .plan import Outcome, Reservation, reason_prefix
from .run import Spec, run_all
from .settings import CheckedSet
from .slurm import Slurm

_AGAIN_S = 60.0
_TEST_S = 30
_PARALLEL = 8
_MOST_WAITING = 1024
_PASSED_FOR_S, _MOST_PASSED_FOR_S = 30.0, 120.0
"""Seconds for which a test that passed counts, and the most. The next test soon after counts twice as long.

So a user cannot have a node reserved again and again by jobs that fail by themselves, or by writing slurmd's words into its log.
"""
_PAUSE_S = 1.0
_MOST_RETURNS = 7
"""Looks at jobs that Slurm is requeueing, 127 s in all: a slow epilog holds a job up. Later, Slurm starts those that it does not hold."""
_MOST_JOBS = 64
"""Of one node, the latest: a report that a user has forged names any."""
_MOST_LOOKS = _TEST_S + 10
"""Another look at the node may take as long as its test job."""

Note = Callable[[Report], object]
"""Has the collector write down what was found, and drain where that asks for it. Raises SlurmError."""


@dataclass(frozen=True)
class Suspect:
    """A node that could not start a job."""

    node: str
    fault: str = ""
    """What is wrong with it, where it has found that itself."""
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Return:
    """Jobs that a closed node could not start, and when to look at them next."""

    node: Node
    jobs: tuple[str, ...]
    due: float
    looks: int = 0


class TrialJobs(Slurm):
    """Slurm, where the job of a check is a test job."""

    def run(
        self, check: str, node: Node, program: Path, settings: dict[str, Any], timeout_s: int, gpus: int, held: Reservation | None
    ) -> Outcome:
        del check, program, settings, gpus
        return self.try_launch(node, held, timeout_s)


class Launches:
    """Suspects, and the threads that test them."""

    def __init__(
        self,
        slurm: TrialJobs,
        note: Note,
        say: Callable[[str], None] = logs.write,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._slurm, self._note, self._say, self._clock, self._pause = slurm, note, say, clock, pause
        self._suspects = queue.Queue[Suspect](_MOST_WAITING)
        self._passed: dict[str, tuple[float, float]] = {}
        """By node, until when the last test that passed counts, and for how many seconds it did."""
        self._returns: dict[str, Return] = {}
        """By node."""
        self._returns_lock = threading.Lock()

    def put(self, report: Report) -> None:
        """Takes a node's report. If the queue is full, the node's next failure brings it again."""
        fault = next((finding.found for finding in report.found if finding.result == FAILED), "")
        with contextlib.suppress(queue.Full):
            self._suspects.put_nowait(Suspect(report.node, fault, report.jobs))

    def start(self) -> list[threading.Thread]:
        """Starts the threads, which never end by themselves."""
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(_PARALLEL)]
        threads.append(threading.Thread(target=self._repeat, args=(self.look_again, _AGAIN_S), daemon=True))
        threads.append(threading.Thread(target=self._repeat, args=(self.return_jobs, _PAUSE_S), daemon=True))
        for thread in threads:
            thread.start()
        return threads

    def _work(self) -> None:
        while True:
            self._try(self.look, self._suspects.get())

    def _repeat(self, act: Callable[[], None], every_s: float) -> None:
        while True:
            self._try(act)
            time.sleep(every_s)

    def _try(self, act: Callable[..., None], *suspects: Suspect) -> None:
        try:
            act(*suspects)
        except (SlurmError, TimeoutError) as error:
            about = f"node {suspects[0].node}: " if suspects else ""
            self._say(logs.line("checks", f"check {LAUNCH}: {about}{error}", logs.ERROR, check=LAUNCH))

    def look(self, suspect: Suspect) -> None:
        """Finds out whether the node is at fault, and takes it out of service if so. Raises SlurmError."""
        for _ in range(_MOST_LOOKS):
            node, is_judged = self._look(suspect)
            if node is not None and is_closed(node):
                self._put_return(node, suspect.jobs)
                return
            if is_judged:
                return
            self._pause(_PAUSE_S)  # another look, whose suspect may have named other jobs, or another check

    def _look(self, suspect: Suspect) -> tuple[Node | None, bool]:
        """The node after a look, and whether this look could judge it."""
        if not suspect.fault and self._clock() < self._passed.get(suspect.node, (0.0, 0.0))[0]:
            node = self._slurm.nodes(suspect.node).get(suspect.node)
            if node is None or is_closed(node) or not _is_noted(node):
                return node, True
        with self._reserved(suspect.node) as held:
            node = self._slurm.nodes(suspect.node).get(suspect.node)
            if node is None or not held or is_closed(node):
                return node, node is None or held is not None
            self._judge(node, held, suspect.fault)
            return self._slurm.nodes(node.name).get(node.name), True

    def look_again(self) -> None:
        """Tests the nodes with a noted failure once more, and ends what a killed run has left. Raises SlurmError."""
        nodes, held = self._slurm.all_briefly(), self._slurm.reservations()
        noted = {name for name, node in nodes.items() if FAILURE in node.extra and LAUNCH in failures(read_results(node.extra) or {})}
        stale = {name: reservation for name, reservation in held.items() if reservation.is_of(LAUNCH) and reservation.age_s > 2 * _TEST_S}
        drained = {name for name in noted if "DRAIN" in nodes[name].state.flags}
        for name in stale.keys() - noted:
            self._slurm.release(stale[name])
        again = drained | (noted & stale.keys())
        if again:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            targets = {name: CheckedSet(name, 1, 0, most_drained(nodes, name), {}) for name in sorted(again)}
            spec = Spec(LAUNCH, "launches", _TEST_S, _PARALLEL, int(_AGAIN_S), "node", (), targets=targets)

            def report(name: str, outcome: Outcome) -> None:
                self._say(check_line("checks", LAUNCH, {"node": name}, at, outcome))

            run_all(spec, self._slurm, report, at, self._clock, self._pause)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for _ in pool.map(self.look, map(Suspect, sorted(noted - again))):
                pass

    @contextlib.contextmanager
    def _reserved(self, name: str) -> Generator[Reservation | None]:
        """Reserves the node, which keeps other jobs out; None while another check has a reservation."""
        held = Reservation(f"{RESERVATION}{name}", name, f"{reason_prefix(LAUNCH)}a job could not be started")
        is_ours = self._slurm.reserve(held)
        try:
            yield held if is_ours else None
        finally:
            if is_ours:
                self._slurm.release(held)

    def _judge(self, node: Node, held: Reservation, fault: str = "") -> None:
        """Notes the node's own fault, or the result of a test job. A noted failure ends with a test job that starts."""
        outcome = Outcome(FAILED, fault) if fault else self._slurm.try_launch(node, held, _TEST_S)
        if outcome.result == PASSED:
            self._count_pass(node.name)
        if outcome.result == FAILED or (outcome.result == PASSED and _is_noted(node)):
            most = most_drained(self._slurm.all_briefly(), node.name)
            self._note(Report(node.name, collector.LAUNCH, "", (Found(LAUNCH, outcome.result, outcome.found, "node", most),)))

    def _count_pass(self, name: str) -> None:
        until, lasted_s = self._passed.get(name, (0.0, 0.0))
        is_soon = lasted_s and self._clock() < until + _MOST_PASSED_FOR_S
        lasts_s = min(2 * lasted_s, _MOST_PASSED_FOR_S) if is_soon else _PASSED_FOR_S
        self._passed[name] = self._clock() + lasts_s, lasts_s

    def _put_return(self, node: Node, jobs: tuple[str, ...]) -> None:
        with self._returns_lock:
            earlier = self._returns[node.name].jobs if node.name in self._returns else ()
            if all_jobs := tuple(dict.fromkeys([*earlier, *jobs]))[-_MOST_JOBS:]:
                self._returns[node.name] = Return(node, all_jobs, self._clock() + _PAUSE_S)

    def return_jobs(self) -> None:
        """Gives jobs that a closed node could not start their place in the queue back, once Slurm has requeued them."""
        with self._returns_lock:
            due = [returned for returned in self._returns.values() if returned.due <= self._clock()]
        for returned in due:
            waiting = tuple(job for job in returned.jobs if self._is_taken_back(job, returned.node))
            looks = returned.looks + 1
            later = replace(returned, jobs=waiting, looks=looks, due=self._clock() + _PAUSE_S * 2**looks)
            with self._returns_lock:
                if self._returns.get(returned.node.name) is not returned:
                    continue  # another report has named jobs meanwhile, and these again
                del self._returns[returned.node.name]
                if waiting and looks < _MOST_RETURNS:
                    self._returns[returned.node.name] = later

    def _is_taken_back(self, job: str, node: Node) -> bool:
        """Frees a job. True while Slurm is still requeueing it, and where Slurm gives no answer about it."""
        try:
            free = plan_free(self._slurm.job(job))
            if free in ("release", "start"):
                self._slurm.comment(job, did_not_start(node.name, node.reason or "it could not start jobs"))
                self._slurm.free(job, free)
                self._say(logs.line("checks", f"job {job} could not be started on {node.name}: it is back in the queue", job=job))
        except SlurmError:
            return True  # an outage, or it has ended
        return free == "wait"


def _is_noted(node: Node) -> bool:
    return LAUNCH in failures(read_results(node.extra) or {})
