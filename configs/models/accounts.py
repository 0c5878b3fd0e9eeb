"""Config of who may use how much: accounts with their users, QOS, and the limits of both, in Slurm's own names."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr

from configs.faults import quoted
from configs.models.fields import Count, Flag, Line, Matching, Model, Name, Seconds, Shown, SlurmTime, UserName, refuse, whole

_TRES = re.compile(r"(cpu|node|billing|gres/gpu(?::[a-z][a-z0-9_.-]*)?)=\d{1,15}|mem=\d{1,15}[MGTP]?", re.ASCII)


def _tres(value: str) -> str:
    items = value.split(",")
    for item in items:
        if _TRES.fullmatch(item) is None:
            raise refuse(
                f"{quoted(item)} is not an amount of cpu, mem, node, billing, gres/gpu or gres/gpu:<model>, as in "
                "cpu=64,mem=512G,gres/gpu=8 (mem in MiB without a unit)."
            )
    names = [item.partition("=")[0] for item in items]
    if twice := next((name for at, name in enumerate(names) if name in names[:at]), None):
        raise refuse(f"{quoted(value)} says {twice} twice.")
    return value


AccountName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[a-z][a-z0-9_.-]*", "a name for Slurm's database: lower-case letters, digits and any of _ . -, first a letter", 40, "research"
        )
    ),
]
"""Of an account or a QOS. sacctmgr makes capitals small, so they are refused."""
Tres = Annotated[
    StrictStr,
    AfterValidator(_tres),
    Shown(
        "amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit",
        "cpu=512,mem=4T,gres/gpu=16",
        {"pattern": f"^({_TRES.pattern})(,({_TRES.pattern}))*$"},
    ),
]
"""Trackable resources, as sacctmgr takes them."""


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


Fairshare = Annotated[
    int | str,
    BeforeValidator(_fairshare),
    BeforeValidator(whole),
    Shown(
        'a whole number of shares, or "parent"',
        80,
        {"type": ["integer", "string"], "minimum": 0, "maximum": MOST_SHARES, "pattern": "^parent$"},
    ),
]
"""Shares beside those of the siblings, or "parent": those of the account."""
Factor = Annotated[float, BeforeValidator(_factor), Shown("a number", 1.5, {"minimum": 0, "maximum": 1_000_000})]
PlainText = Annotated[
    Line,
    AfterValidator(_text),
    Shown(
        "plain words, without quotes, `|`, `,`, `=`, `+` and `\\`",
        "computer vision",
        {"pattern": r"""^[^"'\\|,=+\x00-\x1f\x7f-\uffff]*$"""},
    ),
]
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
    """TRES of all running jobs together."""
    grp_tres_mins: Tres | None = Field(default=None, examples=["gres/gpu=1000000"])
    """TRES-minutes of all jobs together over time, which decay with PriorityDecayHalfLife. Slurm ends running jobs that reach it, unless
    `safe` is enforced."""
    grp_tres_run_mins: Tres | None = Field(default=None, examples=["gres/gpu=50000"])
    """TRES-minutes that all running jobs together may still use until their time limits."""
    grp_jobs: Count | None = Field(default=None, examples=[100])
    """Running jobs together."""
    grp_jobs_accrue: Count | None = Field(default=None, examples=[50])
    """Waiting jobs together whose priority grows with age."""
    grp_submit_jobs: Count | None = Field(default=None, examples=[1000])
    """Running and waiting jobs together. 0: no new jobs, and waiting ones do not start."""
    grp_wall: SlurmTime | None = Field(default=None, examples=["100-00:00:00"])
    """Wall-clock time of all jobs together over time, which decays with PriorityDecayHalfLife."""
    max_tres_per_job: Tres | None = None
    """TRES of one job."""
    max_tres_per_node: Tres | None = Field(default=None, examples=["gres/gpu=4"])
    """TRES of one job on each node."""
    max_tres_mins_per_job: Tres | None = Field(default=None, examples=["gres/gpu=10000"])
    """TRES-minutes of one job."""
    max_wall: SlurmTime | None = None
    """Wall-clock time of one job."""


class Limits(SharedLimits):
    """Limits of an account or of a user in it. Those whose name starts with max are for each user alone. A limit that is not set comes
    from the account above."""

    priority: Count | None = Field(default=None, examples=[100])
    """Priority of the association; it counts with `PriorityWeightAssoc` in `slurm.settings`."""
    max_jobs: Count | None = Field(default=None, examples=[50])
    """Running jobs of one user."""
    max_jobs_accrue: Count | None = Field(default=None, examples=[10])
    """Waiting jobs of one user whose priority grows with age."""
    max_submit_jobs: Count | None = Field(default=None, examples=[500])
    """Running and waiting jobs of one user."""


