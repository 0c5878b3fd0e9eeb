"""When the controller drained which nodes, and how far repairs are, as the set's status records it for the next leader. Pure.

Times are by the controller's clock. slurmctld's clock is another, and Slurm loses the time of a reason that it rewrites or clears.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from controllers.nodeset.observed import Repair, Repairs, TakenStep
from controllers.nodeset.pods import ordinal_of, range_text
from controllers.nodeset.structs import DrainRecord, NodeSetStatus, RepairRecord, TakenStepRecord
from slurm.hostlists import HostlistError, expand
from slurm.times import read_time


def build_records(nodeset: str, drained_at: Mapping[int, float]) -> tuple[DrainRecord, ...]:
    """One record for each second in which nodes were drained, the oldest first."""
    by_time: dict[int, list[int]] = {}
    for ordinal, at in drained_at.items():
        by_time.setdefault(int(at), []).append(ordinal)
    return tuple(DrainRecord(_text(at), range_text(nodeset, ordinals)) for at, ordinals in sorted(by_time.items()))


def read_records(nodeset: str, records: tuple[DrainRecord, ...]) -> dict[int, float]:
    """What `build_records` wrote, in seconds since 1970. A record that cannot be read is left out: the time of that drain starts again."""
    drained_at: dict[int, float] = {}
    for record in records:
        try:
            at, names = _seconds(record.since), expand(record.nodes)
        except (ValueError, HostlistError):
            continue
        drained_at |= {ordinal: at for name in names if (ordinal := ordinal_of(nodeset, name)) is not None}
    return drained_at


def build_repairs(nodeset: str, repairs: Repairs) -> tuple[RepairRecord, ...]:
    """One record for all nodes whose repair is equally far: a thousand nodes that fail in one second take one line."""
    alike: dict[Repair, list[int]] = {}
    for ordinal, repair in repairs.nodes.items():
        alike.setdefault(repair, []).append(ordinal)
    return tuple(
        _repair_record(range_text(nodeset, alike[repair]), repair) for repair in sorted(alike, key=lambda repair: min(alike[repair]))
    )


def read_repairs(nodeset: str, status: NodeSetStatus) -> Repairs:
    """What `build_repairs` wrote. A record that cannot be read is left out: that repair begins anew."""
    repairs: dict[int, Repair] = {}
    for record in status.repairs:
        try:
            names = expand(record.nodes)
            steps = tuple(TakenStep(step.step, _seconds(step.at), step.machine) for step in record.steps)
            since, began, asked_at = _seconds(record.since), _seconds(record.began), _seconds(record.asked) if record.asked else None
        except (ValueError, HostlistError):
            continue
        repair = Repair(record.state, since, began, record.pod, record.machine, record.boot, asked_at, steps)
        repairs |= {ordinal: repair for name in names if (ordinal := ordinal_of(nodeset, name)) is not None}
    try:
        return Repairs(repairs, _seconds(status.systemic_since) if status.systemic_since else None)
    except ValueError:
        return Repairs(repairs)


def rfc3339_or_empty(at: float | None) -> str:
    """A time as the status has it; empty for none."""
    return "" if at is None else _text(at)


def _repair_record(nodes: str, repair: Repair) -> RepairRecord:
    steps = tuple(TakenStepRecord(step.step, _text(step.at), step.machine) for step in repair.steps)
    times = _text(repair.since), _text(repair.began)
    return RepairRecord(nodes, repair.state, *times, repair.pod, repair.machine, repair.boot, rfc3339_or_empty(repair.asked_at), steps)


def _seconds(text: str) -> float:
    """Raises ValueError for a text that is not a time."""
    at = read_time(text)
    if at is None:
        raise ValueError(f"{text} is not a valid time")
    return at


def _text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
