"""Decides what a health check does next to a node. Pure: it reads nothing, writes nothing and keeps nothing.

A check that failed drains its node; a drained node runs no jobs, so looking again takes a reservation that keeps everyone else out while
the node is resumed and checked. Every decision follows from what Slurm shows, so a run that was killed between any two writes is finished
by the next one: a node is resumed only inside our reservation, and the reservation goes only once the node has passed or is drained again.
Slurm has no compare-and-set: between our last look at a node and our write, an administrator has some milliseconds to be overtaken.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from slurm import reasons
from slurm.scontrol import Node
from slurm.states import is_busy, is_idle, may_be_drained, waits_for_power

PASSED, FAILED, UNKNOWN, SKIPPED = "passed", "failed", "unknown", "skipped"

_ABSENT = frozenset({"DOWN", "ERROR", "FAIL", "UNKNOWN", "NOT_RESPONDING", "INVALID_REG", "REBOOT_ISSUED", "REBOOT_REQUESTED", "BLOCKED"})
_ASLEEP = frozenset({"POWER_DOWN", "FUTURE", "DYNAMIC_FUTURE"})
_KEPT = frozenset({"RESERVED", "MAINTENANCE", "UNDRAIN"})
_LONGEST_REASON = 240


@dataclass(frozen=True)
class Reservation:
    """A reservation that one check holds on one node while it looks again."""

    name: str
    node: str
    reason: str
    """The drain reason that the node had when it was reserved."""


@dataclass(frozen=True)
class Outcome:
    """What a check found on a node, and what came of it."""

    result: str
    """`passed`, `failed`, `unknown` (the check could not run) or `skipped` (it was not the moment to run it)."""
    found: str
    action: str = ""
    """`drained`, `kept drained`, `lifted` or nothing."""


BUSY = Outcome(SKIPPED, "busy")
"""Jobs have the node."""


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


Step = Reserve | Resume | Run | Drain | Release | Done


def drain_reason(check: str, found: str) -> str:
    """`slipway: check <check>: <found>`, on one line of printable ASCII without quotes."""
    text = "".join(letter if " " <= letter <= "~" and letter not in "\"'" else " " for letter in found)
    return f"{reason_prefix(check)}{' '.join(text.split())}"[:_LONGEST_REASON]


def reason_prefix(check: str) -> str:
    """How every drain reason of one check starts. No check's prefix starts another's: names hold no colon."""
    return f"{reasons.CHECK}{check}: "


def reservation_name(check: str, node: str) -> str:
    return f"slipway-check-{check}-{node}"


def plan_checks(check: str, chosen: Iterable[str], nodes: Mapping[str, Node], reservations: Mapping[str, Reservation]) -> dict[str, Step]:
    """The first step for each chosen node, and for each other node that an earlier run left reserved; in a stable order.

    `nodes` and `reservations` (the ones of this check) are by node name, from one reading each.
    """
    names = dict.fromkeys([*chosen, *sorted(reservations)])
    return {name: next_step(check, name, nodes.get(name), reservations.get(name), None) for name in names}


def next_step(check: str, name: str, node: Node | None, held: Reservation | None, outcome: Outcome | None) -> Step:
    """The next step for one node, from a fresh reading; `outcome` is what the check found in this run, None before it ran.

    The truth table is tests/unit/programs/node_checks/test_plan.py.
    """
    if node is None:
        return Release(held) if held else Done(outcome or Outcome(UNKNOWN, f"Slurm has no node {name}"))
    is_drained = "DRAIN" in node.state.flags
    if is_drained and not node.reason.startswith(reason_prefix(check)):
        # Somebody else's drain holds the node: nothing of ours is added, changed or lifted.
        return Release(held) if held else Done(outcome or Outcome(SKIPPED, _drained_by(node)))
    if held:
        return _again(node, held, outcome) if is_drained else _resumed(check, node, held, outcome)
    if outcome:
        if outcome.result == SKIPPED and not is_busy(node.state):
            return Done(Outcome(UNKNOWN, "Slurm did not start the check, although the node is not busy"))
        if outcome.result == FAILED and not is_drained and not may_be_drained(node.state):
            return Done(
                replace(outcome, found=f"{outcome.found}; not drained while Slurm wakes the node ({node.state}): that would end its job")
            )
        return Drain(drain_reason(check, outcome.found)) if outcome.result == FAILED and not is_drained else Done(outcome)
    if hindrance := _hindrance(node):
        return Done(hindrance)
    return Reserve(Reservation(reservation_name(check, name), name, node.reason)) if is_drained else Run(None)


def actions(steps: Iterable[Step], outcome: Outcome) -> str:
    """What came of an outcome, from the steps taken: `drained`, `lifted`, `kept drained` or nothing."""
    kinds = {type(step) for step in steps}
    if outcome.result == FAILED and Drain in kinds:
        return "drained"
    if outcome.result == PASSED and Release in kinds:
        return "lifted"
    return "kept drained" if Release in kinds else ""


def _again(node: Node, held: Reservation, outcome: Outcome | None) -> Step:
    """Drained by this check, and in its reservation: before the second look, or after one that did not lift the drain."""
    is_worth_a_look = outcome.result == PASSED if outcome else _hindrance(node, in_reservation=True) is None
    return Resume() if is_worth_a_look else Release(held)


def _resumed(check: str, node: Node, held: Reservation, outcome: Outcome | None) -> Step:
    """Resumed in our reservation: check it, and let it go only when it has passed or is drained again."""
    if outcome is None and not (outcome := _hindrance(node, in_reservation=True)):
        return Run(held)
    if outcome.result == PASSED:
        return Release(held)
    if outcome.result == SKIPPED and is_busy(node.state):
        return Done(Outcome(UNKNOWN, "the job of an earlier run has not ended; the node stays reserved until the next run"))
    return Drain(drain_reason(check, outcome.found) if outcome.result == FAILED else held.reason)


def _hindrance(node: Node, in_reservation: bool = False) -> Outcome | None:
    """Why the check cannot or should not run on the node now; None when it can."""
    words = node.state.flags
    flags = " ".join(sorted(words))
    if words & _ABSENT:
        return Outcome(UNKNOWN, f"the node does not answer: {flags}")
    if not node.state.is_known:
        return Outcome(UNKNOWN, f"in a state that is not known here: {flags}")
    if waits_for_power(node.state) or words & _ASLEEP:
        return Outcome(SKIPPED, f"powered down: {flags}")
    if is_busy(node.state):
        return BUSY
    if words & _KEPT and not in_reservation:
        return Outcome(SKIPPED, f"kept for others: {flags}")
    return None if is_idle(node.state) else Outcome(UNKNOWN, f"in a state that is not known here: {flags}")


def _drained_by(node: Node) -> str:
    return f"drained by {node.reason_user or 'others'}: {node.reason}"
