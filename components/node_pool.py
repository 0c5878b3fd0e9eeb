"""One pool of machines: existing nodes of the Kubernetes cluster, which a Job checks, or a managed node group of EKS.

Builders are pure. AWS is imported only for a pool of EKS. `gpu_runtime` and `kinds` have what GPU pods need in Kubernetes. The EFA device
plugin or driver must be installed in the Kubernetes cluster.
"""

import json
from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.api_programs import bound_role
from components.labels import Manifest, labels, metadata, object_name, outside_name
from components.objects import content_name
from components.pods import PodDefaults, confined, container, pod_template, program_command, program_mounts, program_volumes
from configs.models.cluster import Cluster
from configs.models.node_pool import EksNodes, ExistingNodes, NodePool
from configs.models.shapes import machine_of, shape_of
from names import annotations, paths
from names.labels import CLUSTER, POOL
from programs.node_checks.pool_settings import ExpectedNodes, Taint, to_json

_CHECK_UID = 65534
_WAIT_S = 60
_ROOT_DEVICES = {"BOTTLEROCKET": "/dev/xvdb"}
_EFFECTS = {"NoSchedule": "NO_SCHEDULE", "PreferNoSchedule": "PREFER_NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}


def node_selector(pool: NodePool) -> dict[str, str]:
    """Labels of the pool's Kubernetes nodes, for pods that must run there."""
    return dict(pool.existing.labels) if pool.existing else {POOL: pool.name}


def gpu_resource(pool: NodePool) -> str:
    """Kubernetes' resource name of the pool's GPUs, for instance `nvidia.com/gpu`."""
    gpus = machine_of(pool).gpus
    return pool.existing.gpu_resource if pool.existing else f"{gpus.vendor if gpus else 'nvidia'}.com/gpu"


class GpuNodePool(pulumi.ComponentResource):
    """Machines for node sets.

    `existing`: a Job looks for the nodes, and fails the deployment with a line about what is missing. It runs again if the expectation
    changes. `eks`: a node group with its launch template. A new machine type or disk makes EKS replace the machines. EKS first evicts
    their pods, which workers do not allow, so drain the node sets before. Another cluster, role, subnet, image type or capacity type
    replaces the group.
    """

    pool: pulumi.Output[str]
    """Name of the pool. Known once its nodes are found or its node group is created."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, pool: NodePool, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:GpuNodePool", name, {}, opts)
        if pool.existing is not None:
            last = self._look_for(cluster, pods, pool, pool.existing)
        else:
            assert pool.eks is not None  # the config's rules require one of the two
            last = self._make_eks(name, cluster.name, pool, pool.eks)
        self.pool = last.urn.apply(lambda _: pool.name)
        self.register_outputs({"pool": self.pool})

    def _look_for(self, cluster: Cluster, pods: PodDefaults, pool: NodePool, existing: ExistingNodes) -> pulumi.CustomResource:
        child = pulumi.ResourceOptions(parent=self)
        account, role, binding, job = build_pool_check(cluster, pods, pool, existing)
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

    def _make_eks(self, name: str, cluster: str, pool: NodePool, eks: EksNodes) -> pulumi.CustomResource:
        # Imported here, so that other pools do not need the AWS provider.
        from pulumi_aws import ec2
        from pulumi_aws import eks as aws_eks

        child = pulumi.ResourceOptions(parent=self)
        placement = ec2.PlacementGroup(name, strategy="cluster", opts=child).name if eks.placement_group else None
        template = ec2.LaunchTemplate(name, **build_launch_template(name, cluster, pool, eks, placement), opts=child)
        version = aws_eks.NodeGroupLaunchTemplateArgs(id=template.id, version=template.latest_version.apply(str))
        moved = pulumi.ResourceOptions(parent=self, ignore_changes=["scalingConfig.desiredSize"])
        return aws_eks.NodeGroup(name, **build_node_group(pool, eks), launch_template=version, opts=moved)


def build_pool_check(cluster: Cluster, pods: PodDefaults, pool: NodePool, existing: ExistingNodes) -> list[Manifest]:
    """The Job that looks for nodes, after its rights: ServiceAccount, ClusterRole, ClusterRoleBinding, Job.

    A Job is immutable, so its name contains a hash of its spec: a changed expectation, program or image makes another Job.
    """
    component = f"pool-{pool.name}"
    name, object_labels = object_name(cluster.name, component), labels(cluster.name, "pool-check")
    # A ClusterRole has no namespace, so its name contains it.
    role = {"name": outside_name(pods["namespace"], name), "labels": object_labels}
    spec = _pool_check_spec(pods, expected_nodes(cluster, pool, existing), name)
    job_name = content_name(name, {"spec": json.dumps(spec, sort_keys=True)})
    # The next deployment recreates a failed Job.
    recreated = {"pulumi.com/replaceUnready": "true"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, pods["namespace"], object_labels)},
        *bound_role(pods, component, "ClusterRole", role, [{"group": "", "resource": "nodes", "verbs": ["list"]}]),
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata(job_name, pods["namespace"], object_labels, recreated),
            "spec": spec,
        },
    ]


def expected_nodes(cluster: Cluster, pool: NodePool, existing: ExistingNodes) -> ExpectedNodes:
    """What the Job looks for."""
    gpu_counts = [shape_of(cluster, node_set).gpu_count for node_set in cluster.node_sets if node_set.pool == pool.name]
    return ExpectedNodes(
        pool=pool.name,
        labels=existing.labels,
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in existing.taints),
        count=existing.count,
        gpu_resource=existing.gpu_resource,
        # As many as one node of a set needs; a machine may have more.
        gpus=max(gpu_counts, default=0),
        wait_s=_WAIT_S,
    )


def _pool_check_spec(pods: PodDefaults, expected: ExpectedNodes, account: str) -> Manifest:
    check = container(
        pods,
        "check",
        "",
        program_mounts("node_checks"),
        command=program_command("node_checks", to_json(expected), module="pool"),
        workingDir=paths.PACKAGES,
        securityContext=confined(_CHECK_UID),
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    pod = {
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "restartPolicy": "Never",
        "containers": [check],
        "volumes": program_volumes(pods, "node_checks"),
    }
    return {"backoffLimit": 0, "activeDeadlineSeconds": _WAIT_S + 300, "template": pod_template(pods, "pool-check", pod)}


def build_network_interfaces(efa_cards: Sequence[int], security_group_ids: Sequence[str]) -> list[dict[str, Any]]:
    """An Ethernet interface for the machine's address, and one EFA-only interface without an address for each card.

    Card 0 has its Ethernet at device 0 and its EFA at device 1, every other card its EFA at device 0. Source: EC2 user guide, "Maximize
    network bandwidth on instances with multiple network cards". Without groups EKS puts all interfaces into the cluster's own security
    group, which lets EFA through from Kubernetes 1.33 on. Source: EKS guide, "View Amazon EKS security group requirements for clusters".
    """
    ethernet = {"network_card_index": 0, "device_index": 0, "interface_type": "interface"}
    fabric = [{"network_card_index": card, "device_index": 0 if card else 1, "interface_type": "efa-only"} for card in efa_cards]
    groups = {"security_groups": list(security_group_ids)} if security_group_ids else {}
    return [{**interface, "delete_on_termination": "true", **groups} for interface in [ethernet, *fabric]]


def build_launch_template(
    name: str, cluster: str, pool: NodePool, eks: EksNodes, placement_group: pulumi.Input[str] | None
) -> dict[str, Any]:
    """Arguments of the launch template. It has no user data and no image: EKS chooses the image and joins machines to the cluster.

    Sources, both in the EKS user guide:
    - "Customize managed nodes with launch templates": which fields are allowed; hop limit 2 lets pods reach the metadata service.
    - "Create a managed node group with Capacity Blocks for ML": market type, reservation and machine type.
    """
    device = next((device_name for system, device_name in _ROOT_DEVICES.items() if eks.ami_type.startswith(system)), "/dev/xvda")
    machine = machine_of(pool)
    disk = {"volume_size": eks.disk_gib, "volume_type": "gp3", "encrypted": "true", "delete_on_termination": "true"}
    tags = {"Name": name, CLUSTER: cluster}
    template: dict[str, Any] = {
        "description": f"Slipway: machines of {name}",
        "instance_type": machine.name,
        "update_default_version": True,
        "block_device_mappings": [{"device_name": device, "ebs": disk}],
        "metadata_options": {"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 2},
        "tag_specifications": [{"resource_type": kind, "tags": tags} for kind in ("instance", "volume")],
    }
    if eks.efa and machine.efa_cards:
        template["network_interfaces"] = build_network_interfaces(machine.efa_cards, eks.security_group_ids)
    elif eks.security_group_ids:
        template["vpc_security_group_ids"] = list(eks.security_group_ids)
    if placement_group is not None:
        template["placement"] = {"group_name": placement_group}
    if eks.capacity_reservation_id is not None:
        target = {"capacity_reservation_id": eks.capacity_reservation_id}
        template["capacity_reservation_specification"] = {"capacity_reservation_target": target}
    if eks.capacity_type == "CAPACITY_BLOCK":
        template["instance_market_options"] = {"market_type": "capacity-block"}
    return template


def build_node_group(pool: NodePool, eks: EksNodes) -> dict[str, Any]:
    """Arguments of the node group, except its launch template, which has machine type and disk. Pulumi chooses its name, as a replacement
    is created before the old group is deleted."""
    desired = eks.min if eks.desired is None else eks.desired
    return {
        "cluster_name": eks.cluster_name,
        "node_role_arn": eks.node_role_arn,
        "subnet_ids": list(eks.subnet_ids),
        "ami_type": eks.ami_type,
        "capacity_type": eks.capacity_type,
        "scaling_config": {"min_size": eks.min, "max_size": pool.max, "desired_size": desired},
        "labels": {**eks.labels, POOL: pool.name},
        "taints": [{"key": taint.key, "value": taint.value, "effect": _EFFECTS[taint.effect]} for taint in eks.taints],
        "update_config": {"max_unavailable": 1},
        # The autoscaler owns the number, so its changes are ignored. The tag shows them to previews.
        "tags": {annotations.DESIRED: str(desired)},
    }
