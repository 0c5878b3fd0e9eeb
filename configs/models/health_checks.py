"""Config of health checks: what runs on nodes and drains those that fail."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from configs.faults import quoted
from configs.models import check_texts
from configs.models.fields import (
    AbsolutePath,
    Count,
    Line,
    Matching,
    MaxUnavailable,
    Model,
    Name,
    Positive,
    Seconds,
    Shown,
    dns_label,
    is_one_line,
    refuse,
)
from configs.models.node_set import NodeSet
from programs.node_checks.kinds import KINDS, CheckKind, Context, FaultKind, Per

_LONGEST_PATTERN = 200
_GROUPS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]")
"""Text whose parentheses do not open a group: an escaped character, and a set of characters."""


def _line_pattern(value: str) -> str:
    if len(value) > _LONGEST_PATTERN:
        raise refuse(f"{quoted(value)} has {len(value)} characters; {_LONGEST_PATTERN} are allowed.")
    if not is_one_line(value):
        raise refuse(f"{quoted(value)} holds a control character, which no line of the kernel's log has.")
    try:
        pattern = re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise refuse(f"{quoted(value)} is not a regular expression of Python's: {error}.") from None
    if re.search(r"\)[*+{]", _GROUPS.sub("x", value)):
        raise refuse(f"{quoted(value)} repeats a group, which may take for ever to match. Repeat single characters or sets only.")
    if pattern.search(""):
        raise refuse(f"{quoted(value)} matches every line.")
    return value


PatternName = Annotated[StrictStr, AfterValidator(dns_label(30, "thermal-trip"))]
LinePattern = Annotated[
    StrictStr,
    AfterValidator(_line_pattern),
    Shown(
        "a regular expression of Python's that looks for a part of a line, without repeated groups",
        "temperature above threshold",
        {"maxLength": _LONGEST_PATTERN},
    ),
]

CheckName = Annotated[StrictStr, AfterValidator(dns_label(20, "disk"))]
"""A CronJob is called `<cluster>-check-<name>`, and its name may have 52 characters."""
LimitName = Annotated[
    StrictStr, AfterValidator(Matching(r"[a-z][A-Za-z0-9]*", "the name of a limit, such as minFreeMiB", 64, "minFreeMiB"))
]


OtherDrivers = Literal["report", "drain"]
"""What becomes of nodes whose driver differs from that of most nodes of their set."""

NodeState = Literal["idle", "allocated"]
"""Whether a node has a job of a user."""

Platform = Literal["nvidia", "amd", "none"]
"""The vendor of a node's GPUs; none for a node without GPUs."""

CheckWish = Literal["drain", "reboot", "replace", "none"]
"""What a failure asks for: see slurm.causes."""


