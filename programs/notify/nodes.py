"""Nodes that go out of service and come back, as sinfo lists them, with what is known of the cause. Pure.

A node is told of when two readings in a row show it out of service, so that a restart of a worker is no news. What ends by itself is none,
either: a scale-in, an update of a node set, a pod that stops, a new machine that waits for its checks. What no reading says is unknown: a
node that is not listed any more is forgotten, and has not come back; back is what takes jobs.
"""

from collections.abc import Iterable, Mapping

from slurm.check_results import FAILED, failures, read_results
from slurm.reasons import ADMISSION, NODESET, POD_REPLACED, POD_STOPPING, has_failed_to_resume, written
from slurm.records import record
from slurm.scontrol import AnswerError
from slurm.states import NodeState, category, node_state

FIELDS = ("NodeList", "Partition", "StateComplete", "Reason", "User", "Extra")
_OUT = frozenset({"drained", "draining", "down", "unknown"})
_SERVES = frozenset({"idle", "allocated"})
_PASSING = (NODESET, POD_STOPPING, POD_REPLACED, ADMISSION)


@record
class Fault:
    """A node that is out of service."""

    reason: str
    """Slurm's words: the cause, and the evidence of a check."""
    by: str
    state: str
    """drained, draining, down or unknown."""
    evidence: tuple[str, ...] = ()
    """What health checks have found, beside the reason."""


@record
class Reading:
    """All nodes at one time."""

    partitions: Mapping[str, frozenset[str]]
    """Of each node."""
    faults: Mapping[str, Fault]
    """By the names of nodes that are out of service."""
    serving: frozenset[str] = frozenset()
    """Nodes that take jobs."""
    silent: frozenset[str] = frozenset()
    """Nodes that do not answer slurmctld."""


@record
class Known:
    """What readings have left: nodes that were told of, with what was told, and those that the last reading was the first to show."""

    told: Mapping[str, str]
    seen: frozenset[str] = frozenset()


@record
class Changes:
    """What there is to tell."""

    out: Mapping[str, Fault]
    back: Mapping[str, str]
    """With the reason that was told."""


def command(between: str) -> tuple[str, ...]:
    """Every node, once for each of its partitions; `between` is to be random, as a reason may have any byte."""
    columns = ",".join(f"{field}:0{between}" for field in FIELDS)
    return ("sinfo", "--noheader", "--all", "--local", "--Node", f"--Format={columns}")


def read_nodes(text: str, between: str) -> Reading:
    """sinfo's rows. Raises AnswerError for a text that is not made of rows, and for one without any: a cluster has nodes."""
    *values, trailing = text.split(between)
    if trailing.strip() or not values or len(values) % len(FIELDS):
        raise AnswerError(f"sinfo's answer has {len(values)} values and {trailing[:80]!r}, which are no rows of {len(FIELDS)} fields")
    partitions: dict[str, frozenset[str]] = {}
    faults: dict[str, Fault] = {}
    serving: set[str] = set()
    silent: set[str] = set()
    for at in range(0, len(values), len(FIELDS)):
        name, partition, state, reason, by, extra = (value.strip() for value in values[at : at + len(FIELDS)])
        its = partition.removesuffix("*")  # the mark of the default one
        partitions[name] = partitions.get(name, frozenset[str]()) | ({its} if its else set[str]())
        slurm_state = node_state(state.upper().split("+"))
        if (fault := _fault(slurm_state, reason, by, extra)) is not None:
            faults[name] = fault
        elif category(slurm_state) in _SERVES:
            serving.add(name)
        if "NOT_RESPONDING" in slurm_state.flags:
            silent.add(name)
    return Reading(partitions, faults, frozenset(serving), frozenset(silent))


def first_known(reading: Reading) -> Known:
    """What the very first reading shows is no news."""
    return Known({name: fault.reason for name, fault in reading.faults.items()})


def plan_changes(known: Known, reading: Reading) -> tuple[Changes, Known]:
    """What is to be told after another reading, and what to remember. Another reason of a node that was told of is told, too."""
    new = {name: fault for name, fault in reading.faults.items() if known.told.get(name) != fault.reason}
    out = {name: fault for name, fault in new.items() if name in known.seen}
    still_listed = {name: reason for name, reason in known.told.items() if name in reading.partitions}
    back = {name: reason for name, reason in still_listed.items() if name in reading.serving}
    told = {name: reason for name, reason in still_listed.items() if name not in back} | {name: fault.reason for name, fault in out.items()}
    return Changes(out, back), Known(told, frozenset(new.keys() - out.keys()))


def _fault(state: NodeState, reason: str, by: str, extra: str) -> Fault | None:
    condition = category(state)
    cause = "" if reason.lower() in ("none", "(null)") else written(reason)
    if has_failed_to_resume(reason) and condition == "powered_down":
        condition = "down"  # Slurm gave it up, and does not wake it again by itself
    if condition not in _OUT or cause.startswith(_PASSING):
        return None
    return Fault(cause, by.partition("(")[0] if cause else "", condition, tuple(_evidence(extra, cause)))


def _evidence(extra: str, reason: str) -> Iterable[str]:
    """Failures of checks that the reason does not name already."""
    for name, failure in sorted(failures(read_results(extra) or {}).items()):
        if failure.found not in reason:
            yield f"check {name} {FAILED}: {failure.found}"
