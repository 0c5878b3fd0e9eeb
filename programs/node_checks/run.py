"""The program of a health check's CronJob: runs one check on every idle node of its sets, and drains nodes that fail.

`python3 -m programs.node_checks.run '<spec>'`, as SlurmUser; with SLIPWAY_ASKED_NODES only on these nodes, for the NodeSet controller. It
prints one JSON line a node, and notes the result in the node's `Extra` (slurm.check_results). Exit code: 0 if every node was read; 1 if
Slurm could not be read at all; 143 if SIGTERM ended it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from names import variables
from slurm import logs, reasons
from slurm.check_results import (
    FAILED,
    LAUNCH,
    PASSED,
    SKIPPED,
    UNKNOWN,
    Request,
    failures,
    following,
    read_requests,
    read_results,
    seen_on,
    with_result,
)
from slurm.pump import take_stderr
from slurm.scontrol import Node

from .allowance import Allowance, held_by_checks
from .order import DAY_S, Budget, in_order
from .outcome_lines import check_line
from .plan import (
    BUSY,
    ENDED,
    NOT_BEGUN,
    NOT_STARTED,
    Done,
    Drain,
    Note,
    Outcome,
    Release,
    Reservation,
    Reserve,
    Resume,
    Run,
    Step,
    actions,
    next_step,
    plan_checks,
)
from .settings import CheckedSet, CheckSpec, from_json
from .slurm import Slurm, SlurmError

_MOST_STEPS = 12
OTHERS_S = 120
"""Seconds that a check waits for the jobs of other checks on a node. Schedules often name the same minute."""
PAUSE_S = 1.0
_REFUSALS = 3
"""Times that Slurm may refuse a check on a node that is idle right afterwards. Then the node is reported as unknown."""
_LAUNCH_TRIES = 8
"""The most looks whether the node is at fault, if a job of the check ended before it began (launches.py)."""
_MOST_WRITES, _MOST_TEXTS = 5, 50
"""Nodes are read again after this many texts (one call of about 20 ms each). A text that is written long after its reading may hide a
failure that another check has found meanwhile."""
_SETTLES_S, _SETTLES_PER_NODE_S = 1.0, 0.004
"""Seconds after which a noted failure is looked for again: another check that had read all nodes before may have overwritten it.

