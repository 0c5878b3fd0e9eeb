"""The program beside slurmctld that takes results of checks beside users' jobs, and writes them into Slurm: `python3 -m
programs.node_checks.collect`, as SlurmUser.

A node sends one line, a credential of munge that its root has made (beside.py). The answer is a line of JSON: `{"refused": [CHECK, ...],
"held": [CHECK, ...]}`, or `{"error": "..."}`. The line `status` needs no credential: `{"notes": false}` is the answer while Slurm takes no
results, else `{"notes": true}`.
"""

import asyncio
import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from names import ports
from slurm import logs, web
from slurm.check_results import FAILED, PASSED
from slurm.collector import ANSWER_S, LAUNCH
from slurm.commands import SlurmError
from slurm.listen import Bounds, InThread, Listener, Service
from slurm.pump import take_stderr
from slurm.retelling import RENEW_EVERY_S
from slurm.signals import Signals
from slurm.turns import Turns

from .collect_plan import AT_ONCE, Found, Plan, Report, ReportError, plan_collect, plan_renewal, read_report
from .credentials import CredentialError, Munge
from .launches import Launches, TrialJobs
from .outcome_lines import check_line
from .plan import Outcome
from .slurm import Slurm
from .updates import Update

STATUS = b"status"
_LOOKS_S = 10
_GATHER_S = 0.05
_MOST = 256
"""Reports of one round: what comes meanwhile waits for the next one, which begins about a second later."""
_MOST_COMMENTS = 16
"""Jobs that one round comments on, by two processes each. The others have their turn after the answers."""
_BOUNDS = Bounds(clients=2048, per_address=32, answer_s=ANSWER_S + 10, request_bytes=256 * 1024)
"""A failure that all nodes see at once is a report of each."""
_UNSEALED_AT_ONCE = 8
"""Credentials that munged opens."""
_SETTLES_S = 1.0
"""Seconds after which a noted failure is looked for again: a check that runs as a job may have overwritten it."""
_TELLS_S, _MOST_TELLS = 1.0, 15
"""Seconds between tries to comment on a job, and the most tries.

Slurm takes no comment on a job whose batch script has ended already while it takes the job back.
"""


class Reply(NamedTuple):
    """What a node is answered."""

    refused: tuple[str, ...]
    """The checks for which the report's job may not start."""
    held: tuple[str, ...]
    """The checks whose failure stays noted until they have passed more often: the node reports the next pass, too."""


Answer = Future[Reply]
"""The reply to a report; or the SlurmError that kept it from being noted."""


class Waiting:
    """Reports that have no answer yet, in the order of arrival; those of prologs first, as jobs wait for them."""

    def __init__(self) -> None:
        self._queue = queue.PriorityQueue[tuple[bool, int, Report, Answer]]()
        self._numbers = count()

    def put(self, report: Report, answer: Answer) -> None:
        self._queue.put((report.context not in AT_ONCE, next(self._numbers), report, answer))

    def gather(self, timeout_s: float | None) -> list[tuple[Report, Answer]]:
        """The waiting reports, and those right after: all of prologs, or all others. Empty after `timeout_s` seconds without one."""
        try:
            first = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return []
        time.sleep(_GATHER_S)
        self._queue.put(first)  # a prolog may have come meanwhile
        batch: list[tuple[Report, Answer]] = []
        are_of_prologs = False
        while len(batch) < _MOST and not self._queue.empty():
            item = self._queue.get()
            if not batch:
                are_of_prologs = not item[0]
            elif are_of_prologs and item[0]:
                self._queue.put(item)
                break
            batch.append(item[2:])
        return batch


