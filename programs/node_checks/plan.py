"""Decides what a health check does next to a node. Pure: it reads nothing, writes nothing and keeps nothing.

A check notes a failure first, and drains the node then. Only the NodeSet controller lifts drains. A drained node is looked at again in a
reservation, where it is resumed, checked, and drained again before the reservation goes. Every decision follows from what Slurm shows, so
the next run finishes one that was killed between any two writes. Slurm has no compare-and-set: we may overwrite what an administrator wrote
milliseconds before.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf

from slurm import reasons
from slurm.check_results import FAILED, PASSED, RESERVATION, SKIPPED, UNKNOWN, Driver
from slurm.scontrol import Node
from slurm.states import is_busy, is_idle, may_be_drained, waits_for_power

_ABSENT = frozenset({"DOWN", "ERROR", "FAIL", "UNKNOWN", "NOT_RESPONDING", "INVALID_REG", "REBOOT_ISSUED", "REBOOT_REQUESTED", "BLOCKED"})
_ASLEEP = frozenset({"POWER_DOWN", "FUTURE", "DYNAMIC_FUTURE"})
_KEPT = frozenset({"RESERVED", "MAINTENANCE", "UNDRAIN"})
_ASKED = "(asked) "
"""In the comment of a reservation that belongs to a run for the NodeSet controller. Such a run may come beside one of the schedule, which
keeps its hands off it."""


@dataclass(frozen=True)
class Reservation:
    """A reservation that one check holds on one node while it looks again."""

    name: str
    node: str
    comment: str
    """`slipway: check <name>: <reason>`: the check that holds it, and the drain reason that the node had when it was reserved. Of earlier
    releases the reason alone, which was always one of the check's own."""
    partners: tuple[str, ...] = ()
    """Nodes that pass, reserved beside it: a test of the network needs another node."""
    age_s: float = 0.0
    """Seconds since it was made."""

    def is_of(self, check: str) -> bool:
        """True for a reservation of that check."""
        return self.comment.startswith(reason_prefix(check))

    def is_for_run(self, check: str, is_asked: bool, longest_s: float) -> bool:
        """True for a reservation that a run of the check may take over: one of its own, or of a killed run of its kind. One of the other
        kind may belong to a run that is under way, until it is older than a run can be."""
        return self.is_of(check) and (self.age_s > longest_s or is_asked == self.comment.startswith(reason_prefix(check) + _ASKED))

    def reason(self, check: str) -> str:
        """The drain reason that the node had."""
        inner = self.comment.removeprefix(reason_prefix(check)).removeprefix(_ASKED)
        return inner if reasons.is_check(inner) or reasons.awaits_checks(inner) else self.comment


@dataclass(frozen=True)
class Outcome:
    """What a check found on a node, and what came of it."""

    result: str
    """`passed`, `failed`, `unknown` (the check could not run) or `skipped` (it was not the moment to run it)."""
    found: str
    action: str = ""
    """`drained`, `kept drained`, `cleared` (nothing of this check holds the node any more) or nothing."""
    is_spared: bool = False
    """This one failed and keeps its jobs: checks hold as many nodes as they may, or a link is at fault."""
    driver: Driver | None = None
    """The driver of the node's GPUs, where the check has met it."""


BUSY = Outcome(SKIPPED, "busy")
"""Jobs have the node, or another check looks at it."""
PREEMPTED = Outcome(SKIPPED, "a user's job took the node meanwhile")
NOT_BEGUN = Outcome(SKIPPED, "its job ended before it had begun")
"""Slurm took the job back as it started."""
NOT_STARTED = Outcome(UNKNOWN, "Slurm did not start the check, although the node is not busy")
"""Slurm refused the job, and a moment later the node is idle: another check may have ended in between."""
ENDED = Outcome(SKIPPED, "this run was ended")
"""By SIGTERM, before the check had an answer."""


@dataclass(frozen=True)
class Reserve:
    """Keep everyone else off the node; remember why it is drained."""

    reservation: Reservation


@dataclass(frozen=True)
class Resume:
    """Lift the drain, inside our reservation."""


@dataclass(frozen=True)
class Run:
    """Run the check as a job on the node, inside our reservation where there is one."""

    reservation: Reservation | None


@dataclass(frozen=True)
class Note:
    """Write down what this run found, where the NodeSet controller sees it."""


@dataclass(frozen=True)
class Drain:
    """Drain the node with this reason."""

    reason: str


@dataclass(frozen=True)
class Release:
    """Give our reservation up."""

    reservation: Reservation


@dataclass(frozen=True)
class Done:
    """Nothing more to do in this run."""

    outcome: Outcome


Step = Reserve | Resume | Run | Note | Drain | Release | Done


def reason_prefix(check: str) -> str:
    """How every drain reason of one check starts. No check's prefix starts another's: names hold no colon."""
    return f"{reasons.CHECK}{check}: "


def reserve(check: str, node: Node, is_asked: bool = False) -> Reservation:
    """The reservation in which a check looks again at a drained node. Slurm refuses a second one of the name."""
    comment = f"{reason_prefix(check)}{_ASKED if is_asked else ''}{node.reason}"
    return Reservation(f"{RESERVATION}{node.name}", node.name, comment)