class QosLimits(SharedLimits):
    """Limits of a QOS."""

    max_tres_per_user: Tres | None = None
    """TRES of one user's running jobs."""
    max_tres_per_account: Tres | None = None
    """TRES of one account's running jobs."""
    max_tres_run_mins_per_user: Tres | None = Field(default=None, examples=["gres/gpu=5000"])
    """TRES-minutes that one user's running jobs may still use until their time limits."""
    max_tres_run_mins_per_account: Tres | None = Field(default=None, examples=["gres/gpu=50000"])
    """TRES-minutes that one account's running jobs may still use until their time limits."""
    max_jobs_per_user: Count | None = None
    """Running jobs of one user."""
    max_jobs_per_account: Count | None = Field(default=None, examples=[100])
    """Running jobs of one account."""
    max_jobs_accrue_per_user: Count | None = Field(default=None, examples=[10])
    """Waiting jobs of one user whose priority grows with age."""
    max_jobs_accrue_per_account: Count | None = Field(default=None, examples=[50])
    """Waiting jobs of one account whose priority grows with age."""
    max_submit_jobs_per_user: Count | None = Field(default=None, examples=[500])
    """Running and waiting jobs of one user."""
    max_submit_jobs_per_account: Count | None = Field(default=None, examples=[1000])
    """Running and waiting jobs of one account."""
    min_tres_per_job: Tres | None = Field(default=None, examples=["gres/gpu=1"])
    """Least TRES that a job must ask for."""


class UserInAccount(Model):
    """What one user has in an account, where that differs from the account's other users."""

    fairshare: Fairshare | None = None
    """Shares of the user, relative to the other users of the account, or "parent". Default: 1."""
    limits: Limits = Limits()
    """Limits of the user in the account."""
    qos: tuple[Name, ...] = Field(default=(), examples=[["normal", "urgent"]])
    """QOS that the user's jobs may have. Default: the account's."""
    default_qos: Name | None = Field(default=None, examples=["urgent"])
    """QOS of the user's jobs that name none. Default: the account's."""


class Account(Model):
    """One account of Slurm: who may use it, its share, its limits."""

    name: AccountName
    """Name of the account, as in `sbatch --account`."""
    parent: Name = "root"
    """Name of the account above it."""
    description: PlainText = ""
    """Description in Slurm's database, in lower case there. Default: the name."""
    organization: PlainText = Field(default="", examples=["physics"])
    """Organization in Slurm's database. Default: the parent's name."""
    fairshare: Fairshare | None = None
    """Shares of the account, relative to its siblings, or "parent". Default: 1."""
    limits: Limits = Limits()
    """Limits of the account and of each user in it."""
    qos: tuple[Name, ...] = ()
    """QOS that jobs may have. Default: those of the account above, and at the top `normal`."""
    default_qos: Name | None = Field(default=None, examples=["normal"])
    """QOS of jobs that name none. Default: the one of the account above."""
    users: tuple[Name, ...] = ()
    """Names of the account's users."""
    groups: tuple[Name, ...] = ()
    """Names of unix groups. Their members are users of the account, and follow the group."""
    per_user: dict[UserName, UserInAccount] = {}
    """What single users have in the account, by user name."""
    folder: Flag = False
    """True: the members of the account's one group share the folder `<storage.projects>/<name>`. It stays when the account goes."""
    default_for: tuple[Name, ...] = Field(default=(), examples=[["ada"]])
    """Users whose jobs go to this account when they name none. Default: the first account that has the user."""


class Qos(Model):
    """One QOS of Slurm."""

    name: AccountName
    """Name of the QOS, as in `sbatch --qos`."""
    description: PlainText = Field(default="", examples=["urgent work"])
    """Description in Slurm's database."""
    priority: Count = 0
    """Priority that the jobs get from the QOS factor, relative to that of other QOS."""
    preempt: tuple[Name, ...] = Field(default=(), examples=[["normal"]])
    """Names of QOS whose jobs this one may preempt. Needs `PreemptType: preempt/qos` in `slurm.settings`."""
    preempt_mode: Literal["cancel", "requeue", "suspend", "off"] | None = None
    """What happens to a job of this QOS that is preempted. Default: the cluster's PreemptMode."""
    preempt_exempt_time: SlurmTime | None = Field(default=None, examples=["00:10:00"])
    """Time that a job of this QOS runs before it can be preempted. Default: the cluster's PreemptExemptTime."""
    grace_time_s: Annotated[Seconds, Field(le=86_400)] | None = Field(default=None, examples=[120])
    """Time between the notice to a preempted job and its end, in seconds. Default: 0."""
    flags: tuple[QosFlag, ...] = ()
    """Flags of the QOS, as sacctmgr has them."""
    usage_factor: Factor | None = Field(default=None, examples=[2])
    """Factor by which the usage of its jobs counts. Default: 1."""
    usage_threshold: Factor | None = Field(default=None, examples=[0.1])
    """Fair share factor below which jobs are held; it counts with the flag EnforceUsageThreshold. Default: none."""
    limit_factor: Factor | None = None
    """Factor by which the TRES limits of an account count for jobs of this QOS. Default: 1."""
    limits: QosLimits = QosLimits()
    """Limits of the jobs with this QOS."""


Enforce = Literal["associations", "limits", "qos", "safe"]
