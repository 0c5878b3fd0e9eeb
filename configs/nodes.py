"""Config of what Slurm schedules on: node sets and partitions."""

from typing import Literal

from pydantic import Field

from configs.fields import (
    MAX_NODES,
    AbsolutePath,
    Count,
    CpuQuantity,
    DnsLabel,
    Feature,
    Flag,
    GpuModel,
    MaxUnavailable,
    MiB,
    Model,
    Name,
    NodeSetName,
    ObjectName,
    PartitionName,
    Positive,
    ReservationName,
    Seconds,
    Settings,
    Size,
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


class Update(Model):
    """How a change of the worker's pod reaches running nodes. Each node is drained first, whatever the type."""

    type: Literal["RollingUpdate", "OnDelete", "Maintenance"] = "RollingUpdate"
    """RollingUpdate: a few at a time. OnDelete: when a pod is deleted. Maintenance: as RollingUpdate, while the reservation is active."""
    max_unavailable: MaxUnavailable = 1
    """Nodes that may be away at once: a number, or a percentage of the set such as "10%"."""
    reservation: ReservationName | None = None
    """Name of a Slurm reservation over the nodes, for type Maintenance."""


class Drain(Model):
    """What happens to the jobs of a node that has to go."""

    action: Literal["Wait", "Requeue", "Cancel"] = "Wait"
    """Wait: for as long as the jobs run. Requeue, Cancel: what is done to jobs that are still there after the deadline."""
    deadline_s: Seconds | None = None
    """How long a draining node waits for its jobs before the action, in seconds."""


class VolumeClaim(Model):
    """A disk of each node's own, kept when its pod is recreated."""

    name: DnsLabel
    mount_path: AbsolutePath
    size: Size
    storage_class: ObjectName | None = None
    """Default: the Kubernetes cluster's own."""


class VolumeClaimRetention(Model):
    """What becomes of the disks."""

    when_deleted: Literal["Retain", "Delete"] = "Retain"
    """The node set is deleted."""
    when_scaled: Literal["Retain", "Delete"] = "Retain"
    """The node goes because the set shrinks."""


class NodeSet(Model):
    """Slurm nodes of one kind, one worker pod each: `<name>-0` and so on. Fixed (`size`) or elastic (`min` and `max`)."""

    name: NodeSetName
    pool: Name
    """Name of a node pool."""
    size: Count | None = Field(default=None, le=MAX_NODES)
    """Number of Slurm nodes of a fixed set. 0 keeps the set in the file and has no node."""
    min: Count | None = Field(default=None, le=MAX_NODES)
    """Elastic: the first nodes, which stay up without a job."""
    max: Positive | None = Field(default=None, le=MAX_NODES)
    """Elastic: the nodes that the queue may ask for."""
    update: Update = Update()
    drain: Drain = Drain()
    placement: Literal["Any", "Pinned"] = "Any"
    """Pinned: a node comes back on the Kubernetes node where it first ran, as long as that exists."""
    volume_claims: tuple[VolumeClaim, ...] = ()
    volume_claim_retention: VolumeClaimRetention = VolumeClaimRetention()
    max_pods_in_flight: Positive = Field(default=500, le=MAX_NODES)
    """Pods that may be on their way at once, made and not yet ready."""
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

    @property
    def is_elastic(self) -> bool:
        """True when the set follows the queue."""
        return self.max is not None

    @property
    def ordinals(self) -> int:
        """Nodes that slurm.conf has for this set: `<name>-0` up to, but not including, `<name>-<ordinals>`."""
        return (self.size or 0) if self.max is None else self.max


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
    allow_accounts: tuple[Name, ...] = ()
    """Names of `accounting.accounts` whose jobs may run here, with the accounts below them. Default: all."""
    allow_qos: tuple[Name, ...] = ()
    """Names of `accounting.qos`, or `normal`. Default: all."""
    qos: Name | None = None
    """A QOS of `accounting.qos` whose limits all jobs of the partition share."""
    settings: Settings = {}
    """Further settings of the partition line, such as `OverSubscribe: EXCLUSIVE`."""
