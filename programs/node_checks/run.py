"""The program of a health check's CronJob: runs one check on every idle node of its sets, drains what fails, lifts what passes again.

`python3 -m programs.node_checks.run '<spec>'`, as SlurmUser. It prints one JSON line a node, and records the last result in the
node's `Extra` in Slurm, under the key `slipway`; an `Extra` that is not JSON belongs to someone else and is left alone.
Exit code: 0 when every node was read, whatever was found; 1 when Slurm could not be read at all.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import Any

from slurm.scontrol import Node

from .plan import (
    BUSY,
    PASSED,
    SKIPPED,
    UNKNOWN,
    Done,
    Drain,
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
    reason_prefix,
)
from .slurm import Slurm, SlurmError

_MOST_STEPS = 12
_OTHERS_S = 120
"""Seconds that a check waits for the jobs of other checks on a node. Schedules often name the same minute."""
_PAUSE_S = 1.0
_MOST_WRITES = 5


@dataclass(frozen=True)
class Target:
    """What the check needs to know of one node."""

    settings: dict[str, Any]
    gpus: int
    """GPUs that the check's job asks for: all of the node's for a check of GPUs, else none."""


@dataclass(frozen=True)
class Spec:
    """One check, as the component wrote it."""

    name: str
    check: str
    timeout_s: int
    parallel: int
    deadline_s: int
    """Seconds after which no further node is begun."""
    max_drained: int
    """Nodes that this check may hold drained at once."""
    targets: Mapping[str, Target]


def read_spec(text: str) -> Spec:
    """From the JSON that components/health_checks.py writes; nodes are `<set>-<ordinal>`."""
    raw = json.loads(text)
    targets = {
        f"{each['name']}-{ordinal}": Target(each["settings"], each["gpus"]) for each in raw["nodeSets"] for ordinal in range(each["size"])
    }
    return Spec(raw["name"], raw["check"], raw["timeoutS"], raw["parallel"], raw["deadlineS"], raw["maxDrained"], targets)


class Allowance:
    """How many more nodes a check may drain: when most of a cluster fails, the check or what they share is broken, not the nodes."""

    def __init__(self, most: int, drained: int) -> None:
        self.most = most
        self._left = most - drained
        self._lock = Lock()

    def take(self) -> bool:
        """True when one more node may be drained, and counts it."""
        with self._lock:
            self._left -= 1
            return self._left >= 0


def check_node(
    spec: Spec, name: str, step: Step, slurm: Slurm, allowance: Allowance, run: Callable[[Node, Reservation | None], Outcome]
) -> Outcome:
    """Takes one node from its first step to the end of this run, reading it afresh after every write and every job."""
    taken: list[Step] = []
    outcome: Outcome | None = None
    held: Reservation | None = None
    while not isinstance(step, Done):
        if len(taken) == _MOST_STEPS:
            return Outcome(UNKNOWN, f"no end after {_MOST_STEPS} steps; the last one was {step}")
        # With a reservation the node was drained before: draining it again adds none.
        if isinstance(step, Drain) and outcome and not held and not allowance.take():
            return replace(outcome, found=f"{outcome.found}; not drained: this check holds {allowance.most} nodes already, the most it may")
        taken.append(step)
        if isinstance(step, Run):
            outcome = run(slurm.nodes(name)[name], step.reservation)
        else:
            apply(name, step, slurm)
        if isinstance(step, Run) and outcome and outcome.result == PASSED and not step.reservation:
            return outcome
        held = slurm.reservations(spec.name).get(name)
        step = next_step(spec.name, name, slurm.nodes(name).get(name), held, outcome)
    return replace(step.outcome, action=actions(taken, step.outcome))


def apply(name: str, step: Step, slurm: Slurm) -> None:
    """Makes one write."""
    match step:
        case Reserve(held):
            slurm.reserve(held)
        case Resume():
            slurm.resume(name)
        case Drain(reason):
            slurm.drain(name, reason)
        case Release(held):
            slurm.release(held)
        case Run() | Done():
            raise TypeError(f"{step} is not a write")


def extra_with(extra: str, check: str, outcome: Outcome, at: str) -> str | None:
    """A node's `Extra` with a check's last result in it; None when the field is someone else's."""
    try:
        fields: Any = json.loads(extra or "{}")
        fields.setdefault("slipway", {})[check] = {"result": outcome.result, "at": at}
    except (AttributeError, TypeError, ValueError):
        return None
    return json.dumps(fields, separators=(",", ":"), sort_keys=True)


