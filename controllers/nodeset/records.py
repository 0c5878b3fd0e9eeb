"""When the controller drained which nodes, as the set's status keeps it: the only memory that a new leader has of it. Pure.

Time is the controller's own. Slurm's time of a reason would not do: slurmctld's clock is another, and a reason that it rewrites or
clears takes its time along. A status that cannot be read counts as empty: the time of our drains starts again then.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from controllers.nodeset.pods import ordinal_of, range_text
from controllers.nodeset.structs import DrainRecord
from slurm.hostlists import HostlistError, expand


def build_records(nodeset: str, drained_at: Mapping[int, float]) -> tuple[DrainRecord, ...]:
    """One record for each second in which nodes were drained, the oldest first."""
    by_time: dict[int, list[int]] = {}
    for ordinal, at in drained_at.items():
        by_time.setdefault(int(at), []).append(ordinal)
    return tuple(DrainRecord(_text(at), range_text(nodeset, ordinals)) for at, ordinals in sorted(by_time.items()))


def read_records(nodeset: str, records: tuple[DrainRecord, ...]) -> dict[int, float]:
    """What `build_records` wrote, in seconds since 1970."""
    found: dict[int, float] = {}
    for record in records:
        try:
            at, names = datetime.fromisoformat(record.since).timestamp(), expand(record.nodes)
        except (ValueError, HostlistError):
            continue
        found |= {ordinal: at for name in names if (ordinal := ordinal_of(nodeset, name)) is not None}
    return found


def _text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
