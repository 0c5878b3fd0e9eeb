"""Config of the machines: node pools (nodes that are there already, or EKS), the system nodes, and NVIDIA's GPU Operator."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import (
    AtMost,
    ClusterText,
    Count,
    Flag,
    GpuModel,
    Line,
    Matching,
    MiB,
    Model,
    NodeSetName,
    ObjectName,
    Positive,
    Shown,
    Whole,
)
from configs.models.machines import MACHINES
from names import labels

LabelText = Annotated[
    StrictStr, AfterValidator(Matching(r"([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?", "a Kubernetes label value", 63, "gpu"))
]
LabelKey = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?",
            "a Kubernetes label key",
            317,
            labels.POOL,
        )
    ),
]
Arn = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+",
            "a role's ARN, such as arn:aws:iam::123456789012:role/node",
            2048,
            "arn:aws:iam::123456789012:role/node",
        )
    ),
]
SubnetId = Annotated[
    StrictStr,
    AfterValidator(Matching(r"subnet-[0-9a-f]{8,32}", "a subnet's id, such as subnet-0a1b2c3d4e5f60718", 40, "subnet-0a1b2c3d4e5f60718")),
]
SecurityGroupId = Annotated[
    StrictStr,
    AfterValidator(Matching(r"sg-[0-9a-f]{8,32}", "a security group's id, such as sg-0a1b2c3d4e5f60718", 40, "sg-0a1b2c3d4e5f60718")),
]
ReservationId = Annotated[
    StrictStr,
    AfterValidator(Matching(r"cr-[0-9a-f]{8,32}", "a capacity reservation's id, such as cr-0a1b2c3d4e5f60718", 40, "cr-0a1b2c3d4e5f60718")),
]
AmiType = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"CUSTOM|(AL\d{1,4}|BOTTLEROCKET)_(x86_64|ARM_64)(_(STANDARD|NVIDIA|NEURON|GPU|FIPS))*",
            "one of EKS' machine images for Linux, such as AL2023_x86_64_NVIDIA or CUSTOM",
            60,
            "AL2023_x86_64_STANDARD",
        )
    ),
]
"""Source: amiType of CreateNodegroup in the API of EKS."""
DiskGib = Annotated[Whole, Field(ge=20), AfterValidator(AtMost(65_536))]
"""Not below the 20 GiB of EKS' own machine images; the largest disk of EBS has 64 TiB."""
ChartVersion = Annotated[StrictStr, AfterValidator(Matching(r"v\d+\.\d+\.\d+", "a chart version, such as v25.3.4", 20, "v25.3.4"))]


MachineType = Annotated[Line, Shown("a machine type of the catalogue", "p5.48xlarge", {"enum": [*MACHINES]})]

Labels = dict[LabelKey, LabelText]
"""Kubernetes labels."""


class Taint(Model):
    """A Kubernetes taint; pods of the cluster tolerate it."""

    key: LabelKey
    """Key of the taint."""
    value: LabelText = ""
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """Effect of the taint on pods that do not tolerate it."""


class HardwareGpus(Model):
    """The GPUs of one machine, all of one model."""

    vendor: Literal["nvidia", "amd"] = "nvidia"
    """Vendor of the GPUs."""
    model: GpuModel
    """Model, in lower case, as in Slurm's `Gres=gpu:<model>:<count>`."""
    count: Positive
    """GPUs of one machine."""
    memory_mib: MiB | None = None
    """Memory of one GPU, in MiB."""


class Hardware(Model):
    """What one machine has, where its type is not in the catalogue: all of it, not only what Slurm may use."""

    sockets: Positive = Field(default=1, examples=[2])
    """Processor sockets."""
    cores_per_socket: Positive
    """Cores of one socket."""
    threads_per_core: Positive = Field(default=1, examples=[2])
    """Hardware threads of one core."""
    memory_mib: MiB
    """All memory of the machine, in MiB."""
    gpus: HardwareGpus | None = None
    """The machine's GPUs. Default: it has none."""