class Collector:
    """Writes reports into Slurm, a round at a time."""

    def __init__(
        self,
        slurm: Slurm,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], str] = lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    ) -> None:
        self._slurm, self._say, self._clock, self._wall = slurm, say, clock, wall
        self._last: dict[tuple[str, str], Found] = {}
        self._again: list[tuple[float, Report]] = []
        self._untold: list[tuple[float, str, str, int]] = []
        """When to try again, the job, the text and how often it was tried."""
        self._told_again: dict[str, set[str]] = {}
        """By node the checks whose results get a younger time."""
        self._renewal: tuple[float, str] = (0, "")
        """When they get it, and the time: when the first of them was reported."""
        self.notes = True
        """False after a round of which nothing was noted, as Slurm did not answer."""

    def take(self, reports: Sequence[Report]) -> list[Reply | SlurmError]:
        """One round: the reply to each report, or why it is not noted. Raises SlurmError if Slurm does not answer."""
        at = self._wall()
        names = ",".join(sorted({report.node for report in reports}))
        nodes = self._slurm.nodes(names)
        has_failures = any(finding.result == FAILED for report in reports for finding in report.found)
        plan = plan_collect(reports, nodes, self._slurm.all_briefly() if has_failures else {}, at)
        refused = self._write(plan, reports)
        for node, finding in plan.changed:
            if node in refused:
                continue
            job = next((report.job for report in reports if report.node == node and finding in report.found), "")
            outcome = Outcome(finding.result, finding.found)
            self._say(check_line("checks", finding.check, {"node": node, "job": job}, at, outcome))
        for node, why in refused.items():
            self._say(logs.line("checks", f"node {node}: Slurm refuses it: {why}", logs.ERROR, node=node, at=at, error=str(why)))
        for node in plan.unnoted:
            error = "its Extra in Slurm is somebody else's text: nothing is noted there"
            self._say(logs.line("checks", f"node {node}: {error}", logs.ERROR, node=node, at=at, error=error))
        self._remember(plan, refused, at)
        replies = zip(reports, plan.refused, plan.held, strict=True)
        return [refused.get(report.node) or Reply(stops, held) for report, stops, held in replies]

    def settle(self) -> None:
        """Notes recent failures again if they were overwritten, and retries comments on jobs. Raises SlurmError."""
        now = self._clock()
        untold = [attempt for attempt in self._untold if attempt[0] <= now]
        self._untold = [attempt for attempt in self._untold if attempt[0] > now]
        for _, job, text, tries in untold[:_MOST_COMMENTS]:
            self._comment(job, text, tries)
        self._untold += untold[_MOST_COMMENTS:]
        due = [report for when, report in self._again if when <= now]
        if due:
            self._again = [(when, report) for when, report in self._again if when > now]
            latest = [replace(report, found=tuple(self._latest(report.node, finding) for finding in report.found)) for report in due]
            latest = [replace(report, found=tuple(finding for finding in report.found if not _is_counted(finding))) for report in latest]
            names = ",".join(sorted({report.node for report in latest}))
            self._write(plan_collect(latest, self._slurm.nodes(names), self._slurm.all_briefly(), self._wall()), ())
        if self._told_again and self._renewal[0] <= now:
            told, self._told_again = self._told_again, {}
            renewed = plan_renewal(told, self._slurm.nodes(",".join(sorted(told))), self._renewal[1])
            self._slurm.write([Update(nodes, text) for text, nodes in renewed.items()])

    def pause_s(self) -> float | None:
        """Seconds until `settle` has something to do; None if nothing waits for it."""
        times = [*(when for when, _ in self._again), *(when for when, _, _, _ in self._untold)]
        times += [self._renewal[0]] if self._told_again else []
        return max(0.0, min(times) - self._clock()) if times else None

    def _latest(self, node: str, finding: Found) -> Found:
        return self._last.get((node, finding.check), finding)

    def _write(self, plan: Plan, reports: Sequence[Report]) -> dict[str, SlurmError]:
        """Notes first, and drains where that worked. Returns the nodes that Slurm refused, with its errors."""
        refused = self._slurm.write([Update(names, text) for text, names in plan.extras.items()])
        noted = {reason: tuple(name for name in names if name not in refused) for reason, names in plan.drains.items()}
        refused |= self._slurm.write([Update(names, drain=reason) for reason, names in noted.items() if names])
        start = {report.job for report in reports if report.node in refused}
        comments = {job: text for job, text in plan.comments.items() if job not in start}
        self._slurm.notify(comments)
        for number, (job, text) in enumerate(comments.items()):
            if number < _MOST_COMMENTS:
                self._comment(job, text)
            else:
                self._untold.append((self._clock(), job, text, 0))
        return refused

    def _comment(self, job: str, text: str, tries: int = 0) -> None:
        try:
            self._slurm.comment(job, text)
        except SlurmError as error:
            if tries < _MOST_TELLS:
                self._untold.append((self._clock() + _TELLS_S, job, text, tries + 1))
            else:
                why = f"has no comment {text!r}: {error}"
                self._say(logs.line("checks", f"job {job} {why}", logs.ERROR, job=job, error=why))

    def _remember(self, plan: Plan, refused: Collection[str], at: str) -> None:
        if plan.told_again and not self._told_again:
            self._renewal = (self._clock() + RENEW_EVERY_S, at)
        for node, check in plan.told_again:
            self._told_again.setdefault(node, set()).add(check)
        for node, finding in plan.changed:
            self._last[node, finding.check] = finding
            if finding.result == FAILED and node not in refused:
                self._again.append((self._clock() + _SETTLES_S, Report(node, "interval", "", (finding,))))


