"""The controllers of one cluster and their rights. What they do is in controllers/, which is no part of this package; the kind that they
serve is in kinds.py.
"""

from typing import Any, TypedDict

import pulumi

from components import api_programs, network
from components.check_jobs import starts_checks
from components.control_plane import priority_class_name
from components.labels import Manifest, object_name, selector
from components.objects import declare
from components.pods import PodDefaults, mount, secret_volume
from configs.models.cluster import Cluster
from names import paths, ports, variables

COMPONENT = "nodeset-controller"
"""Tail of its objects' names: `<cluster>-nodeset-controller`."""

_EC2_TOKEN_PATH = "/etc/slipway/ec2"  # noqa: S105 - a folder
_REPLICAS = 2
_MEMORY = "2Gi"
"""Many times what 5,000 nodes with 10,000 pods take (155 MB: docs/design.md, section 4)."""


class ControllersArgs(TypedDict):
    """What the controllers need to know."""

    pods: PodDefaults
    """What all pods of the cluster share; the image is the controllers' own."""
    jwt_secret: str
    """Name of the Secret whose `jwt_hs256.key` signs tokens."""
    deletes_machines: bool
    """True: it may delete Kubernetes nodes, for the cloud to replace their machines."""
    asks_ec2: bool
    """True: the cluster has a program that reboots and replaces machines through EC2."""
    starts_checks: bool
    """True: it may make Jobs, from the CronJobs of health checks."""


def controllers_args(cluster: Cluster, pods: PodDefaults, image: str) -> ControllersArgs:
    return {
        "pods": {**pods, "image": image},
        "jwt_secret": object_name(cluster.name, "jwt"),
        "deletes_machines": any(each.remedies is not None and each.remedies.machines == "DeleteNode" for each in cluster.node_sets),
        "asks_ec2": cluster.ec2 is not None,
        "starts_checks": any(starts_checks(each) for each in cluster.node_sets),
    }


class Controllers(pulumi.ComponentResource):
    """The NodeSet controller: two pods, of which one acts. A change of its image or rights touches no worker and no job."""

    deployment_name: pulumi.Output[str]
    """Name of the NodeSet controller's Deployment."""

    def __init__(self, name: str, args: ControllersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Controllers", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        made = [declare(manifest, child) for manifest in (build_service_account(args), *build_roles(args), build_network_policy(args))]
        declare(build_disruption_budget(args), child)
        deployment = build_deployment(args)
        declare(deployment, pulumi.ResourceOptions(parent=self, depends_on=made))
        self.deployment_name = pulumi.Output.from_input(deployment["metadata"]["name"])
        self.register_outputs({"deployment_name": self.deployment_name})


def rights(deletes_machines: bool = True, starts_checks: bool = True) -> list[dict[str, Any]]:
    """The table of what the controller may do: `group`, `resource`, `verbs`, `scope` (namespace or cluster) and `why`. Without
    `deletes_machines`, less the rights that only `remedies.machines: DeleteNode` needs; without `starts_checks`, less those about Jobs."""
    lacking = {"DeleteNode": not deletes_machines, "StartChecks": not starts_checks}
    return [right for right in api_programs.rights_table("rbac.yaml") if not lacking.get(right.get("only", ""))]


def build_service_account(args: ControllersArgs) -> Manifest:
    """The ServiceAccount of the controller."""
    return api_programs.service_account(args["pods"], COMPONENT)


def build_roles(args: ControllersArgs) -> list[Manifest]:
    """The Role for its own namespace, the ClusterRole for reading nodes, and their bindings."""
    return api_programs.scoped_roles(args["pods"], COMPONENT, rights(args["deletes_machines"], args["starts_checks"]))


def build_network_policy(args: ControllersArgs) -> Manifest:
    """Out: names, the API server, slurmrestd, slurmctld's sidecar, and the program for EC2."""
    pods = args["pods"]
    slurmrestd = network.egress_to(pods["cluster"], "slurmrestd", ports.SLURMRESTD, ports.RUNNING_JOBS)
    sidecar = network.egress_to(pods["cluster"], "slurmctld", ports.CONFIG_SYNC)
    ec2 = [network.egress_to(pods["cluster"], "ec2", ports.EC2)] if args["asks_ec2"] else []
    return api_programs.network_policy(pods, COMPONENT, [slurmrestd, sidecar, *ec2])


def ec2_token_name(cluster: str) -> str:
    """Name of the Secret whose `token` lets the controller ask the program for EC2."""
    return object_name(cluster, "ec2-token")


def build_disruption_budget(args: ControllersArgs) -> Manifest:
    """Machines are emptied one replica at a time."""
    pods = args["pods"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": api_programs.about(pods, COMPONENT),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(pods["cluster"], COMPONENT)}},
    }


def build_deployment(args: ControllersArgs) -> Manifest:
    """The Deployment of the NodeSet controller: the replica that holds the Lease acts, the other takes over within seconds."""
    pods = args["pods"]
    cluster = pods["cluster"]
    apart = {"labelSelector": {"matchLabels": selector(cluster, COMPONENT)}, "topologyKey": "kubernetes.io/hostname"}
    pod = api_programs.pod(
        pods,
        COMPONENT,
        _controller(args),
        [secret_volume("jwt", args["jwt_secret"]), *_ec2_token_volumes(args)],
        end_s=20,
        priorityClassName=priority_class_name(cluster, pods["namespace"]),
        affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": apart}]}},
        # The group that may read the JWT key.
        securityContext={"fsGroup": api_programs.CONTROLLER_UID},
    )
    return api_programs.deployment(pods, COMPONENT, pod, replicas=_REPLICAS)


def _ec2_token_volumes(args: ControllersArgs) -> list[Manifest]:
    """The token comes with the program for EC2, for which no controller waits."""
    if not args["asks_ec2"]:
        return []
    volume = secret_volume("ec2", ec2_token_name(args["pods"]["cluster"]))
    return [{**volume, "secret": {**volume["secret"], "optional": True}}]


def _controller(args: ControllersArgs) -> Manifest:
    pods = args["pods"]
    cluster, namespace = pods["cluster"], pods["namespace"]
    env = {
        variables.SLURMRESTD: f"http://{object_name(cluster, 'slurmrestd')}.{namespace}:{ports.SLURMRESTD}",
        variables.JWT_KEY: paths.JWT_KEY,
    }
    if args["asks_ec2"]:
        env[variables.EC2] = f"http://{object_name(cluster, 'ec2')}.{namespace}:{ports.EC2}/steps"
        env[variables.EC2_TOKEN] = f"{_EC2_TOKEN_PATH}/token"
    ec2_mounts = [mount("ec2", _EC2_TOKEN_PATH, read_only=True)] if args["asks_ec2"] else []
    return api_programs.container(
        pods,
        "controller",
        "controllers.nodeset",
        env,
        requests=("50m", "96Mi"),
        memory=_MEMORY,
        mounts=[mount("jwt", paths.JWT, read_only=True), *ec2_mounts],
    )
