"""What a change of a Slurm parameter needs to take effect, and what it does to jobs. Pure: a table of exceptions, each with its source.

The rule: changes take effect with `scontrol reconfigure`, unless slurm.conf(5) says otherwise. Here a reconfigure also leaves a new
slurmctld process (docs/explain/slurm-facts.md, "Files, and how slurmctld reads them"), so MaxJobCount and its like need no restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from slurm.conf import SIZE_KEYS, known

MANUAL = "slurm.conf(5) of 26.05"
MEASURED = "measured on 26.05.5: docs/explain/slurm-facts.md"


class Need(Enum):
    """What a change needs to take effect, the least first."""

    NOTHING = "nothing"
    RECONFIGURE = "reconfigure"
    RESTART = "restart of slurmctld"
    DRAIN = "drain of the nodes"
    END = "the end of the jobs there"


@dataclass(frozen=True)
class Parameter:
    """A row of the table."""

    need: Need = Need.RECONFIGURE
    effect: str = ""
    """The effect on jobs, if any."""
    harms: bool = False
    """True if running jobs could be lost."""
    source: str = MANUAL


PLAIN = Parameter()
"""Of a key without a row: a reconfigure, and no job feels it."""
_LIMIT_OF_WAITING = "running jobs keep their limit; a waiting job that asks for more stays PENDING (PartitionTimeLimit)"
_SIZE = "each node gets it when no job can be on it: its set drains it, and its jobs end first"

SETTINGS: Mapping[str, Parameter] = {
    "AuthType": Parameter(Need.RESTART, "interrupts the steps of running jobs: no job should run when it changes", harms=True),
    "ClusterName": Parameter(
        Need.RESTART, "slurmctld refuses its own state under another name, and accounting starts anew", harms=True, source=MEASURED
    ),
    "JobAcctGatherType": Parameter(effect="running steps keep the old way of measuring, new steps use the new one"),
    "JobSubmitPlugins": Parameter(effect="for jobs that are submitted from then on"),
    "MailDomain": Parameter(effect="for jobs that are submitted from then on"),
    "MaxArraySize": Parameter(effect="for jobs that are submitted from then on", source=MEASURED),
    "MaxJobCount": Parameter(effect="for jobs that are submitted from then on", source=MEASURED),
    "SlurmctldPort": Parameter(Need.RESTART, "a listening port changes with a restart only"),
    "SlurmdPort": Parameter(Need.RESTART, "a listening port changes with a restart only"),
    "StateSaveLocation": Parameter(Need.RESTART, "slurmctld starts without its jobs, unless its files are moved", harms=True),
    "SwitchType": Parameter(Need.RESTART, "records of all jobs may be lost: no job should run when it changes", harms=True),
    "UsePAM": Parameter(effect="running jobs keep their limits"),
}
"""Keys of slurm.conf that are not simply read with a reconfigure, or whose change users feel. All others: PLAIN."""

LIMITS = frozenset(
    """
    DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxArraySize MaxBatchRequeue MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode
    MaxStepCount MaxTasksPerNode OverTimeLimit
    """.split()  # noqa: SIM905 - words read better than a thousand quotes
)
"""Keys of slurm.conf that limit the requests of jobs, or are the defaults of these requests."""

NODES: Mapping[str, Parameter] = {
    **{key: Parameter(Need.DRAIN, _SIZE, source=MEASURED) for key in SIZE_KEYS},
    "NodeAddr": Parameter(Need.RESTART, "slurmctld dials another address"),
    "Port": Parameter(Need.RESTART, "a listening port changes with a restart only"),
}
"""Keys of a node line. All others (Feature, Weight, ...) are read with a reconfigure."""

PARTITIONS: Mapping[str, Parameter] = {
    "MaxTime": Parameter(effect=_LIMIT_OF_WAITING, source=MEASURED),
    "State": Parameter(effect="running jobs go on"),
    **{
        key: Parameter(effect="running jobs go on; waiting jobs that are not allowed any more stay PENDING")
        for key in ("AllowAccounts", "AllowGroups", "AllowQos", "DenyAccounts", "DenyQos", "MaxNodes", "MinNodes")
    },
}
"""Keys of a partition line. All others are read with a reconfigure."""


def find(key: str, table: Mapping[str, Parameter]) -> Parameter:
    """The row of a key. Keys are case-insensitive."""
    return table[name] if (name := known(key, table)) else PLAIN
