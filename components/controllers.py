"""The NodeSet controller of one cluster and its rights. Its code is in controllers/nodeset; its kind is in kinds.py."""

from pathlib import Path
from typing import Any

import pulumi

from components import api_programs, network
from components.check_jobs import starts_checks
from components.control_plane import priority_class_name, rest_url
from components.labels import Manifest, jwt_secret_name, object_name, selector
from components.objects import declare
from components.pods import PodDefaults, mount, secret_volume
from components.workloads import deployment
from configs.models.cluster import Cluster
from controllers.ec2.settings import STEPS_PATH
from controllers.nodeset.settings import Ec2Program, Settings, to_environment
from names import paths, ports

COMPONENT = "nodeset-controller"
"""Tail of its objects' names: `<cluster>-nodeset-controller`."""

_EC2_TOKEN_PATH = "/etc/slipway/ec2"  # noqa: S105 - a folder
_REPLICAS = 2
_MEMORY = "2Gi"
"""Many times what 5,000 nodes with 10,000 pods take (155 MB: docs/explain/architecture.md)."""


class Controllers(pulumi.ComponentResource):
    """The NodeSet controller: two pods, one of them active. A change of its image or rights affects no worker and no job."""

    deployment_name: pulumi.Output[str]
    """Name of the NodeSet controller's Deployment."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Controllers", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        manifests = (build_service_account(pods), *build_roles(cluster, pods), build_network_policy(cluster, pods))
        needs = [declare(manifest, child) for manifest in manifests]
        declare(build_disruption_budget(pods), child)
        deployment = build_deployment(cluster, pods)
        declare(deployment, pulumi.ResourceOptions(parent=self, depends_on=needs))
        self.deployment_name = pulumi.Output.from_input(deployment["metadata"]["name"])
        self.register_outputs({"deployment_name": self.deployment_name})


def rights(deletes_machines: bool = True, starts_checks: bool = True) -> list[dict[str, Any]]:
    """The table of the controller's rights: `group`, `resource`, `verbs`, `scope` (namespace or cluster) and `why`. `deletes_machines`
    includes those that only `remedies.machines: DeleteNode` needs, `starts_checks` those about Jobs."""
    lacking = {"DeleteNode": not deletes_machines, "StartChecks": not starts_checks}
    return [right for right in api_programs.rights_table("rbac.yaml") if not lacking.get(right.get("only", ""))]


def build_service_account(pods: PodDefaults) -> Manifest:
    """The ServiceAccount of the controller."""
    return api_programs.service_account(pods, COMPONENT)


def build_roles(cluster: Cluster, pods: PodDefaults) -> list[Manifest]:
    """The Role for the namespace, the ClusterRole for nodes, and their bindings. They allow deleting Kubernetes nodes if a node set has
    `remedies.machines: DeleteNode`, and creating Jobs if one starts health checks."""
    deletes_machines = any(node_set.remedies is not None and node_set.remedies.machines == "DeleteNode" for node_set in cluster.node_sets)
    creates_jobs = any(map(starts_checks, cluster.node_sets))
    return api_programs.scoped_roles(pods, COMPONENT, rights(deletes_machines, creates_jobs))


def build_network_policy(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """Egress to DNS, the API server, slurmrestd, slurmctld's sidecar and the program for EC2."""
    slurmrestd = network.egress_to(cluster.name, "slurmrestd", ports.SLURMRESTD, ports.RUNNING_JOBS)
    sidecar = network.egress_to(cluster.name, "slurmctld", ports.CONFIG_SYNC)
    ec2 = [network.egress_to(cluster.name, "ec2", ports.EC2)] if cluster.ec2 is not None else []
    return api_programs.network_policy(pods, COMPONENT, [slurmrestd, sidecar, *ec2])


def ec2_token_name(cluster: str) -> str:
    """Name of the Secret with the `token` for the program for EC2."""
    return object_name(cluster, "ec2-token")


def build_disruption_budget(pods: PodDefaults) -> Manifest:
    """At most one replica may be evicted at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": api_programs.about(pods, COMPONENT),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(pods["cluster"], COMPONENT)}},
    }


def build_deployment(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """The Deployment of the NodeSet controller. The replica with the Lease is active; the other takes over within seconds."""
    apart = {"labelSelector": {"matchLabels": selector(cluster.name, COMPONENT)}, "topologyKey": "kubernetes.io/hostname"}
    pod = api_programs.pod(
        pods,
        COMPONENT,
        _controller(cluster, pods),
        [secret_volume("jwt", jwt_secret_name(cluster.name)), *_ec2_token_volumes(cluster)],
        end_s=20,
        priorityClassName=priority_class_name(cluster.name, cluster.namespace),
        affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": apart}]}},
        # This group may read the JWT key.
        securityContext={"fsGroup": api_programs.CONTROLLER_UID},
    )
    return deployment(pods, COMPONENT, pod, replicas=_REPLICAS)


def _ec2_token_volumes(cluster: Cluster) -> list[Manifest]:
    """The token's volume is optional: the controller does not wait for the program for EC2, which brings the Secret."""
    if cluster.ec2 is None:
        return []
    volume = secret_volume("ec2", ec2_token_name(cluster.name))
    return [{**volume, "secret": {**volume["secret"], "optional": True}}]


def _controller(cluster: Cluster, pods: PodDefaults) -> Manifest:
    url = f"http://{object_name(cluster.name, 'ec2')}.{cluster.namespace}:{ports.EC2}{STEPS_PATH}"
    ec2 = Ec2Program(url, Path(f"{_EC2_TOKEN_PATH}/token"))
    settings = Settings(
        cluster=cluster.name,
        namespace=cluster.namespace,
        slurmrestd=rest_url(cluster),
        jwt_key=Path(paths.JWT_KEY),
        ec2=ec2 if cluster.ec2 is not None else None,
    )
    ec2_mounts = [mount("ec2", _EC2_TOKEN_PATH, read_only=True)] if cluster.ec2 is not None else []
    return api_programs.container(
        pods,
        "controller",
        "controllers.nodeset",
        to_environment(settings),
        requests=("50m", "96Mi"),
        memory=_MEMORY,
        mounts=[mount("jwt", paths.JWT, read_only=True), *ec2_mounts],
    )
