"""Finds nodes that go out of service or come back, from sinfo, with the cause. Pure.

A node is reported after two readings in a row, so that a worker's restart is not reported. A cause that ends by itself (`_PASSING`) is not
reported either. A node is back when it takes jobs. A node that is no longer listed is forgotten.
"""

from collections.abc import Iterable, Mapping

from slurm.check_results import FAILED, failures, read_results
from slurm.reasons import BEFORE_JOBS, NODESET, POD_REPLACED, POD_STOPPING, has_failed_to_resume, written
from slurm.records import record
from slurm.scontrol import AnswerError
from slurm.states import NodeState, category, node_state

FIELDS = ("NodeList", "Partition", "StateComplete", "Reason", "User", "Extra")
_OUT = frozenset({"drained", "draining", "down", "unknown"})
_SERVES = frozenset({"idle", "allocated"})
_PASSING = (NODESET, POD_STOPPING, POD_REPLACED, BEFORE_JOBS)


@record
class Fault:
    """A node that is out of service."""

    reason: str
    """Slurm's reason: the cause, and the evidence of a check."""
    by: str
    state: str
    """drained, draining, down or unknown."""
    evidence: tuple[str, ...] = ()
    """Failures of health checks that the reason does not name."""


@record
class Reading:
    """All nodes at one time."""

    partitions: Mapping[str, frozenset[str]]
    """By node."""
    faults: Mapping[str, Fault]
    """By node, for nodes that are out of service."""
    serving: frozenset[str] = frozenset()
    """Nodes that take jobs."""
    silent: frozenset[str] = frozenset()
    """Nodes that do not answer slurmctld."""


@record
class Known:
    """What earlier readings left: reported nodes with the reported reason, and nodes that only the last reading showed out of service."""

    told: Mapping[str, str]
    seen: frozenset[str] = frozenset()


@record
class Changes:
    """Nodes to report."""

    out: Mapping[str, Fault]
    back: Mapping[str, str]
    """By node, the reason that was reported."""


def command(between: str) -> tuple[str, ...]:
    """Lists every node once per partition. `between` separates fields and has to be random, as a reason may have any byte."""
    columns = ",".join(f"{field}:0{between}" for field in FIELDS)
    return ("sinfo", "--noheader", "--all", "--local", "--Node", f"--Format={columns}")


def read_nodes(text: str, between: str) -> Reading:
    """Reads sinfo's rows. Raises AnswerError for a text that has other content, or no rows: a cluster has nodes."""
    *values, trailing = text.split(between)
    if trailing.strip() or not values or len(values) % len(FIELDS):
        raise AnswerError(f"sinfo's answer has {len(values)} values and {trailing[:80]!r}, which are not rows of {len(FIELDS)} fields")
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
    """What to remember of the very first reading, of which nothing is reported."""
    return Known({name: fault.reason for name, fault in reading.faults.items()})


def plan_changes(known: Known, reading: Reading) -> tuple[Changes, Known]:
    """What to report after another reading, and what to remember. A changed reason is reported, too."""
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
        condition = "down"  # Slurm gave up on it, and does not resume it by itself
    if condition not in _OUT or cause.startswith(_PASSING):
        return None
    return Fault(cause, by.partition("(")[0] if cause else "", condition, tuple(_evidence(extra, cause)))


def _evidence(extra: str, reason: str) -> Iterable[str]:
    """Failures of checks that the reason does not name."""
    for name, failure in sorted(failures(read_results(extra) or {}).items()):
        if failure.found not in reason:
            yield f"check {name} {FAILED}: {failure.found}"
