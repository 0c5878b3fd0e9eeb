"""The program for EC2 of one cluster, its token and its rights. What it does is in controllers/ec2."""

from pathlib import Path
from typing import Any, TypedDict, cast

import pulumi
import yaml

from components.controllers import COMPONENT as CONTROLLER
from components.controllers import CONTROLLER_UID, EC2_PORT, METRICS_PORT, api_egress, ec2_token_name, probes
from components.generations import KEY_LENGTH, newest_key
from components.labels import Manifest, labels, metadata, object_name, outside_name, selector
from components.objects import declare, secret
from components.pods import (
    PodDefaults,
    confined,
    empty_volume,
    lost_node_tolerations,
    mount,
    pod_template,
    resources,
    secret_volume,
    service,
)
from configs.models.cluster import Cluster
from configs.models.ec2 import Ec2

COMPONENT = "ec2"
"""Tail of its objects' names: `<cluster>-ec2`."""
_MEMORY = "512Mi"
"""boto3 with a client takes 50 MiB, the rest of the program as much again (docs/design.md, section 4)."""
_TOKEN_PATH = "/etc/slipway/token"  # noqa: S105 - a folder
_POD_IDENTITY = ("169.254.170.23/32", "fd00:ec2::23/128")
"""Where EKS Pod Identity's agent listens on each machine, on port 80. Source: EKS User Guide, "Set up the Pod Identity Agent"."""
_TABLE = Path(__file__).parent / "crds" / "ec2_rbac.yaml"
_RBAC = "rbac.authorization.k8s.io"


class Ec2Args(TypedDict):
    """What the program needs to know."""

    pods: PodDefaults
    """What all pods of the cluster share; the image is the controllers' own."""
    config: Ec2
    """What the stack file says of it."""
    steps: list[str]
    """The steps of repairs that node sets have it take."""
    deletion_protection: bool
    """True: the token's Secret can be neither deleted nor replaced."""


def ec2_args(cluster: Cluster, pods: PodDefaults, config: Ec2, image: str) -> Ec2Args:
    policies = [each.remedies for each in cluster.node_sets if each.remedies is not None and each.remedies.machines == "EC2"]
    steps = sorted({step for policy in policies for step in policy.steps if step != "RecreatePod"})
    return {"pods": {**pods, "image": image}, "config": config, "steps": steps, "deletion_protection": cluster.deletion_protection}


class Ec2Program(pulumi.ComponentResource):
    """One pod that asks EC2 about the machines, and reboots and replaces them where a node set says so. While it is away, what was last
    known of them stays, and no machine is rebooted or replaced."""

    def __init__(self, name: str, args: Ec2Args, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Ec2Program", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        kept = pulumi.ResourceOptions(parent=self, protect=args["deletion_protection"])
        made = [declare(manifest, child) for manifest in (build_service_account(args), *build_roles(args), build_network_policy(args))]
        token_name = ec2_token_name(args["pods"]["cluster"])
        about = labels(args["pods"]["cluster"], COMPONENT)
        token = secret(token_name, args["pods"]["namespace"], about, {"token": newest_key(f"{token_name}-key", 1, KEY_LENGTH, kept)})
        made.append(declare(token, kept))
        declare(build_service(args), child)
        declare(build_deployment(args), pulumi.ResourceOptions(parent=self, depends_on=made))
        self.register_outputs({})


def rights(cluster: str) -> list[dict[str, Any]]:
    """The table of what the program may do: `group`, `resource`, `verbs`, `scope`, for some the `name` of the only object, and `why`."""
    table = cast(list[dict[str, Any]], yaml.safe_load(_TABLE.read_text()))
    return [{**right, "name": right["name"].format(cluster=cluster)} if "name" in right else right for right in table]


def build_service_account(args: Ec2Args) -> Manifest:
    """The ServiceAccount of the program, with its IAM role where the stack file names one. Its pod requests the token itself."""
    role = args["config"].role_arn
    about = _about(args)
    about |= {"annotations": {"eks.amazonaws.com/role-arn": role}} if role is not None else {}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about, "automountServiceAccountToken": False}


def build_roles(args: Ec2Args) -> list[Manifest]:
    """The Role for its own namespace, the ClusterRole for Kubernetes nodes, and their bindings."""
    cluster, namespace = args["pods"]["cluster"], args["pods"]["namespace"]
    name = object_name(cluster, COMPONENT)
    outside: Manifest = {"name": outside_name(namespace, name), "labels": labels(cluster, COMPONENT)}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    made: list[Manifest] = []
    for kind, about, scope in (("Role", _about(args), "namespace"), ("ClusterRole", outside, "cluster")):
        rules = [_rule(right) for right in rights(cluster) if right["scope"] == scope]
        reference = {"apiGroup": _RBAC, "kind": kind, "name": about["name"]}
        made.append({"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": about, "rules": rules})
        made.append({"apiVersion": f"{_RBAC}/v1", "kind": f"{kind}Binding", "metadata": about, "roleRef": reference, "subjects": [subject]})
    return made


