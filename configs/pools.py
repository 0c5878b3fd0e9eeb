"""Config of the machines: node pools (nodes that are there already, or EKS), the system nodes, and NVIDIA's GPU Operator."""

from typing import Literal

from pydantic import Field

from configs.fields import (
    Arn,
    ChartVersion,
    ClusterText,
    Count,
    Flag,
    GpuModel,
    LabelKey,
    LabelText,
    Line,
    MiB,
    Model,
    NodeSetName,
    ObjectName,
    Positive,
    ReservationId,
    SecurityGroupId,
    SubnetId,
)

Labels = dict[LabelKey, LabelText]
"""Kubernetes labels."""


class Taint(Model):
    """A Kubernetes taint; pods of the cluster tolerate it."""

    key: LabelKey
    value: LabelText = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class HardwareGpus(Model):
    """The GPUs of one machine, all of one model."""

    vendor: Literal["nvidia", "amd"] = "nvidia"
    model: GpuModel
    """Lower case, as in Slurm's `Gres=gpu:<model>:<count>`."""
    count: Positive
    memory_mib: MiB | None = None
    """Memory of one GPU, in MiB."""


class Hardware(Model):
    """A machine spelled out, where its type is not in the catalogue. Counts are what the machine has, not what Slurm may use."""

    sockets: Positive = 1
    cores_per_socket: Positive
    threads_per_core: Positive = 1
    memory_mib: MiB
    """All memory, in MiB."""
    gpus: HardwareGpus | None = None


class ExistingNodes(Model):
    """Nodes that are in the Kubernetes cluster already, found by label."""

    labels: Labels
    taints: tuple[Taint, ...] = ()
    count: Positive = 1
    """How many such nodes a deployment expects to find, at least."""
    gpu_resource: LabelKey = "nvidia.com/gpu"
    """The extended resource under which the nodes offer their GPUs."""


class EksNodes(Model):
    """A managed node group of EKS; its machine type is the pool's `machine`, its upper size the pool's `max`."""

    cluster_name: ClusterText
    node_role_arn: Arn
    subnet_ids: tuple[SubnetId, ...] = Field(min_length=1)
    min: Count = 0
    desired: Count | None = None
    """Nodes at first; the autoscaler may change it. Default: `min`."""
    ami_type: ClusterText = "AL2023_x86_64_NVIDIA"
    """EKS's name for the node image. Machines without GPUs want AL2023_x86_64_STANDARD."""
    capacity_type: Literal["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"] = "ON_DEMAND"
    capacity_reservation_id: ReservationId | None = None
    placement_group: Flag = False
    """One cluster placement group for all machines of the pool."""
    efa: Flag = False
    """An Elastic Fabric Adapter on every network card that can carry one."""
    security_group_ids: tuple[SecurityGroupId, ...] = ()
    """Security groups of the machines, in place of the EKS cluster's own. Default: that one."""
    disk_gib: Positive = 200
    """Root disk of a machine, in GiB."""
    labels: Labels = {}
    """Further labels; `slipway.dev/pool` is always set."""
    taints: tuple[Taint, ...] = ()


class NodePool(Model):
    """Machines of one kind. Exactly one of `machine` and `hardware`, exactly one of `existing` and `eks`."""

    name: NodeSetName
    machine: Line | None = None
    """A machine type of the catalogue (`configs.hardware.MACHINES`)."""
    hardware: Hardware | None = None
    max: Positive = Field(le=10_000)
    """Machines that the pool can hold."""
    existing: ExistingNodes | None = None
    eks: EksNodes | None = None
    runtime_class: ObjectName | None = None
    """RuntimeClass of the pods on it, such as `nvidia`."""


class GpuOperator(Model):
    """NVIDIA's GPU Operator, as a Helm release."""

    enabled: Flag = False
    version: ChartVersion = "v25.3.4"
    driver: Flag = True
    """Install the driver; off where the machine image has it."""
    toolkit: Flag = True
    """Install the container toolkit; off where the machine image has it."""


class SystemNodes(Model):
    """Where the control plane, the login pods and the health checks run. Empty: anywhere without a taint."""

    labels: Labels = {}
    taints: tuple[Taint, ...] = ()
