"""One pool of machines: nodes that are in the Kubernetes cluster already, which are looked for, or a managed node group of EKS.

Builders are pure. AWS is imported only for a pool of EKS. What Kubernetes needs to run GPU pods (RuntimeClass, NVIDIA's operator) is in
`gpu_runtime`; the EFA device plugin or driver is the Kubernetes cluster's own matter.
"""

import json
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as kubernetes

from components.labels import Manifest, labels, metadata, object_name, outside_name
from components.objects import content_name
from components.pods import PodDefaults, confined, container, pod_template, program_command, program_mounts, program_volumes, tolerations
from configs.models.cluster import Cluster
from configs.models.node_pool import EksNodes, ExistingNodes, NodePool, Taint
from configs.models.shapes import machine_of, shape_of
from names import annotations, paths
from names.labels import CLUSTER, POOL

_CHECK_UID = 65534
_WAIT_S = 60
_ROOT_DEVICES = {"BOTTLEROCKET": "/dev/xvdb"}
_EFFECTS = {"NoSchedule": "NO_SCHEDULE", "PreferNoSchedule": "PREFER_NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}


class TaintArgs(TypedDict):
    """A Kubernetes taint of the pool's nodes."""

    key: str
    """Its key."""
    value: str
    """Its value; may be empty."""
    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute."""


class ExistingNodesArgs(TypedDict):
    """Nodes that are there already."""

    labels: dict[str, str]
    """Labels that tell them from others."""
    taints: list[TaintArgs]
    """Taints that they may have; a node with another taint does not count."""
    count: int
    """How many there must be, at least."""
    gpu_resource: str
    """What Kubernetes calls their GPUs, for instance `nvidia.com/gpu`."""
    gpus: int
    """How many of these each must offer; 0 for none."""


class EksNodesArgs(TypedDict):
    """A managed node group of EKS."""

    cluster_name: str
    """Name of the EKS cluster."""
    node_role_arn: str
    """IAM role of the machines."""
    subnet_ids: list[str]
    """Subnets of the machines; one only for a capacity reservation or a placement group."""
    machine: str
    """EC2 machine type."""
    min: int
    """Fewest machines."""
    max: int
    """Most machines."""
    desired: int
    """Machines at first; afterwards the autoscaler's."""
    ami_type: str
    """EKS's name for the machine image, for instance AL2023_x86_64_NVIDIA."""
    capacity_type: str
    """ON_DEMAND, SPOT or CAPACITY_BLOCK."""
    capacity_reservation_id: NotRequired[str]
    """Capacity reservation or Capacity Block that the machines come from."""
    placement_group: bool
    """True: all machines close together, in a placement group of their own."""
    efa_cards: list[int]
    """Network cards that get an Elastic Fabric Adapter; empty for none."""
    security_group_ids: list[str]
    """Security groups of the machines; empty for the EKS cluster's own, which other groups replace."""
    disk_gib: int
    """Root disk, in GiB."""
    labels: dict[str, str]
    """Labels of the nodes."""
    taints: list[TaintArgs]
    """Taints of the nodes."""


class GpuNodePoolArgs(TypedDict):
    """What a pool needs to know: exactly one of `existing` and `eks`."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    name: str
    """Name of the pool."""
    existing: NotRequired[ExistingNodesArgs]
    """Nodes that are there already."""
    eks: NotRequired[EksNodesArgs]
    """A node group to make."""


class WorkerPoolArgs(TypedDict):
    """The machines a node set runs on."""

    node_selector: dict[str, str]
    """Labels of their Kubernetes nodes."""
    tolerations: list[dict[str, Any]]
    """Taints of these nodes."""
    runtime_class: NotRequired[str]
    """RuntimeClass of the pods, for instance `nvidia`."""
    gpu_resource: NotRequired[str]
    """What Kubernetes calls their GPUs, for instance `nvidia.com/gpu`."""


def node_pool_args(cluster: Cluster, pods: PodDefaults, pool: NodePool) -> GpuNodePoolArgs:
    """One pool: the nodes to look for, or those that EKS makes."""
    made: GpuNodePoolArgs = {"pods": pods, "name": pool.name}
    if pool.existing is not None:
        made["existing"] = _existing_nodes(cluster, pool, pool.existing)
    if pool.eks is not None:
        made["eks"] = _eks_nodes(pool, pool.eks)
    return made


def _existing_nodes(cluster: Cluster, pool: NodePool, nodes: ExistingNodes) -> ExistingNodesArgs:
    wanted = [shape_of(cluster, node_set).gpu_count for node_set in cluster.node_sets if node_set.pool == pool.name]
    return {
        "labels": dict(nodes.labels),
        "taints": _taints(nodes.taints),
        "count": nodes.count,
        "gpu_resource": nodes.gpu_resource,
        # As many as one node of a set needs; a machine may hold more.
        "gpus": max(wanted, default=0),
    }


def _eks_nodes(pool: NodePool, eks: EksNodes) -> EksNodesArgs:
    machine = machine_of(pool)
    made: EksNodesArgs = {
        "cluster_name": eks.cluster_name,
        "node_role_arn": eks.node_role_arn,
        "subnet_ids": list(eks.subnet_ids),
        "machine": machine.name,
        "min": eks.min,
        "max": pool.max,
        "desired": eks.min if eks.desired is None else eks.desired,
        "ami_type": eks.ami_type,
        "capacity_type": eks.capacity_type,
        "placement_group": eks.placement_group,
        "efa_cards": list(machine.efa_cards) if eks.efa else [],
        "security_group_ids": list(eks.security_group_ids),
        "disk_gib": eks.disk_gib,
        "labels": {**eks.labels, POOL: pool.name},
        "taints": _taints(eks.taints),
    }
    if eks.capacity_reservation_id is not None:
        made["capacity_reservation_id"] = eks.capacity_reservation_id
    return made


def _taints(taints: tuple[Taint, ...]) -> list[TaintArgs]:
    return [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in taints]


def worker_pool(pool: NodePool) -> WorkerPoolArgs:
    """Where the pods of a pool's node sets go."""
    gpus = machine_of(pool).gpus
    vendor_resource = f"{gpus.vendor if gpus else 'nvidia'}.com/gpu"
    where: WorkerPoolArgs = {
        "node_selector": dict(pool.existing.labels) if pool.existing else {POOL: pool.name},
        "tolerations": tolerations(pool.existing.taints if pool.existing else pool.eks.taints if pool.eks else ()),
        "gpu_resource": pool.existing.gpu_resource if pool.existing else vendor_resource,
    }
    if pool.runtime_class is not None:
        where["runtime_class"] = pool.runtime_class
    return where


class GpuNodePool(pulumi.ComponentResource):
    """Machines for node sets.

    `existing`: a Job looks for the nodes and fails the deployment with a line that says what is missing; it runs again when the
    expectation changes. `eks`: a node group with its launch template. A new machine type or disk makes EKS replace the machines; it
    first evicts their pods, which workers do not allow, so drain the node sets before. Another cluster, role, subnet, image type or
    capacity type replaces the group.
    """

    pool: pulumi.Output[str]
    """Name of the pool. Known once its nodes have been found, or its node group made."""

    def __init__(self, name: str, args: GpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:GpuNodePool", name, {}, opts)
        if "existing" in args:
            last = self._look_for(args, args["existing"])
        elif "eks" in args:
            last = self._make_eks(name, args["pods"]["cluster"], args["eks"])
        else:
            raise ValueError(f'pool "{args["name"]}" is neither existing nor eks')
        self.pool = last.urn.apply(lambda _: args["name"])
        self.register_outputs({"pool": self.pool})

    def _look_for(self, args: GpuNodePoolArgs, existing: ExistingNodesArgs) -> pulumi.CustomResource:
        child = pulumi.ResourceOptions(parent=self)
        account, role, binding, job = build_pool_check(args, existing)
        rights: list[pulumi.Resource] = [
            kubernetes.core.v1.ServiceAccount(account["metadata"]["name"], metadata=account["metadata"], opts=child),
            kubernetes.rbac.v1.ClusterRole(role["metadata"]["name"], metadata=role["metadata"], rules=role["rules"], opts=child),
            kubernetes.rbac.v1.ClusterRoleBinding(
                binding["metadata"]["name"],
                metadata=binding["metadata"],
                role_ref=binding["roleRef"],
                subjects=binding["subjects"],
                opts=child,
            ),
        ]
        after = pulumi.ResourceOptions(parent=self, depends_on=rights)
        return kubernetes.batch.v1.Job(job["metadata"]["name"], metadata=job["metadata"], spec=job["spec"], opts=after)

    def _make_eks(self, name: str, cluster: str, eks: EksNodesArgs) -> pulumi.CustomResource:
        # Here, so that no other pool needs the AWS provider.
        from pulumi_aws import ec2
        from pulumi_aws import eks as aws_eks

        child = pulumi.ResourceOptions(parent=self)
        placement = ec2.PlacementGroup(name, strategy="cluster", opts=child).name if eks["placement_group"] else None
        template = ec2.LaunchTemplate(name, **build_launch_template(name, cluster, eks, placement), opts=child)
        version = aws_eks.NodeGroupLaunchTemplateArgs(id=template.id, version=template.latest_version.apply(str))
        moved = pulumi.ResourceOptions(parent=self, ignore_changes=["scalingConfig.desiredSize"])
        return aws_eks.NodeGroup(name, **build_node_group(eks), launch_template=version, opts=moved)


def build_pool_check(args: GpuNodePoolArgs, existing: ExistingNodesArgs) -> list[Manifest]:
    """The Job that looks for nodes, after the rights it needs: ServiceAccount, ClusterRole, ClusterRoleBinding, Job.

    A Job cannot be changed, so its name is a hash of all that it is: a changed expectation, program or image makes another Job.
    """
    pods = args["pods"]
    name = object_name(pods["cluster"], f"pool-{args['name']}")
    about = labels(pods["cluster"], "pool-check")
    # Cluster roles have no namespace, so their name holds it.
    rights = {"name": outside_name(pods["namespace"], name), "labels": about}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": rights["name"]}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": pods["namespace"]}
    spec = _pool_check_spec(args, existing, name)
    job_name = content_name(name, {"spec": json.dumps(spec, sort_keys=True)})
    # A Job that failed is made again by the next deployment.
    again = {"pulumi.com/replaceUnready": "true"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, pods["namespace"], about)},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": rights,
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": rights,
            "roleRef": role,
            "subjects": [subject],
        },
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(job_name, pods["namespace"], about, again), "spec": spec},
    ]