Reading 1,000 nodes takes 1.3 s (measured on 26.05).
"""
_ENDS_S = 25
"""A run that is ended has so long to put things back, of the 30 s that Kubernetes gives a pod."""
_NO_ROOM = "the node's Extra in Slurm is somebody else's text, so an administrator has to lift this drain"


@dataclass(frozen=True)
class Spec(CheckSpec):
    """A check, and the nodes of one run."""

    targets: Mapping[str, CheckedSet] = field(default_factory=dict[str, CheckedSet])
    """The set of each node."""
    asked: Mapping[str, Request] | None = None
    """The only nodes that this run is for, with what a pass proves there; None for all."""

    @property
    def asked_nodes(self) -> frozenset[str]:
        """Names of these nodes; empty for a run for all."""
        return frozenset(self.asked or ())

    def is_for(self, name: str) -> bool:
        """True when this run is to look at that node, and to finish what an earlier one has begun there."""
        return self.asked is None or name in self.asked


def read_spec(text: str, asked: str = "") -> Spec:
    """Reads the program's argument; `asked` is the value of SLIPWAY_ASKED_NODES. Raises ValueError if that is not the controller's."""
    told = from_json(text)
    targets = {f"{node_set.name}-{ordinal}": node_set for node_set in told.node_sets for ordinal in range(node_set.size)}
    return Spec(**vars(told), targets=targets, asked=read_requests(asked))


class Notes:
    """Notes what this run found in the nodes' `Extra`. Slurm has no compare-and-set: what another check has overwritten is written again.
    An `Extra` that is somebody else's is left alone."""

    def __init__(self, spec: Spec, slurm: Slurm, allowance: Allowance, at: str) -> None:
        self._spec, self._slurm, self._allowance, self._at = spec, slurm, allowance, at
        self._drains: dict[str, bool] = {}
        self._noted: dict[str, Outcome] = {}

    def may_drain(self, node: str) -> bool:
        """True if a failure of that node drains it. Raises SlurmError."""
        if self._spec.wish == "none":
            return False
        if node not in self._drains:
            most = self.most_drained(node)
            if has_room := self._allowance.has_room(node, most):  # other checks may have taken nodes since this run began
                self._allowance.add(held_by_checks(self._slurm.all_briefly(), self._at))
            self._drains[node] = has_room and self._allowance.take(node, most)
        return self._drains[node]

    def most_drained(self, node: str) -> int:
        """Nodes of that node's set that checks may hold drained, for this check to drain another."""
        return self._spec.targets[node].max_drained if node in self._spec.targets else 0

    def write(self, outcomes: Mapping[str, Outcome]) -> bool:
        """One call for all nodes that get the same text. A skipped node keeps its last result; one that this run has noted keeps that.

        False if some node has no room for it.
        """
        results = {name: self._noted.setdefault(name, outcome) for name, outcome in outcomes.items() if outcome.result != SKIPPED}
        is_taken = False
        for _ in range(_MOST_WRITES + len(results) // _MOST_TEXTS if results else 0):
            nodes = self._slurm.nodes(next(iter(results)) if len(results) == 1 else "")
            texts: dict[str, list[str]] = {}
            for name in sorted(results.keys() & nodes.keys()):
                text = self._text(nodes[name], results[name])
                is_taken = is_taken or text is None
                if text is not None and text != nodes[name].extra:
                    texts.setdefault(text, []).append(name)
            if not texts:
                break
            for text, names in list(texts.items())[:_MOST_TEXTS]:
                self._slurm.record(sorted(names), text)
        return not is_taken

    def _text(self, node: Node, outcome: Outcome) -> str | None:
        before = read_results(node.extra)
        if before is None:
            return None
        drains = outcome.result == FAILED and not outcome.is_spared and self.may_drain(node.name)
        earlier = before.get(self._spec.name)
        text = reasons.plain(outcome.found)
        asked = (self._spec.asked or {}).get(node.name)
        wish, driver = self._spec.wish, outcome.driver
        result = following(earlier, outcome.result, text, self._at, self._spec.cause, drains, driver=driver, asked=asked, wish=wish)
        return with_result(node.extra, self._spec.name, seen_on(node.instance, earlier, result))


def check_node(
    spec: Spec, name: str, step: Step, slurm: Slurm, notes: Notes, run: Callable[[Node, Reservation | None], Outcome]
) -> Outcome:
    """Takes one node from its first step to the end of this run, with a fresh reading after every write and every job."""
    taken: list[Step] = []
    outcome: Outcome | None = None
    node: Node | None = None
    is_noted = False
    while not isinstance(step, Done):
        if len(taken) == _MOST_STEPS:
            return Outcome(UNKNOWN, f"no end after {_MOST_STEPS} steps; the last one was {step}")
        taken.append(step)
        match step:
            case Run(held):
                outcome = run(slurm.nodes(name)[name], held)
                if outcome.result == PASSED and not held:
                    return outcome
            case Note() if outcome:
                is_noted = True
                if not notes.write({name: outcome}):
                    outcome = replace(outcome, found=f"{outcome.found}; {_NO_ROOM}")
                if outcome.result == FAILED and not outcome.is_spared and not notes.may_drain(name):
                    most = notes.most_drained(name)
                    spared = f"{outcome.found}; not drained: all checks together may hold no more than {most} of its set"
                    told = f"{outcome.found}; not drained: its wish is none"
                    outcome = replace(outcome, found=told if spec.wish == "none" else spared, is_spared=True)
            case Reserve(held):
                if not slurm.reserve(held):
                    return BUSY
            case _:
                apply(name, step, slurm)
        held, node = slurm.reservations().get(name), slurm.nodes(name).get(name)
        step = next_step(spec.name, name, node, held, outcome, is_noted, name in spec.asked_nodes, spec.longest_s)
    return replace(step.outcome, action=actions(taken, step.outcome, node))


def apply(name: str, step: Step, slurm: Slurm) -> None:
    """Makes one write."""
    match step:
        case Resume():
            slurm.resume(name)
        case Drain(reason):
            slurm.drain(name, reason)
        case Release(held):
            slurm.release(held)
        case _:
            raise TypeError(f"{step} is not a write")


def run_all(
    spec: Spec,
    slurm: Slurm,
    report: Callable[[str, Outcome], None],
    at: str,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Runs the check on all nodes, at most `parallel` at a time; reports each as it ends. Raises SlurmError if Slurm cannot be read.

    A node that only other checks use is waited for; one with a user's job is skipped. `at` is when the run began, RFC 3339 in UTC.
    """
    nodes, reservations = slurm.nodes(), slurm.reservations()
    planned = plan_checks(spec.name, spec.targets, nodes, reservations, spec.asked_nodes, spec.longest_s)
    steps = in_order(spec.name, spec.after, {name: step for name, step in planned.items() if spec.is_for(name)}, nodes)
    budget = budget_of(spec, slurm)
    notes = Notes(spec, slurm, Allowance(held_by_checks(nodes, at, reservations)), at)
    end = clock() + spec.deadline_s
    program = Path(__file__).with_name(f"{spec.check}.py")
    outcomes: dict[str, Outcome] = {}
    failed_at: list[float] = []

    def work(name: str) -> None:
        step: Step = steps[name]

        def run(node: Node, held: Reservation | None) -> Outcome:
            target = spec.targets.get(name)
            if target is None:
                return Outcome(UNKNOWN, "no longer in the node sets of this check")
            job_began = time.monotonic()
            try:
                return budget.refusal() or slurm.run(spec.name, node, program, target.settings, spec.timeout_s, target.gpus, held)
            finally:
                budget.spend(time.monotonic() - job_began)

        def again() -> Step:
            seen, held = slurm.nodes(name).get(name), slurm.reservations().get(name)
            return next_step(spec.name, name, seen, held, None, is_asked=name in spec.asked_nodes, longest_s=spec.longest_s)

        try:
            began = clock()
            if isinstance(step, (Drain, Release, Resume)):  # others may have had their turn since the first reading
                step = again()
            late = ENDED if slurm.is_ending else Outcome(UNKNOWN, "no time left in this run") if began > end else None
            outcome = late or check_node(spec, name, step, slurm, notes, run)
            refusals = int(outcome == NOT_STARTED)
            while (
                refusals < _REFUSALS if outcome == NOT_STARTED else outcome == BUSY and slurm.is_held_by_checks(name)
            ) and clock() <= min(end, began + OTHERS_S):
                pause(PAUSE_S)
                outcome = check_node(spec, name, again(), slurm, notes, run)
                refusals += outcome == NOT_STARTED
            for _ in range(_LAUNCH_TRIES if outcome == NOT_BEGUN and spec.name != LAUNCH else 0):
                if failure := failures(read_results(slurm.nodes(name)[name].extra) or {}).get(LAUNCH):
                    outcome = Outcome(UNKNOWN, f"the node could not start its job: {failure.found}")
                    break
                pause(PAUSE_S)
        except SlurmError as error:
            outcome = Outcome(UNKNOWN, f"Slurm: {error}")
        outcomes[name] = outcome
        if outcome.result == FAILED:
            failed_at.append(clock())
        report(name, outcome)

    with ThreadPoolExecutor(max_workers=spec.parallel) as pool:
        for done in [pool.submit(work, name) for name in steps]:
            done.result()
    notes.write(outcomes)
    if failed_at:
        pause(max(0.0, max(failed_at) + _SETTLES_S + _SETTLES_PER_NODE_S * len(nodes) - clock()))
        notes.write(outcomes)


def budget_of(spec: Spec, slurm: Slurm) -> Budget:
    """What is left of the check's budget, by Slurm's accounting: so it holds across runs."""
    used_s = 0.0 if spec.budget_node_minutes is None else slurm.node_seconds(spec.name, DAY_S)
    return Budget(spec.budget_node_minutes, used_s)


def end_on_signal(slurm: Slurm) -> None:
    """Has SIGTERM end this run: jobs of checks end, drains and reservations are put back, and no further node is begun. A job, drain or
    reservation whose end hangs is left behind. That is safe at any point: the next run finishes it."""

    def end_at_once(_number: int, _frame: FrameType | None) -> None:
        os._exit(128 + signal.SIGTERM)

    def end(_number: int, _frame: FrameType | None) -> None:
        signal.alarm(_ENDS_S)
        slurm.end()

    signal.signal(signal.SIGALRM, end_at_once)
    signal.signal(signal.SIGTERM, end)  # Python as process 1 would not end on it by itself


def exit_code(slurm: Slurm) -> int:
    """Of a run that has come to its end."""
    return 128 + signal.SIGTERM if slurm.is_ending else 0


def write_line(check: str, about: dict[str, Any], at: str, outcome: Outcome) -> None:
    """One line of the log."""
    logs.write(check_line("check", check, about, at, outcome))


def main() -> int:
    spec, slurm = read_spec(sys.argv[1], os.environ.get(variables.ASKED_NODES, "")), Slurm()
    end_on_signal(slurm)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        run_all(spec, slurm, lambda name, outcome: write_line(spec.name, {"node": name}, at, outcome), at)
    except SlurmError as error:
        logs.write(logs.line("check", f"check {spec.name}: {error}", logs.ERROR, check=spec.name))
        return 1
    return exit_code(slurm)


if __name__ == "__main__":
    take_stderr("check")
    sys.exit(main())
