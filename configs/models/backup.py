"""Config of backups: of the accounting database and of slurmctld's state."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StrictStr

from configs.faults import quoted
from configs.models.fields import AtMost, Line, Matching, Model, Positive, Whole, refuse
from configs.models.storage import Source

_WORDS = ("latest", "nothing")


def _point(value: str) -> str:
    if value not in _WORDS:
        try:
            datetime.strptime(value, "%Y-%m-%dT%H-%M-%SZ")
        except ValueError:
            raise refuse(f"{quoted(value)} is not a valid time. Give one such as 2026-01-31T02-30-00Z.") from None
    return value


RestorePoint = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"latest|nothing|\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ",
            "latest, nothing, or a time as backups are called, such as 2026-01-31T02-30-00Z",
            20,
            "2026-01-31T02-30-00Z",
        )
    ),
    AfterValidator(_point),
]


class Backup(Model):
    """Backups of the accounting database and of slurmctld's state, both on one volume, each cluster in a folder of its own name."""

    volume: Source
    """Shared volume that the backups are written to."""
    schedule: Line = Field(default="30 2 * * *", examples=["0 3 * * *"])
    """When the database is dumped: cron's five fields, in the time zone of the Kubernetes controller manager."""
    keep: Annotated[Positive, AfterValidator(AtMost(1000))] = Field(default=14, examples=[30])
    """Number of database backups to keep. Of slurmctld's state, the last copy of each of as many days is kept, too."""
    state_interval_s: Annotated[Whole, Field(ge=10, le=86_400)] = Field(default=600, examples=[300])
    """Time between copies of slurmctld's state, in seconds."""
    restore_from: RestorePoint | None = None
    """What an empty database, or an empty disk of slurmctld, is filled from: `latest`, the newest backup up to a time, or `nothing`.
    Existing data is never overwritten. Default: while there are backups, neither starts until this key is set."""