def run_all(
    spec: Spec,
    slurm: Slurm,
    report: Callable[[str, Outcome], None],
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Runs the check on all nodes, at most `parallel` at a time; reports each as it ends. Raises SlurmError when Slurm cannot be read.

    A node that only other checks have is waited for; one that has a user's job is skipped.
    """
    nodes = slurm.nodes()
    reservations = slurm.reservations(spec.name)
    steps = plan_checks(spec.name, spec.targets, nodes, reservations)
    drained = {node.name for node in nodes.values() if "DRAIN" in node.state.flags and node.reason.startswith(reason_prefix(spec.name))}
    allowance = Allowance(spec.max_drained, len(drained | reservations.keys()))
    end = clock() + spec.deadline_s
    program = Path(__file__).with_name(f"{spec.check}.py")
    left_over = Target({}, 0)

    def work(name: str) -> None:
        step = steps[name]
        target = spec.targets.get(name, left_over)

        def run(node: Node, held: Reservation | None) -> Outcome:
            if name not in spec.targets:
                return Outcome(UNKNOWN, "no longer in the node sets of this check")
            return slurm.run(spec.name, node, program, target.settings, spec.timeout_s, target.gpus, held)

        try:
            began = clock()
            outcome = Outcome(UNKNOWN, "no time left in this run") if began > end else check_node(spec, name, step, slurm, allowance, run)
            while outcome == BUSY and clock() <= min(end, began + _OTHERS_S) and slurm.is_held_by_checks(name):
                pause(_PAUSE_S)
                again = next_step(spec.name, name, slurm.nodes(name).get(name), slurm.reservations(spec.name).get(name), None)
                outcome = check_node(spec, name, again, slurm, allowance, run)
        except SlurmError as error:
            outcome = Outcome(UNKNOWN, f"Slurm: {error}")
        report(name, outcome)

    with ThreadPoolExecutor(max_workers=spec.parallel) as pool:
        for done in [pool.submit(work, name) for name in steps]:
            done.result()


def record(spec: Spec, slurm: Slurm, outcomes: Mapping[str, Outcome], at: str) -> None:
    """Writes the results into the nodes' `Extra`, one call for all nodes that get the same text. A skipped node keeps its last result.

    Slurm has no compare-and-set: what another check has overwritten meanwhile is written again.
    """
    for _ in range(_MOST_WRITES):
        nodes = slurm.nodes()
        texts: dict[str, list[str]] = {}
        for name, outcome in outcomes.items():
            text = extra_with(nodes[name].extra, spec.name, outcome, at) if name in nodes and outcome.result != SKIPPED else None
            if text is not None and text != nodes[name].extra:
                texts.setdefault(text, []).append(name)
        if not texts:
            return
        for text, names in texts.items():
            slurm.record(names, text)


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def main() -> int:
    # Python as process 1 would not end on SIGTERM. Ending at once is safe at any point: the next run finishes what this one began.
    signal.signal(signal.SIGTERM, _end_at_once)
    spec, slurm = read_spec(sys.argv[1]), Slurm()
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    outcomes: dict[str, Outcome] = {}

    def report(name: str, outcome: Outcome) -> None:
        outcomes[name] = outcome
        sys.stdout.write(json.dumps({"check": spec.name, "node": name, "at": at, **asdict(outcome)}) + "\n")
        sys.stdout.flush()

    try:
        run_all(spec, slurm, report)
        record(spec, slurm, outcomes, at)
    except SlurmError as error:
        sys.stderr.write(f"check {spec.name}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
