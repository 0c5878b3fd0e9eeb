"""Config of node sets: Slurm nodes of one kind, how many, on which machines, and how they are updated and drained."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import (
    AbsolutePath,
    Count,
    DnsLabel,
    Flag,
    GpuModel,
    Line,
    Matching,
    MaxUnavailable,
    MiB,
    MigProfile,
    Model,
    Name,
    NodeSetName,
    ObjectName,
    Positive,
    Seconds,
    Settings,
    Size,
)
from configs.models.machine_causes import MachineCause
from slurm.conf import number_of

MAX_NODES = 65_536
"""Slurm's own limit on nodes of one cluster. Source: MAX_SLURM_NODES in Slurm's src/common/node_conf.h."""
Feature = Annotated[
    StrictStr,
    AfterValidator(Matching(r"[A-Za-z0-9_][A-Za-z0-9_.=-]*", "a feature: letters, digits and any of _ . = -, first no sign", 64, "h100")),
]
CpuQuantity = Annotated[
    StrictStr,
    AfterValidator(Matching(r"[1-9]\d{0,5}m|[1-9]\d{0,3}(\.\d{1,3})?|0\.\d{1,3}", 'a CPU quantity such as "500m" or "2"', 8, "500m")),
]
ReservationName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z][A-Za-z0-9_.-]*", "a reservation's name: letters, digits and any of _ . -, first a letter", 64, "maintenance")
    ),
]


WebhookUrl = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"https://[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(/[A-Za-z0-9._~/-]*)?",
            "an address such as https://repairs.example.com/slipway",
            500,
            "https://repairs.example.com/slipway",
        )
    ),
]


class Mig(Model):
    """GPU instances of one profile, each with the whole of its compute. Slurm hands them out one by one."""

    profile: MigProfile
    """Profile of the instances, as `nvidia-smi mig -lgip` names it. In Slurm they are `gpu:<model>_<profile>`."""
    count: Positive = Field(le=7, examples=[7])
    """Instances of this profile on each GPU."""

    @property
    def slices(self) -> int:
        """Seventh parts of a GPU's compute that one instance has."""
        return int(self.profile.partition("g.")[0])

    @property
    def memory_gb(self) -> int:
        """Memory of one instance as its name has it: rounded, in GB or GiB, by model."""
        return int(self.profile.partition("g.")[2].removesuffix("gb"))


class Gpus(Model):
    """The GPUs of one Slurm node; they must be what the pool's machine has."""

    vendor: Literal["nvidia", "amd"] = "nvidia"
    """Vendor of the GPUs."""
    model: GpuModel
    """Model, in lower case, as in Slurm's `Gres=gpu:<model>:<count>`."""
    count: Positive
    """GPUs of one Slurm node."""
    driver_name: Line | None = Field(default=None, examples=["NVIDIA H100 80GB HBM3"])
    """The model as `nvidia-smi -L` or `amd-smi static` names it, where `model` is not in that name. Default: any name that
    contains `model`."""
    sockets: tuple[Count, ...] = Field(default=(), examples=[[0, 0, 1, 1]])
    """The processor socket beside each GPU, counted from 0, in the order of the GPUs' device files. Default: GPUs evenly over the machine's
    sockets, the first ones beside socket 0."""
    mig: tuple[Mig, ...] = Field(default=(), examples=[[{"profile": "1g.10gb", "count": 7}]])
    """The instances that each GPU is divided into by NVIDIA's MIG. Default: whole GPUs."""

    @property
    def types(self) -> dict[str, int]:
        """What Slurm hands out on a node, by type of its GRES: whole GPUs, or the instances of each profile."""
        if not self.mig:
            return {self.model: self.count}
        return {f"{self.model}_{each.profile}": each.count * self.count for each in self.mig}


class PodResources(Model):
    """What a worker pod requests from Kubernetes, where that differs from what Slurm allocates. Its limits are those of the Slurm node."""

    cpu: CpuQuantity | None = None
    """CPU request, as Kubernetes writes it: "500m" is half a CPU. Default: the node's CPUs."""
    memory_mib: MiB | None = None
    """Memory request, in MiB. Default: the node's memory."""


class Update(Model):
    """How a change of the worker's pod reaches running nodes. Each node is drained first, whatever the type."""

    type: Literal["RollingUpdate", "OnDelete", "Maintenance"] = "RollingUpdate"
    """RollingUpdate: a few nodes at a time. OnDelete: a node changes when its pod is deleted. Maintenance: as RollingUpdate, while the
    reservation is active."""
    max_unavailable: MaxUnavailable = 1
    """Most nodes that may be unavailable at once: a number, or a percentage of the set."""
    min_ready_s: Count = Field(default=0, le=86_400, examples=[60])
    """How long a node has to be registered with a ready pod, without a break, before it counts as available, in seconds. A roll goes on
    only then: nodes that fail soon after their start stop it."""
    reservation: ReservationName | None = None
    """Name of a Slurm reservation over the nodes; type Maintenance needs it, and no other type takes it."""