class ExistingNodes(Model):
    """Nodes that are in the Kubernetes cluster already, found by label."""

    labels: Labels
    """Labels that a Kubernetes node must have to belong to the pool. At least one is needed."""
    taints: tuple[Taint, ...] = ()
    """Taints of these nodes, which the pods of the cluster are to tolerate."""
    count: Positive = 1
    """Least number of such nodes that a deployment expects to find."""
    gpu_resource: LabelKey = Field(default="nvidia.com/gpu", examples=["amd.com/gpu"])
    """The extended resource under which the nodes offer their GPUs."""


class EksNodes(Model):
    """A managed node group of EKS; its machine type is the pool's `machine`, its upper size the pool's `max`."""

    cluster_name: ClusterText
    """Name of the EKS cluster."""
    node_role_arn: Arn
    """ARN of the IAM role of the machines."""
    subnet_ids: tuple[SubnetId, ...] = Field(min_length=1)
    """Subnets of the machines. A placement group needs a single one, as it lives in one zone."""
    min: Count = 0
    """Least number of machines in the node group."""
    desired: Count | None = Field(default=None, examples=[8])
    """Number of machines of a new group. Later it is the autoscaler's, and a change is not applied: the preview reports that, with the
    command that sets it. Default: `min`."""
    ami_type: AmiType = "AL2023_x86_64_NVIDIA"
    """EKS's name for the machine image. Machines without GPUs need one without NVIDIA, such as AL2023_x86_64_STANDARD."""
    capacity_type: Literal["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"] = "ON_DEMAND"
    """How EC2 sells the machines."""
    capacity_reservation_id: ReservationId | None = None
    """Capacity reservation that the machines come from; a capacity block needs one. Default: none."""
    placement_group: Flag = False
    """True: all machines of the pool are in one cluster placement group."""
    efa: Flag = False
    """True: an Elastic Fabric Adapter on every network card that can carry one."""
    security_group_ids: tuple[SecurityGroupId, ...] = ()
    """Security groups of the machines. Default: the EKS cluster's own."""
    disk_gib: DiskGib = 200
    """Root disk of a machine, in GiB."""
    labels: Labels = Field(default={}, examples=[{"team": "vision"}])
    """Labels of the Kubernetes nodes, in addition to `slipway.dev/pool`, which is always set."""
    taints: tuple[Taint, ...] = ()
    """Taints of the Kubernetes nodes; the pods of the cluster tolerate them."""


class NodePool(Model):
    """Machines of one kind. Exactly one of `machine` and `hardware`, exactly one of `existing` and `eks`."""

    name: NodeSetName
    """Name of the pool; node sets refer to it."""
    machine: MachineType | None = None
    """Machine type of the catalogue in `configs/models/machines.py`."""
    hardware: Hardware | None = None
    """What one machine has, where its type is not in the catalogue."""
    max: Positive = Field(le=10_000)
    """Machines that the pool can hold, at most."""
    existing: ExistingNodes | None = None
    """Nodes that are in the Kubernetes cluster already."""
    eks: EksNodes | None = None
    """A managed node group that Slipway makes in an EKS cluster."""
    runtime_class: ObjectName | None = None
    """RuntimeClass of the pods on the pool's nodes, such as `nvidia`. Default: none."""

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Taints of the pool's nodes."""
        return self.existing.taints if self.existing else self.eks.taints if self.eks else ()


class GpuOperator(Model):
    """NVIDIA's GPU Operator, as a Helm release."""

    enabled: Flag = False
    """True: install the operator."""
    version: ChartVersion = "v25.3.4"
    """Version of the operator's Helm chart."""
    driver: Flag = True
    """Install the GPU driver. False where the machine image has it."""
    toolkit: Flag = True
    """Install the container toolkit. False where the machine image has it."""


class SystemNodes(Model):
    """Where the control plane, the login pods and the health checks run. Without labels: on any node without a taint."""

    labels: Labels = {}
    """Labels that a Kubernetes node must have."""
    taints: tuple[Taint, ...] = ()
    """Taints of these nodes, which the pods are to tolerate."""