def _pool_check_spec(args: GpuNodePoolArgs, existing: ExistingNodesArgs, account: str) -> Manifest:
    expectation = {
        "pool": args["name"],
        "labels": existing["labels"],
        "taints": existing["taints"],
        "count": existing["count"],
        "gpuResource": existing["gpu_resource"],
        "gpus": existing["gpus"],
        "waitS": _WAIT_S,
    }
    check = container(
        args["pods"],
        "check",
        "",
        program_mounts("node_checks"),
        command=program_command("node_checks", json.dumps(expectation, sort_keys=True), module="pool"),
        workingDir=paths.PACKAGES,
        securityContext=confined(_CHECK_UID),
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    pod = {
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "restartPolicy": "Never",
        "containers": [check],
        "volumes": program_volumes(args["pods"], "node_checks"),
    }
    return {"backoffLimit": 0, "activeDeadlineSeconds": _WAIT_S + 300, "template": pod_template(args["pods"], "pool-check", pod)}


def build_network_interfaces(efa_cards: list[int], security_group_ids: list[str]) -> list[dict[str, Any]]:
    """An Ethernet interface for the machine's address, and one EFA-only interface a card, which takes no address.

    Card 0 has its Ethernet at device 0 and its EFA at device 1, every other card its EFA at device 0. Source: EC2 user guide, "Maximize
    network bandwidth on instances with multiple network cards". Without groups EKS puts all interfaces into the cluster's own security
    group, which lets EFA through from Kubernetes 1.33 on. Source: EKS guide, "View Amazon EKS security group requirements for clusters".
    """
    ethernet = {"network_card_index": 0, "device_index": 0, "interface_type": "interface"}
    fabric = [{"network_card_index": card, "device_index": 0 if card else 1, "interface_type": "efa-only"} for card in efa_cards]
    groups = {"security_groups": security_group_ids} if security_group_ids else {}
    return [{**each, "delete_on_termination": "true", **groups} for each in [ethernet, *fabric]]


def build_launch_template(name: str, cluster: str, eks: EksNodesArgs, placement_group: pulumi.Input[str] | None) -> dict[str, Any]:
    """Arguments of the launch template. No user data and no image: EKS chooses the image and joins it to the cluster by itself.

    Source: EKS user guide, "Customize managed nodes with launch templates" (what may stand where; hop limit 2 lets pods reach the
    metadata service) and "Create a managed node group with Capacity Blocks for ML" (market type, reservation and machine type in here).
    """
    device = next((each for system, each in _ROOT_DEVICES.items() if eks["ami_type"].startswith(system)), "/dev/xvda")
    disk = {"volume_size": eks["disk_gib"], "volume_type": "gp3", "encrypted": "true", "delete_on_termination": "true"}
    tags = {"Name": name, CLUSTER: cluster}
    template: dict[str, Any] = {
        "description": f"Slipway: machines of {name}",
        "instance_type": eks["machine"],
        "update_default_version": True,
        "block_device_mappings": [{"device_name": device, "ebs": disk}],
        "metadata_options": {"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 2},
        "tag_specifications": [{"resource_type": kind, "tags": tags} for kind in ("instance", "volume")],
    }
    if eks["efa_cards"]:
        template["network_interfaces"] = build_network_interfaces(eks["efa_cards"], eks["security_group_ids"])
    elif eks["security_group_ids"]:
        template["vpc_security_group_ids"] = eks["security_group_ids"]
    if placement_group is not None:
        template["placement"] = {"group_name": placement_group}
    if "capacity_reservation_id" in eks:
        target = {"capacity_reservation_id": eks["capacity_reservation_id"]}
        template["capacity_reservation_specification"] = {"capacity_reservation_target": target}
    if eks["capacity_type"] == "CAPACITY_BLOCK":
        template["instance_market_options"] = {"market_type": "capacity-block"}
    return template


def build_node_group(eks: EksNodesArgs) -> dict[str, Any]:
    """Arguments of the node group, its launch template aside, which holds machine type and disk. Its name is left to Pulumi, because a
    replacement is made before the old group goes."""
    return {
        "cluster_name": eks["cluster_name"],
        "node_role_arn": eks["node_role_arn"],
        "subnet_ids": eks["subnet_ids"],
        "ami_type": eks["ami_type"],
        "capacity_type": eks["capacity_type"],
        "scaling_config": {"min_size": eks["min"], "max_size": eks["max"], "desired_size": eks["desired"]},
        "labels": eks["labels"],
        "taints": [{"key": taint["key"], "value": taint["value"], "effect": _EFFECTS[taint["effect"]]} for taint in eks["taints"]],
        "update_config": {"max_unavailable": 1},
        # The number itself is the autoscaler's, and its changes are ignored: the tag tells a preview of them.
        "tags": {annotations.DESIRED: str(eks["desired"])},
    }
