"""Config of partitions."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import Count, Flag, Matching, Model, Name, Settings, SlurmTime
from configs.models.topology import TopologyName

PartitionName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "a partition name: letters, digits and any of _ . -, first a letter or digit", 40, "train")
    ),
]


class Partition(Model):
    """A Slurm partition over whole node sets."""

    name: PartitionName
    """Name of the partition."""
    node_sets: tuple[Name, ...]
    """Names of the node sets that make up the partition."""
    default: Flag = False
    """True: the partition of jobs that name none."""
    max_time: SlurmTime = "UNLIMITED"
    """Longest time limit that a job may have."""
    default_time: SlurmTime | None = None
    """Time limit of jobs that ask for none. Default: `maxTime`."""
    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"] = "UP"
    """UP: jobs are queued and started. DOWN: queued only. DRAIN: running and queued jobs continue, new ones are refused. INACTIVE: nothing
    is queued or started."""
    priority_tier: Count = Field(default=1, le=65_533)
    """Jobs of a partition with a higher tier are scheduled first."""
    allow_accounts: tuple[Name, ...] = Field(default=(), examples=[["research"]])
    """Names of `accounting.accounts` whose jobs may run here, with the accounts below them. Default: all."""
    allow_qos: tuple[Name, ...] = Field(default=(), examples=[["normal", "urgent"]])
    """Names of `accounting.qos`, or `normal`. Default: all."""
    qos: Name | None = Field(default=None, examples=["urgent"])
    """Name of an `accounting.qos` whose limits all jobs of the partition share. Default: none."""
    topology: TopologyName | None = Field(default=None, examples=["nvlink"])
    """Name of the `topologies` by which jobs of the partition are placed. Default: the first."""
    settings: Settings = {}
    """Other keys of the partition line in slurm.conf. With accounting, a partition with GPUs has default TRESBillingWeights, such as
    `CPU=1,GRES/gpu=80`. These are 1 for each CPU, and for each GPU its memory in GiB."""
