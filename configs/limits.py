"""Config of who may use how much: accounts with their users, QOS, and the limits of both, in Slurm's own names."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from configs.faults import quoted
from configs.fields import AccountName, Count, Line, Model, Name, Seconds, SlurmTime, Tres, UserName, refuse, whole

MOST_SHARES = 2_147_483_646


def _fairshare(value: object) -> object:
    if value == "parent" or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_SHARES):
        return value
    raise refuse(f'{quoted(value)} is neither a whole number of shares nor "parent".')


def _factor(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1_000_000:
        return float(value)
    raise refuse(f"{quoted(value)} is not a number from 0 to 1000000.")


def _text(value: str) -> str:
    if found := {letter for letter in value if not letter.isascii() or letter in "\"'\\|,=+"}:
        raise refuse(f"{quoted(value)} holds {' '.join(sorted(found))}, which sacctmgr does not keep. Use plain words.")
    return value


Fairshare = Annotated[int | str, BeforeValidator(_fairshare), BeforeValidator(whole)]
"""Shares beside those of the siblings, or "parent": those of the account."""
Factor = Annotated[float, BeforeValidator(_factor)]
PlainText = Annotated[Line, AfterValidator(_text)]
QosFlag = Literal[
    "DenyOnLimit",
    "EnforceUsageThreshold",
    "NoDecay",
    "NoReserve",
    "OverPartQOS",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "PartitionTimeLimit",
    "Relative",
    "RequiresReservation",
    "UsageFactorSafe",
]


class SharedLimits(Model):
    """Limits that accounts, their users and QOS have alike. Slurm's resource limits guide says what each does."""

    grp_tres: Tres | None = None
    """All running jobs together, such as cpu=512,gres/gpu=16."""
    grp_tres_mins: Tres | None = None
    """All jobs together over time, with PriorityDecayHalfLife. Slurm ends running jobs that reach it, unless `safe` is enforced."""
    grp_tres_run_mins: Tres | None = None
    grp_jobs: Count | None = None
    grp_jobs_accrue: Count | None = None
    grp_submit_jobs: Count | None = None
    """Running and waiting. 0: no new jobs, and those that wait do not start."""
    grp_wall: SlurmTime | None = None
    max_tres_per_job: Tres | None = None
    max_tres_per_node: Tres | None = None
    max_tres_mins_per_job: Tres | None = None
    max_wall: SlurmTime | None = None
    """Of one job."""


class Limits(SharedLimits):
    """Limits of an account or of a user in it. Those that start with max are for each user alone. A limit that is not set comes from the
    account above."""

    priority: Count | None = None
    max_jobs: Count | None = None
    max_jobs_accrue: Count | None = None
    max_submit_jobs: Count | None = None


class QosLimits(SharedLimits):
    """Limits of a QOS."""

    max_tres_per_user: Tres | None = None
    max_tres_per_account: Tres | None = None
    max_tres_run_mins_per_user: Tres | None = None
    max_tres_run_mins_per_account: Tres | None = None
    max_jobs_per_user: Count | None = None
    max_jobs_per_account: Count | None = None
    max_jobs_accrue_per_user: Count | None = None
    max_jobs_accrue_per_account: Count | None = None
    max_submit_jobs_per_user: Count | None = None
    max_submit_jobs_per_account: Count | None = None
    min_tres_per_job: Tres | None = None


class UserInAccount(Model):
    """What one user has in an account, where that is not what all have."""

    fairshare: Fairshare | None = None
    limits: Limits = Limits()
    qos: tuple[Name, ...] = ()
    default_qos: Name | None = None


class Account(Model):
    """One account of Slurm: who may use it, its share, its limits."""

    name: AccountName
    parent: Name = "root"
    """Name of another account."""
    description: PlainText = ""
    """Default: the name. Slurm keeps it in lower case."""
    organization: PlainText = ""
    """Default: the parent's name."""
    fairshare: Fairshare | None = None
    """Default: 1."""
    limits: Limits = Limits()
    qos: tuple[Name, ...] = ()
    """QOS that jobs may have. Default: those of the account above, and at the top `normal`."""
    default_qos: Name | None = None
    users: tuple[Name, ...] = ()
    """Names of users."""
    groups: tuple[Name, ...] = ()
    """Names of unix groups: their members are users of the account, and follow the group."""
    per_user: dict[UserName, UserInAccount] = {}
    default_for: tuple[Name, ...] = ()
    """Users whose jobs go to this account when they name none. Default: the first account that has the user."""


class Qos(Model):
    """One QOS of Slurm."""

    name: AccountName
    description: PlainText = ""
    priority: Count = 0
    preempt: tuple[Name, ...] = ()
    """Names of QOS whose jobs may be preempted. It needs PreemptType: preempt/qos in `slurm.settings`."""
    preempt_mode: Literal["cancel", "requeue", "suspend", "off"] | None = None
    """What happens to a job of this QOS that is preempted. Default: the cluster's PreemptMode."""
    preempt_exempt_time: SlurmTime | None = None
    """Time that a job runs before it can be preempted."""
    grace_time_s: Annotated[Seconds, Field(le=86_400)] | None = None
    """Time between the notice to a preempted job and its end, in seconds."""
    flags: tuple[QosFlag, ...] = ()
    usage_factor: Factor | None = None
    """What a job's use counts. Default: 1."""
    usage_threshold: Factor | None = None
    """Fair share below which no job is taken."""
    limit_factor: Factor | None = None
    limits: QosLimits = QosLimits()


Enforce = Literal["associations", "limits", "qos", "safe"]