class HealthCheck(Model):
    """One check of the nodes of some sets. By default, a node that fails is drained until it passes."""

    name: CheckName
    """Name of the check, and part of its CronJob's name."""
    check: CheckKind = Field(description=f"What the check looks at. It fails in these cases. {check_texts.kinds()}")
    command: tuple[Line, ...] = Field(default=(), examples=[["/shared/checks/fabric", "--ports", "8"]])
    """With `check: command`: the command, run on each node in the worker's pod. In the context job it runs as Slurm's user, with all of
    the node's GPUs; beside jobs, it runs as root. Only root may own and change it. Exit code 0: passed. 1: failed, and the last line
    printed is the finding. All others: unknown.
    With nccl, dcgm, burn and ib: the program that is run instead of all_reduce_perf, dcgmi, gpu_burn or ib_write_bw. Arguments that are
    given here come before those of the check."""
    per: Per | None = None
    """With `check: mpi`, nccl and ib, how many nodes a job has. node: each one by itself, with all of its GPUs (nccl only). pair: the nodes
    two by two. set: all idle nodes at once, with an all-reduce, and in pairs where that is slow (mpi and nccl). Default: node for nccl,
    else pair."""
    folders: tuple[AbsolutePath, ...] = Field(default=(), examples=[["/scratch", "/home/.checks"]])
    """With `check: storage`: the folders that are written to and read from. Slurm's user needs to be able to write there. Default:
    /tmp."""
    xids: tuple[Positive, ...] = Field(default=(), examples=[[63, 94]])
    """With `check: kernel`: Xids of NVIDIA's driver that count as GPU errors, beside those that docs/reference/checks.md lists."""
    ignored_xids: tuple[Positive, ...] = Field(default=(), examples=[[119]])
    """With `check: kernel`: Xids that do not count."""
    patterns: dict[PatternName, LinePattern] = Field(default={}, examples=[{"thermal": "temperature above threshold"}])
    """With `check: kernel`: further lines of the kernel's log that are a fault, as `name: regular expression`. The drain names the pattern
    and the line. The first 500 characters of a line are looked at, without names that users
    choose (docs/reference/checks.md). More than `maxPatterns` such lines fail the check."""
    after: tuple[CheckName, ...] = Field(default=(), examples=[["gpu"]])
    """Names of checks that come first: this one looks only at nodes that passed all of them when they last ran."""
    budget_node_minutes: Count | None = Field(default=None, ge=1, examples=[600])
    """Most node minutes that the jobs of this check may use in 24 hours; needs accounting. The nodes that have waited longest for it come
    first. Default: no limit."""
    cause: FaultKind | None = Field(
        default=None,
        description="What is broken where the check fails: hardware, node (what runs on the machine) or maintenance. Of several failures "
        f"the drain names the first in this order. Default: {check_texts.causes()}.",
    )
    contexts: tuple[Context, ...] = Field(
        default=("job",),
        examples=[["job", "interval", "prolog"]],
        description="When it runs. job: as a Slurm job that has an idle node for itself, at the `schedule`. interval: every minute, beside "
        "users' jobs (Slurm's HealthCheckProgram; `HealthCheckInterval` in slurm.settings). prolog: before each job on each of its nodes; "
        "where it fails, the job starts elsewhere. epilog: after each job. Some kinds do not run in all of these. "
        f"{check_texts.contexts()}.",
    )
    node_states: tuple[NodeState, ...] = Field(default=("idle", "allocated"), examples=[["idle"]])
    """With the context interval: it looks only at nodes in these states. idle: no job of a user is on the node. allocated: one is. A node
    in another state is skipped, and keeps what was found before."""
    platforms: tuple[Platform, ...] = Field(default=(), examples=[["nvidia", "amd"]])
    """Vendors of GPUs on whose nodes the check makes sense: nvidia, amd, or none for nodes without GPUs. It leaves all other nodes of its
    `nodeSets` out. Default: all nodes."""
    schedule: Line | None = None
    """When it runs as a job: cron's five fields, in the time zone of the Kubernetes controller manager. Needed with the context job."""
    node_sets: tuple[Name, ...]
    """Names of the node sets whose nodes are checked."""
    timeout_s: Seconds = 60
    """Time for one run on one node, in seconds. After that the result counts as unknown."""
    max_drained: MaxUnavailable = "10%"
    """This check drains a node only while all health checks together hold fewer nodes of the set drained than this. A number, or a
    percentage of the set (at least one node)."""
    wish: CheckWish = "drain"
    """What a failure asks for. drain: the node takes no job until it passes. reboot, replace: as well, and the `remedies` of its node set
    begin with that step. none: the failure is reported, and the node keeps taking jobs."""
    other_drivers: OtherDrivers | None = None
    """Of a gpu check: what becomes of a node whose GPU driver is not that of most nodes of its set. report: a cause is shown, and the node
    keeps taking jobs. drain: such nodes are drained, at most `maxDrained` of each set. Default: report."""
    passes: Annotated[StrictInt, Field(ge=1, le=100)] = Field(default=3, examples=[5])
    """Beside jobs: passes in a row that end a failure, so that a check that flaps drains its node once, and keeps it. As a job, one pass is
    enough."""
    settings: dict[LimitName, Count] = Field(
        default={},
        description=f"Limits of the check, which docs/reference/checks.md explains. {check_texts.limits()} Without minBusBandwidthGBs, a "
        "limit comes from the machine catalogue if the pool names a machine of it. For one node it is two thirds of what the model's "
        "NVLink carries; between nodes with EFA, half of the network's bandwidth. Default: the values in parentheses.",
    )


def looks_at(check: HealthCheck, node_set: NodeSet) -> bool:
    """True where the check looks at the nodes of the set: it names the set, and makes sense on its platform."""
    return node_set.name in check.node_sets and (not check.platforms or platform_of(node_set) in check.platforms)


def platform_of(node_set: NodeSet) -> Platform:
    """The platform of the set's nodes."""
    return node_set.gpus.vendor if node_set.gpus is not None else "none"


def per_of(check: HealthCheck) -> Per:
    """How many nodes a job of the check has."""
    return check.per or KINDS[check.check].per[0]