def _rule(right: dict[str, Any]) -> Manifest:
    names = {"resourceNames": [right["name"]]} if "name" in right else {}
    return {"apiGroups": [right["group"]], "resources": [right["resource"]], "verbs": right["verbs"], **names}


def build_network_policy(args: Ec2Args) -> Manifest:
    """In: probes and metrics, and requests of the NodeSet controller. Out: names, the API server, AWS, and EKS Pod Identity's agent."""
    controller = {"podSelector": {"matchLabels": selector(args["pods"]["cluster"], CONTROLLER)}}
    agent = {"to": [{"ipBlock": {"cidr": cidr}} for cidr in _POD_IDENTITY], "ports": [_port(80)]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _about(args),
        "spec": {
            "podSelector": {"matchLabels": selector(args["pods"]["cluster"], COMPONENT)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [_port(METRICS_PORT)]}, {"from": [controller], "ports": [_port(EC2_PORT)]}],
            "egress": [*api_egress(), agent],
        },
    }


def build_service(args: Ec2Args) -> Manifest:
    """The Service `<cluster>-ec2`, where the NodeSet controller asks for steps, and Prometheus for metrics. A program that is not ready
    says why a step is refused, so it is reached all the same."""
    ports = [
        {"name": "steps", "port": EC2_PORT, "targetPort": EC2_PORT},
        {"name": "metrics", "port": METRICS_PORT, "targetPort": METRICS_PORT},
    ]
    return service(args["pods"], COMPONENT, EC2_PORT, ports=ports, publishNotReadyAddresses=True)


def build_deployment(args: Ec2Args) -> Manifest:
    """The Deployment of the program: one replica; the old one goes first."""
    pods = args["pods"]
    spec: Manifest = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selector(pods["cluster"], COMPONENT)},
        "template": pod_template(pods, COMPONENT, _pod(args)),
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _about(args), "spec": spec}


def _port(number: int) -> Manifest:
    return {"port": number, "protocol": "TCP"}


def _about(args: Ec2Args) -> Manifest:
    pods = args["pods"]
    return metadata(object_name(pods["cluster"], COMPONENT), pods["namespace"], labels(pods["cluster"], COMPONENT))


def _pod(args: Ec2Args) -> Manifest:
    pods = args["pods"]
    return {
        "serviceAccountName": object_name(pods["cluster"], COMPONENT),
        "automountServiceAccountToken": True,  # it reads Kubernetes nodes, and writes their conditions
        "terminationGracePeriodSeconds": 15,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        # The group that may read the token, and the one that EKS mounts for the IAM role.
        "securityContext": {"fsGroup": CONTROLLER_UID},
        "containers": [_container(args)],
        "volumes": [secret_volume("token", ec2_token_name(pods["cluster"])), empty_volume("tmp")],
    }


def _container(args: Ec2Args) -> Manifest:
    pods, config = args["pods"], args["config"]
    env = {
        "SLIPWAY_CLUSTER": pods["cluster"],
        "SLIPWAY_NAMESPACE": pods["namespace"],
        "SLIPWAY_TOKEN": f"{_TOKEN_PATH}/token",
        "SLIPWAY_EVERY_S": str(config.every_s),
        "SLIPWAY_GRACE_S": str(config.impaired_s),
        "SLIPWAY_MAX_PER_HOUR": str(config.max_per_hour),
        "SLIPWAY_REQUESTS_PORT": str(EC2_PORT),
        **({"SLIPWAY_STEPS": ",".join(args["steps"])} if args["steps"] else {}),
        "AWS_REGION": config.region,
        "AWS_EC2_METADATA_DISABLED": "true",  # the role of the machine is none of ours
    }
    return {
        "name": "ec2",
        "image": pods["image"],
        "imagePullPolicy": pods["pull_policy"],
        "command": ["python", "-m", "controllers.ec2"],
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "resources": resources(("10m", "128Mi"), _MEMORY),
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT}, {"name": "steps", "containerPort": EC2_PORT}],
        "securityContext": confined(CONTROLLER_UID),
        **probes(),
        "volumeMounts": [mount("token", _TOKEN_PATH, read_only=True), mount("tmp", "/tmp")],  # noqa: S108 - a mount of the pod's own
    }
