"""The meaning of a Slurm node's state, a list in REST such as ["IDLE", "CLOUD", "DRAIN"]: a base state and flags.

Unknown is busy: a state that is empty or holds an unknown word is neither idle nor drained. Truth table: tests/support/law.py.
"""

from collections.abc import Iterable
from functools import cached_property, lru_cache

from slurm.records import record

BASE = frozenset({"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"})
FLAGS = frozenset(
    {
        *("BLOCKED", "CLOUD", "COMPLETING", "DRAIN", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "EXTERNAL", "FAIL", "INVALID_REG", "MAINTENANCE"),
        *("NOT_RESPONDING", "PERFCTRS", "PLANNED", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_DRAIN", "POWER_UP"),
        *("REBOOT_CANCELED", "REBOOT_ISSUED", "REBOOT_REQUESTED", "RESERVED", "RESUME", "UNDRAIN", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE"),
    }
)
"""Source: the enumeration of node states in slurmrestd 26.05's OpenAPI document."""

_WITH_JOBS = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_WITHOUT_POWER = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_UP"})
"""Slurm does not dial such a node until its slurmd registers. POWER_DOWN, a wish for later, is not among them."""


@record
class NodeState:
    """The state of one node: every word of it, the base state too."""

    flags: frozenset[str]

    @cached_property
    def is_known(self) -> bool:
        """True when exactly one base state is there, and every word is known."""
        return len(self.flags & BASE) == 1 and "UNKNOWN" not in self.flags and self.flags <= BASE | FLAGS

    def __str__(self) -> str:
        return "+".join([*sorted(self.flags & BASE), *sorted(self.flags - BASE)])


@lru_cache(maxsize=4096)
def _interned(flags: frozenset[str]) -> NodeState:
    return NodeState(flags)


def node_state(flags: Iterable[str]) -> NodeState:
    """The state from REST's list. Equal states share one object, since thousands of nodes have the same few."""
    return _interned(frozenset(flags))


def is_drained(state: NodeState) -> bool:
    """True if no job can run or start on the node: DRAIN, and none of ALLOCATED, MIXED, COMPLETING, UNDRAIN.

    A node whose only job is suspended is MIXED, as memory is always among what jobs take here (measured on 26.05). Source: Slurm's node
    state flags.
    """
    return state.is_known and "DRAIN" in state.flags and not state.flags & _WITH_JOBS and "UNDRAIN" not in state.flags


def is_idle(state: NodeState) -> bool:
    """True when a reading says that no job is on the node now; a job may start the next moment."""
    return state.is_known and "IDLE" in state.flags and "COMPLETING" not in state.flags


def is_busy(state: NodeState) -> bool:
    """True unless a reading says that no job can be on the node."""
    return not (is_idle(state) or is_drained(state) or is_off(state))


def is_off(state: NodeState) -> bool:
    """True if Slurm has powered the node down, or is doing so, and no job is left on it. POWER_DOWN, a wish for later, does not count."""
    return state.is_known and bool(state.flags & {"POWERED_DOWN", "POWERING_DOWN"}) and not state.flags & (_WITH_JOBS | {"POWERING_UP"})


def may_be_removed(state: NodeState) -> bool:
    """True if no job can be on the node, or start there without a command to Slurm: it is drained or off. Its pod and line may go."""
    return is_drained(state) or is_off(state)


def waits_for_power(state: NodeState) -> bool:
    """True while only a registration puts the node into service: Slurm considers it off or on its way up or down, and never contacts it."""
    return bool(state.flags & _WITHOUT_POWER)


def is_waking(state: NodeState) -> bool:
    """True if Slurm is waking the node, usually for a job. A drain would end that job (NODE_FAIL), so it waits until the node is up.

    Source: measured on 26.05; a job's nodes show MIXED or ALLOCATED with POWERED_DOWN for a moment before POWERING_UP.
    """
    wakes = state.flags & {"POWERING_UP", "POWER_UP"} or (waits_for_power(state) and state.flags & {"ALLOCATED", "MIXED"})
    return state.is_known and bool(wakes)


def may_be_drained(state: NodeState) -> bool:
    """True for a node that is up, or off without a job, and not drained yet. An unknown state is busy and left alone."""
    return state.is_known and "DRAIN" not in state.flags and not is_waking(state)


def has_jobs_begun(state: NodeState) -> bool:
    """True if jobs have processes on the node. On a node that waits for power they have not begun."""
    return state.is_known and bool(state.flags & {"ALLOCATED", "MIXED"}) and not waits_for_power(state)


def is_powered_down(state: NodeState) -> bool:
    """True when the node is off, and its time to power down is over."""
    return is_off(state) and "POWERED_DOWN" in state.flags and "POWERING_DOWN" not in state.flags


def wants_no_pod(state: NodeState) -> bool:
    """True for a node without a pod that Slurm has powered down and that no job waits for, by the known words. If a pod is there, an
    unknown word may mean a job: see `is_off`."""
    return "POWERED_DOWN" in state.flags and not state.flags & {"POWERING_UP", "POWER_UP", *_WITH_JOBS}


def is_released_by_resume(state: NodeState) -> bool:
    """True if the node powers down and RESUME only ends the wait for SuspendTimeout: there is no drain or failure that it would lift."""
    hindering = {"POWERED_DOWN", "DRAIN", "FAIL", "UNDRAIN", "REBOOT_REQUESTED", "REBOOT_ISSUED"}
    return is_off(state) and {"IDLE", "POWERING_DOWN"} <= state.flags and not state.flags & hindering


def is_powering_up(state: NodeState) -> bool:
    """True when Slurm waits for the node to register, usually for a job."""
    return state.is_known and "POWERING_UP" in state.flags


def has_jobs(state: NodeState) -> bool:
    """True unless Slurm reports that no job has the node. A node that is DOWN has lost its jobs."""
    return not state.is_known or bool(state.flags & _WITH_JOBS)


def is_registered(state: NodeState) -> bool:
    """True when the node's slurmd answers slurmctld."""
    absent = {"NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "DOWN", "ERROR", "FUTURE", "INVALID_REG"}
    return state.is_known and not state.flags & absent


def category(state: NodeState) -> str:
    """One word for counting: idle, allocated, draining, drained, down, powered_down, powering_up, powering_down or unknown."""
    if not state.is_known:
        return "unknown"
    if "POWERING_UP" in state.flags:
        return "powering_up"
    if is_off(state):
        return "powered_down" if is_powered_down(state) else "powering_down"
    if "DRAIN" in state.flags:
        return "drained" if is_drained(state) else "draining"
    if state.flags & {"DOWN", "ERROR", "FAIL", "FUTURE"}:
        return "down"
    return "allocated" if state.flags & _WITH_JOBS else "idle"


def word(state: NodeState) -> str:
    """As `category`, with `mixed` for a node that has a job and room for more."""
    kind = category(state)
    return "mixed" if kind == "allocated" and "MIXED" in state.flags else kind
