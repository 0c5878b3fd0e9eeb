"""The program for EC2 of one cluster, its token and its rights. Its code is in controllers/ec2."""

from pathlib import Path
from typing import Any

import pulumi

from components import api_programs, network
from components.controllers import ec2_token_name
from components.generations import KEY_LENGTH, newest_key
from components.labels import Manifest, labels
from components.objects import declare, secret
from components.pods import PodDefaults, mount, secret_volume, service
from components.workloads import deployment
from configs.models.cluster import Cluster
from configs.models.ec2 import Ec2
from controllers.ec2.settings import ACTIONS, Settings, to_environment
from names import ports

COMPONENT = "ec2"
"""Tail of its objects' names: `<cluster>-ec2`."""
_MEMORY = "512Mi"
"""boto3 with a client takes 50 MiB, the rest of the program as much again (docs/explain/architecture.md)."""
_TOKEN_PATH = "/etc/slipway/token"  # noqa: S105 - a folder
_POD_IDENTITY = ("169.254.170.23/32", "fd00:ec2::23/128")
"""Where EKS Pod Identity's agent listens on each machine, on port 80. Source: EKS User Guide, "Set up the Pod Identity Agent"."""


class Ec2Program(pulumi.ComponentResource):
    """One pod that asks EC2 about the machines, and reboots and replaces them if a node set's remedies request it. While it is down, the
    last known states stay, and no machine is rebooted or replaced."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, config: Ec2, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Ec2Program", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        protecting = pulumi.ResourceOptions(parent=self, protect=cluster.deletion_protection)
        needs = [
            declare(manifest, child) for manifest in (build_service_account(pods, config), *build_roles(pods), build_network_policy(pods))
        ]
        token_name = ec2_token_name(cluster.name)
        about = labels(cluster.name, COMPONENT)
        token = secret(token_name, cluster.namespace, about, {"token": newest_key(f"{token_name}-key", 1, KEY_LENGTH, protecting)})
        needs.append(declare(token, protecting))
        declare(build_service(pods), child)
        declare(build_deployment(cluster, pods, config), pulumi.ResourceOptions(parent=self, depends_on=needs))
        self.register_outputs({})


def repair_steps(cluster: Cluster) -> list[str]:
    """The repair steps that node sets assign to the program."""
    policies = [
        node_set.remedies for node_set in cluster.node_sets if node_set.remedies is not None and node_set.remedies.machines == "EC2"
    ]
    return sorted({step for policy in policies for step in policy.steps if step in ACTIONS})


def rights(cluster: str) -> list[dict[str, Any]]:
    """The table of the program's rights: `group`, `resource`, `verbs`, `scope`, `why`, and in some the `name` of a single object."""
    table = api_programs.rights_table("ec2_rbac.yaml")
    return [{**right, "name": right["name"].format(cluster=cluster)} if "name" in right else right for right in table]


def build_service_account(pods: PodDefaults, config: Ec2) -> Manifest:
    """The ServiceAccount of the program, with its IAM role if the stack file names one."""
    account = api_programs.service_account(pods, COMPONENT)
    if config.role_arn is not None:
        account["metadata"]["annotations"] = {"eks.amazonaws.com/role-arn": config.role_arn}
    return account


def build_roles(pods: PodDefaults) -> list[Manifest]:
    """The Role for the namespace, the ClusterRole for Kubernetes nodes, and their bindings."""
    return api_programs.scoped_roles(pods, COMPONENT, rights(pods["cluster"]))


def build_network_policy(pods: PodDefaults) -> Manifest:
    """Egress to DNS, the API server, AWS, and EKS Pod Identity's agent."""
    agent = {"to": [{"ipBlock": {"cidr": cidr}} for cidr in _POD_IDENTITY], "ports": [network.port(80)]}
    return api_programs.network_policy(pods, COMPONENT, [agent])


def build_service(pods: PodDefaults) -> Manifest:
    """The Service `<cluster>-ec2`, for steps of the NodeSet controller and metrics for Prometheus. It includes pods that are not ready, as
    they report why they refuse a step."""
    service_ports = [
        {"name": "steps", "port": ports.EC2, "targetPort": ports.EC2},
        {"name": "metrics", "port": ports.CONTROLLER, "targetPort": ports.CONTROLLER},
    ]
    return service(pods, COMPONENT, ports.EC2, ports=service_ports, publishNotReadyAddresses=True)


def build_deployment(cluster: Cluster, pods: PodDefaults, config: Ec2) -> Manifest:
    """The Deployment of the program: one replica, and the old pod stops first."""
    pod = api_programs.pod(
        pods,
        COMPONENT,
        _container(cluster, pods, config),
        [secret_volume("token", ec2_token_name(cluster.name))],
        end_s=15,
        # This group may read both tokens: ours, and the one that EKS mounts for the IAM role.
        securityContext={"fsGroup": api_programs.CONTROLLER_UID},
    )
    return deployment(pods, COMPONENT, pod, strategy={"type": "Recreate"})


def _container(cluster: Cluster, pods: PodDefaults, config: Ec2) -> Manifest:
    settings = Settings(
        cluster=cluster.name,
        namespace=cluster.namespace,
        region=config.region,
        token=Path(f"{_TOKEN_PATH}/token"),
        steps=tuple(repair_steps(cluster)),
        labels_places=config.topology_labels,
        every_s=config.every_s,
        grace_s=config.impaired_s,
        max_per_hour=config.max_per_hour,
    )
    # The program must not use the machine's role.
    env = {**to_environment(settings), "AWS_EC2_METADATA_DISABLED": "true"}
    return api_programs.container(
        pods,
        "ec2",
        "controllers.ec2",
        env,
        requests=("10m", "128Mi"),
        memory=_MEMORY,
        mounts=[mount("token", _TOKEN_PATH, read_only=True)],
        more_ports=[{"name": "steps", "containerPort": ports.EC2}],
        knows_its_name=False,
    )
