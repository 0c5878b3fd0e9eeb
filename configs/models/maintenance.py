"""Config of maintenance: when running jobs hear of it, and which of them are requeued."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import Flag, Matching, Model, Seconds

_WORD = r"[A-Za-z0-9][A-Za-z0-9._:-]*"
Word = Annotated[
    StrictStr,
    AfterValidator(Matching(_WORD, "one word of letters, digits, dots, dashes, colons and underscores", 64, "requeue-for-maintenance")),
]
Prefix = Annotated[StrictStr, AfterValidator(Matching(rf"({_WORD})?", "the start of a reservation's name, such as maint-", 64, "maint-"))]


class Maintenance(Model):
    """What becomes of running jobs before maintenance. It concerns jobs whose time limit lets them run into a future reservation of their
    nodes with Slurm's flag MAINT."""

    enabled: Flag = True
    """False: jobs are neither warned nor requeued."""
    warn_before_s: Seconds = Field(default=3600, examples=[7200])
    """How long before the reservation starts jobs are warned, in seconds."""
    signal: Literal["URG", "USR1", "USR2", "CONT", "none"] = Field(default="URG", examples=["USR1"])
    """The signal of the warning, which a job's script and all of its steps get. A program that does not know URG or CONT runs on. USR1 and
    USR2 end every program that does not catch them."""
    requeue_before_s: Seconds = Field(default=60, examples=[300])
    """How long before the reservation starts jobs are requeued, in seconds."""
    requeue: Literal["Declared", "Allowed", "Never"] = Field(default="Declared", examples=["Allowed"])
    """Which batch jobs are requeued. Declared: those submitted with --requeue, or with the `commentWord` in their --comment. Allowed: all
    but those with --no-requeue, while `slurm.jobRequeue` is on. Never: none. All others are left alone."""
    comment_word: Word = Field(default="requeue-for-maintenance", examples=["requeue"])
    """The word in a job's --comment by which it declares that it can be requeued."""
    reservation_prefix: Prefix = Field(default="", examples=["maint-"])
    """Reservations whose names begin so count as well, without the flag MAINT. Default: only the flag counts."""