def plan_checks(
    check: str,
    chosen: Iterable[str],
    nodes: Mapping[str, Node],
    reservations: Mapping[str, Reservation],
    asked: Collection[str] = (),
    longest_s: float = inf,
) -> dict[str, Step]:
    """The first step for each chosen node, and for each other node that an earlier run left reserved; in a stable order.

    `nodes` and `reservations` (those of all checks) are by node name, from one reading each. `asked` are nodes that the NodeSet controller
    wants checked; a run lasts `longest_s` seconds at most.
    """
    names = dict.fromkeys([*chosen, *sorted(name for name, held in reservations.items() if held.is_of(check))])
    return {
        name: next_step(check, name, nodes.get(name), reservations.get(name), None, is_asked=name in asked, longest_s=longest_s)
        for name in names
    }


def next_step(
    check: str,
    name: str,
    node: Node | None,
    held: Reservation | None,
    outcome: Outcome | None,
    is_noted: bool = False,
    is_asked: bool = False,
    longest_s: float = inf,
) -> Step:
    """The next step for one node, from a fresh reading; `outcome` is what the check found in this run, None before it ran.

    `is_noted` says that the outcome is written down, `is_asked` that the NodeSet controller waits for the check before it lifts a drain of
    its own. The truth table is tests/unit/programs/node_checks/test_plan.py.
    """
    ours = held if held and held.is_for_run(check, is_asked, longest_s) else None
    if node is None:
        return Release(ours) if ours else Done(outcome or Outcome(UNKNOWN, f"Slurm has no node {name}"))
    if outcome and outcome.result == FAILED and not is_noted:
        return Note()
    if held and not ours:
        return Done(outcome or BUSY)
    is_drained = "DRAIN" in node.state.flags
    if ours and is_drained and outcome and outcome.result == PASSED and not is_noted:
        return Note()
    if is_drained and not (reasons.is_check(node.reason) or (is_asked and reasons.awaits_checks(node.reason))):
        # Somebody else's drain holds the node, and is left as it is.
        return Release(ours) if ours else Done(outcome or Outcome(SKIPPED, _drained_by(node)))
    if ours:
        return _again(node, ours, outcome) if is_drained else _resumed(check, node, ours, outcome, is_noted)
    if outcome:
        return Done(outcome) if is_drained else _found(check, node, outcome)
    if hindrance := _hindrance(node):
        return Done(hindrance)
    return Reserve(reserve(check, node, is_asked)) if is_drained else Run(None)


def actions(steps: Iterable[Step], outcome: Outcome, node: Node | None) -> str:
    """What came of an outcome, from the steps taken and the node after them: `drained`, `cleared`, `kept drained` or nothing.

    The controller may have been faster than the check, once the failure was noted.
    """
    kinds = {type(step) for step in steps}
    is_held = node is not None and "DRAIN" in node.state.flags and reasons.is_check(node.reason)
    if outcome.result == FAILED and not outcome.is_spared and (Drain in kinds or (Note in kinds and is_held)):
        return "drained"
    if outcome.result == PASSED and Release in kinds:
        return "cleared"
    return "kept drained" if Release in kinds else ""


def _found(check: str, node: Node, outcome: Outcome) -> Step:
    """After a run on a node without a drain."""
    if outcome == BUSY and not is_busy(node.state):
        return Done(NOT_STARTED)
    if outcome.result != FAILED or outcome.is_spared:
        return Done(outcome)
    if _is_down_on_purpose(node):
        return Done(outcome)
    if not may_be_drained(node.state):
        why = f"not drained while Slurm wakes the node ({node.state}): that would end its job"
        return Done(replace(outcome, found=f"{outcome.found}; {why}"))
    return Drain(reasons.check(check, outcome.found))


def _again(node: Node, held: Reservation, outcome: Outcome | None) -> Step:
    """Drained by a check, in the reservation of this one: before or after the second look."""
    is_worth_a_look = outcome is None and _hindrance(node, in_reservation=True) is None
    return Resume() if is_worth_a_look else Release(held)


def _resumed(check: str, node: Node, held: Reservation, outcome: Outcome | None, is_noted: bool) -> Step:
    """Resumed in our reservation: check it, and drain it again. The controller may have lifted that drain, once the pass was noted."""
    if outcome is None and not (outcome := _hindrance(node, in_reservation=True)):
        return Run(held)
    if outcome.result == PASSED and is_noted:
        return Release(held)
    if outcome.result == SKIPPED and outcome != ENDED and is_busy(node.state):
        return Done(Outcome(UNKNOWN, "the job of an earlier run has not ended; the node stays reserved until the next run"))
    return Drain(node.reason if _is_down_on_purpose(node) else held.reason(check))


def _is_down_on_purpose(node: Node) -> bool:
    """True if a person has set the node down meanwhile: their reason stays."""
    return "DOWN" in node.state.flags and reasons.is_on_purpose(node.reason)


def _hindrance(node: Node, in_reservation: bool = False) -> Outcome | None:
    """Why the check cannot or should not run on the node now; None when it can."""
    flags = node.state.flags
    text = " ".join(sorted(flags))
    if flags & _ABSENT:
        return Outcome(UNKNOWN, f"the node does not answer: {text}")
    if not node.state.is_known:
        return Outcome(UNKNOWN, f"in a state that is not known here: {text}")
    if waits_for_power(node.state) or flags & _ASLEEP:
        return Outcome(SKIPPED, f"powered down: {text}")
    if is_busy(node.state):
        return BUSY
    if flags & _KEPT and not in_reservation:
        return Outcome(SKIPPED, f"kept for others: {text}")
    return None if is_idle(node.state) else Outcome(UNKNOWN, f"in a state that is not known here: {text}")


def _drained_by(node: Node) -> str:
    return f"drained by {node.reason_user or 'others'}: {node.reason}"