def _is_counted(finding: Found) -> bool:
    """True for one of several passes that a failure needs: noted once more, it would count twice."""
    return finding.result == PASSED and finding.passes > 1


def work(collector: Collector, waiting: Waiting) -> None:
    """Rounds without end."""
    while True:
        one_round(collector, waiting.gather(collector.pause_s()))


def one_round(collector: Collector, batch: Sequence[tuple[Report, Answer]]) -> None:
    """Takes and answers these reports; then looks again at what is due."""
    try:
        if batch:
            for (_, answer), reply in zip(batch, collector.take([report for report, _ in batch]), strict=True):
                if isinstance(reply, SlurmError):
                    answer.set_exception(reply)
                else:
                    answer.set_result(reply)
            collector.notes = True
        collector.settle()
    except SlurmError as error:
        for _, answer in batch:
            if not answer.done():
                answer.set_exception(error)
                collector.notes = False
        logs.write(logs.line("checks", str(error), logs.ERROR))


def listener(
    collector: Collector,
    waiting: Waiting,
    suspect: Callable[[Report], None],
    read: Callable[[bytes], tuple[int, bytes]],
    bounds: Bounds = _BOUNDS,
) -> Listener:
    """Takes reports; `suspect` takes those of nodes that could not start a job. `read` returns who sealed a credential, and its text."""
    turns = Turns(_UNSEALED_AT_ONCE)

    def unseal(line: bytes) -> Report:
        user, text = read(line)
        if user != 0:
            raise CredentialError(f"sealed by user {user}, not by root of a node")
        return read_report(text)

    async def reply(line: bytes, address: str) -> Reply:
        report, answer = await turns.run(address, unseal, line), Answer()
        if report.context == LAUNCH:
            suspect(report)
            return Reply((), ())
        waiting.put(report, answer)
        noted = asyncio.wrap_future(answer)
        noted.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody hears it where the node has gone
        # Shielded, as the report is noted even after this deadline.
        return await asyncio.wait_for(asyncio.shield(noted), ANSWER_S)

    async def serve(head: bytes, _: bytes, address: str) -> bytes:
        line = head.strip()
        try:
            answer: dict[str, object] = {"notes": collector.notes} if line == STATUS else (await reply(line, address))._asdict()
        except (CredentialError, ReportError, SlurmError) as error:
            answer = {"error": str(error)}
        except TimeoutError:
            answer = {"error": "Slurm did not take it in time"}
        return json.dumps(answer).encode() + b"\n"

    return Listener(Service(b"\n", serve), bounds)


def note(waiting: Waiting, report: Report) -> Reply:
    """Has a report noted, and waits for that. Raises SlurmError, or TimeoutError."""
    answer = Answer()
    waiting.put(report, answer)
    return answer.result(ANSWER_S)


def main() -> int:
    signals, waiting, collector = Signals(), Waiting(), Collector(Slurm(), logs.write)
    launches = Launches(TrialJobs(), lambda report: note(waiting, report))
    worker = threading.Thread(target=work, args=(collector, waiting), daemon=True)
    worker.start()
    workers = [worker, *launches.start()]
    serving = InThread((listener(collector, waiting, launches.put, Munge().read), ports.CHECKS), (web.healthy(), ports.PROBE))
    while not signals.is_stopping and all(thread.is_alive() for thread in workers):  # a fault of ours ends the process, which comes back
        signals.wait(_LOOKS_S)
    serving.close()
    return int(not signals.is_stopping)


if __name__ == "__main__":
    take_stderr("checks")
    sys.exit(main())