class Drain(Model):
    """What happens to the jobs of a node that is to be removed, updated or repaired."""

    action: Literal["Wait", "Requeue", "Cancel"] = "Wait"
    """Wait: for as long as the jobs run. Requeue, Cancel: done to jobs that still run after the deadline."""
    deadline_s: Seconds | None = Field(default=None, examples=[3600])
    """How long a draining node waits for its jobs before the action, in seconds. Default: no deadline."""


RemedyStep = Literal["RecreatePod", "RebootMachine", "ReplaceMachine"]
"""What the NodeSet controller may do to a node that stays faulty."""


class Remedies(Model):
    """What is done about nodes that stay faulty, and how often. No step is taken where a job may run."""

    steps: tuple[RemedyStep, ...] = Field(examples=[["RecreatePod"]])
    """The steps, in their order; each is taken once for a fault. RecreatePod: the worker's pod is replaced. RebootMachine,
    ReplaceMachine: in the way that `machines` names."""
    causes: tuple[Literal["hardware", "node"], ...] = ("hardware", "node")
    """Kinds of causes that are acted on."""
    confirmed_by: Name | None = Field(default=None, examples=["gpu"])
    """A health check that has to find the node failing, too, before the first step. If it runs as a job, it is started as soon as the
    fault has lasted for `waitS`. Default: none."""
    verified_by: tuple[Name, ...] = Field(default=(), examples=[["gpu", "stream"]])
    """Health checks that have to pass after a step before the node returns to service. They run as jobs, one after another, as soon as
    the step is done. For fixed sets. Default: none; the checks that had failed are run again."""
    wait_s: Seconds = Field(default=300, examples=[600])
    """How long a fault has to last before the next step, in seconds. The time doubles with each step that the node has had within a day."""
    machine_timeout_s: Seconds = Field(default=3600, examples=[1800])
    """How long a reboot or a replacement may take, in seconds. After that the next step is due. At least 900 with
    RebootMachine, as EC2 forces a reboot late."""
    max_per_day: Positive = Field(default=10, le=MAX_NODES, examples=[20])
    """Most steps of each sort in 24 hours, over the whole set."""
    systemic_percent: Positive = Field(default=10, le=100, examples=[25])
    """Where more nodes than this percentage of the set (at least one) begin to fail within the window, the cause is systemic. Then nothing
    is repaired, and the controller drains nothing more for checks, until half as many fail."""
    window_s: Seconds = Field(default=600, examples=[300])
    """The window, in seconds."""
    machines: Literal["DeleteNode", "EC2", "Webhook"] | None = None
    """How machines are rebooted and replaced. DeleteNode: the Kubernetes node is deleted, for the cloud to replace its machine; it
    cannot reboot. EC2: the instance is rebooted or terminated, which needs `cluster.ec2`. Webhook: your program at `webhook` does it.
    RebootMachine and ReplaceMachine need one of them."""
    webhook: WebhookUrl | None = Field(default=None, examples=["https://repairs.example.com/slipway"])
    """With `machines: Webhook`: where each step is posted as JSON, on port 443. An answer of 2xx means that it is accepted."""


class VolumeClaim(Model):
    """A disk of each node's own, kept when its pod is recreated."""

    name: DnsLabel
    """Name of the disk, unique within the set."""
    mount_path: AbsolutePath = Field(examples=["/scratch"])
    """Where the worker pod has it."""
    size: Size
    """Size of the disk. Disks that are there keep their size; the preview has the command that grows them."""
    storage_class: ObjectName | None = Field(default=None, examples=["gp3"])
    """StorageClass of the disk. Disks that are there keep their class; with another `name`, each node gets a new disk. Default: the
    Kubernetes cluster's own default class."""


class VolumeClaimRetention(Model):
    """What becomes of the disks that `volumeClaims` asks for."""

    when_deleted: Literal["Retain", "Delete"] = "Retain"
    """What becomes of the disks when the node set is deleted."""
    when_scaled: Literal["Retain", "Delete"] = "Retain"
    """What becomes of a node's disks when the set shrinks and the node is removed."""


class Tmp(Model):
    """What each job has for /tmp and /var/tmp together on a node."""

    size_mib: MiB = Field(examples=[20_480])
    """Size, in MiB. A job that fills it up gets "No space left on device", and no other job notices."""
    medium: Literal["Disk", "Memory"] = "Disk"
    """Disk: room on the node's disk that is set aside when the job begins. Memory: a tmpfs, whose files count as the job's memory."""


