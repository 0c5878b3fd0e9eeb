"""Config of what Slurm schedules on: node sets and partitions."""

from typing import Literal

from pydantic import Field

from configs.fields import (
    MAX_NODES,
    Count,
    CpuQuantity,
    Feature,
    Flag,
    GpuModel,
    MiB,
    Model,
    Name,
    NodeSetName,
    PartitionName,
    Positive,
    Seconds,
    Settings,
    SlurmTime,
)


class Gpus(Model):
    """The GPUs of one Slurm node; they must be what the pool's machine has."""

    vendor: Literal["nvidia", "amd"] = "nvidia"
    model: GpuModel
    count: Positive


class PodResources(Model):
    """What a worker pod requests from Kubernetes, where that should differ from what Slurm hands out. Limits stay the Slurm node's."""

    cpu: CpuQuantity | None = None
    """In Kubernetes' way: "500m" is half a CPU. Default: the node's CPUs."""
    memory_mib: MiB | None = None
    """In MiB. Default: the node's memory."""


class NodeSet(Model):
    """Slurm nodes of one kind: `<name>-0` to `<name>-<size - 1>`, one worker pod each."""

    name: NodeSetName
    pool: Name
    """Name of a node pool."""
    size: Count = Field(le=MAX_NODES)
    """Number of Slurm nodes. 0 keeps the set in the file and has no node."""
    cpus: Positive | None = None
    """Hardware threads of one node. Default: the whole machine."""
    memory_mib: MiB | None = None
    """Memory of one node, in MiB. Default: the machine's less 5 % (1,024 MiB at least), shared out by `cpus`."""
    gpus: Gpus | None = None
    simulated_gpus: Flag = False
    """Stand-in device files for GPUs that are not there. For development only."""
    features: tuple[Feature, ...] = ()
    slurmd: Settings = {}
    """Further settings of the node line, such as `MemSpecLimit: 512`."""
    resources: PodResources = PodResources()
    drain_grace_s: Seconds = 604_800
    """How long a stopping pod waits for its jobs, in seconds; then they end with it. Default: a week."""
    mounts: tuple[Name, ...] | None = None
    """Names of `storage.mounts` that this set gets. Default: all."""


class Partition(Model):
    """A Slurm partition over whole node sets."""

    name: PartitionName
    node_sets: tuple[Name, ...]
    """Names of node sets."""
    default: Flag = False
    max_time: SlurmTime = "UNLIMITED"
    default_time: SlurmTime | None = None
    """Time limit of jobs that ask for none. Default: `maxTime`."""
    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"] = "UP"
    priority_tier: Count = Field(default=1, le=65_533)
    settings: Settings = {}
    """Further settings of the partition line, such as `OverSubscribe: EXCLUSIVE`."""