class Scratch(Model):
    """What each job has at /scratch on a node, removed at its end."""

    size_mib: MiB = Field(examples=[102_400])
    """Size, in MiB, set aside on the node's disk when the job begins."""


class NodeSet(Model):
    """Slurm nodes of one kind, one worker pod each: `<name>-0` and so on. Fixed (`size`) or elastic (`min` and `max`)."""

    name: NodeSetName
    """Name of the set, and first part of its nodes' names."""
    pool: Name
    """Name of the node pool whose machines the nodes run on."""
    size: Count | None = Field(default=None, le=MAX_NODES)
    """Number of Slurm nodes of a fixed set. 0 keeps the set in the file, without nodes."""
    min: Count | None = Field(default=None, le=MAX_NODES)
    """Elastic set: nodes that stay up without a job, the first ones of the set."""
    max: Positive | None = Field(default=None, le=MAX_NODES)
    """Elastic set: most nodes that the queue may ask for."""
    update: Update = Update()
    """How a change of the worker pod reaches running nodes."""
    drain: Drain = Field(default=Drain(), examples=[{"action": "Requeue", "deadlineS": 3600}])
    """What happens to the jobs of a node that is to be removed or updated."""
    remedies: Remedies | None = Field(default=None, examples=[{"steps": ["RecreatePod"]}])
    """What is done about nodes that stay faulty. Default: nothing; they are drained, and wait for a person."""
    checks_before_jobs: tuple[Name, ...] = Field(default=(), examples=[["gpu", "stream"]])
    """Health checks that a machine has to pass before its node takes jobs of users, run as jobs, one after another. A machine passes them
    once; another machine of the node passes them again. For fixed sets. Default: none."""
    machine_causes: tuple[MachineCause, ...] = Field(
        default=(), examples=[[{"condition": "FabricDegraded", "kind": "hardware", "wish": "replace"}]]
    )
    """Which conditions and taints of Kubernetes nodes say something against the Slurm nodes on them. The first that matches decides;
    behind these stands the table of docs/operate/remedies.md. Default: that table alone."""
    placement: Literal["Any", "Pinned"] = "Any"
    """Pinned: a node returns to the Kubernetes node where it first ran, as long as that exists. Any: wherever there is room."""
    volume_claims: tuple[VolumeClaim, ...] = ()
    """Disks that each node has of its own."""
    volume_claim_retention: VolumeClaimRetention = VolumeClaimRetention()
    """When these disks are deleted."""
    tmp: Tmp | None = Field(default=None, examples=[{"sizeMiB": 20_480}])
    """Limit of each job's /tmp and /var/tmp. Default: none; jobs share the node's disk."""
    scratch: Scratch | None = Field(default=None, examples=[{"sizeMiB": 102_400}])
    """A /scratch of each job's own on the node's disk. Default: none."""
    max_pods_in_flight: Positive = Field(default=500, le=MAX_NODES, examples=[200])
    """Most pods that may be created and not yet ready at the same time."""
    cpus: Positive | None = None
    """Hardware threads of one node. Default: those of the whole machine."""
    memory_mib: MiB | None = None
    """Memory of one node, in MiB. Default: the machine's less 5 % (1,024 MiB at least), in proportion to `cpus`."""
    gpus: Gpus | None = None
    """GPUs of one node. Default: none."""
    simulated_gpus: Flag = False
    """True: stand-in device files for GPUs that the machine lacks. For development only."""
    features: tuple[Feature, ...] = ()
    """Slurm features of the nodes, for `sbatch --constraint`."""
    slurmd: Settings = {}
    """Other keys of the node line in slurm.conf."""
    resources: PodResources = PodResources()
    """Kubernetes requests of the worker pod, where they differ from the node's CPUs and memory."""
    drain_grace_s: Seconds = 604_800
    """How long a stopping pod waits for its jobs, in seconds; jobs that still run then end with it. Default: a week."""
    mounts: tuple[Name, ...] | None = None
    """Names of the `storage.mounts` that this set's pods have. Default: all."""

    @property
    def is_elastic(self) -> bool:
        """True when the set follows the queue."""
        return self.max is not None

    @property
    def ordinals(self) -> int:
        """Nodes that slurm.conf has for this set: `<name>-0` up to, but not including, `<name>-<ordinals>`."""
        return (self.size or 0) if self.max is None else self.max

    @property
    def kept_memory_mib(self) -> int:
        """Memory of each node that the set keeps from jobs with MemSpecLimit, in MiB."""
        return number_of(next((value for key, value in self.slurmd.items() if key.lower() == "memspeclimit"), "0")) or 0


CONTROLLER_SETTINGS = ("update", "drain", "placement", "volume_claim_retention", "remedies", "max_pods_in_flight")
"""Fields of a node set that the NodeSet controller decides by: its NodeSet object has them with all their keys."""
