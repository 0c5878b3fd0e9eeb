"""The guard of one cluster, and its rights. What it does is in controllers/guard; what it restores is in the record (deployed.py)."""

from pathlib import Path
from typing import Any, TypedDict, cast

import pulumi
import yaml

from components.controllers import CONTROLLER_UID, METRICS_PORT, api_egress, probes
from components.labels import Manifest, labels, metadata, object_name, selector
from components.objects import declare
from components.pods import PodDefaults, confined, empty_volume, lost_node_tolerations, mount, pod_template, resources

COMPONENT = "guard"
"""Tail of its objects' names: `<cluster>-guard`."""
_MEMORY = "256Mi"
"""Five times what it takes for the dev stack (docs/design.md, section 4)."""
_TABLE = Path(__file__).parent / "crds" / "guard_rbac.yaml"
_RBAC = "rbac.authorization.k8s.io"


class GuardArgs(TypedDict):
    """What the guard needs to know."""

    pods: PodDefaults
    """What all pods of the cluster share; the image is the controllers' own."""


def guard_args(pods: PodDefaults, image: str) -> GuardArgs:
    return {"pods": {**pods, "image": image}}


class Guard(pulumi.ComponentResource):
    """One pod that restores what is edited or deleted by hand. While it is away nothing is restored, and nothing else happens."""

    def __init__(self, name: str, args: GuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Guard", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        made = [declare(manifest, child) for manifest in (build_service_account(args), *build_roles(args), build_network_policy(args))]
        declare(build_deployment(args), pulumi.ResourceOptions(parent=self, depends_on=made))
        self.register_outputs({})


def rights() -> list[dict[str, Any]]:
    """The table of what the guard may do in the cluster's namespace: `group`, `resource`, `verbs` and `why`."""
    return cast(list[dict[str, Any]], yaml.safe_load(_TABLE.read_text()))


def build_service_account(args: GuardArgs) -> Manifest:
    """The ServiceAccount of the guard. Its pod requests the token itself."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _about(args), "automountServiceAccountToken": False}


def build_roles(args: GuardArgs) -> list[Manifest]:
    """The Role for the cluster's namespace, and its binding."""
    about = _about(args)
    rules = [{"apiGroups": [right["group"]], "resources": [right["resource"]], "verbs": right["verbs"]} for right in rights()]
    subject = {"kind": "ServiceAccount", "name": about["name"], "namespace": about["namespace"]}
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": about["name"]}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": about, "rules": rules},
        {"apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding", "metadata": about, "roleRef": reference, "subjects": [subject]},
    ]


def build_network_policy(args: GuardArgs) -> Manifest:
    """In: probes and metrics. Out: names and the API server, wherever it listens."""
    cluster = args["pods"]["cluster"]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _about(args),
        "spec": {
            "podSelector": {"matchLabels": selector(cluster, COMPONENT)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"port": METRICS_PORT, "protocol": "TCP"}]}],
            "egress": api_egress(),
        },
    }


def build_deployment(args: GuardArgs) -> Manifest:
    """The Deployment of the guard: one replica. Two at once, in a rollout, apply the same."""
    pods = args["pods"]
    spec: Manifest = {
        "replicas": 1,
        "selector": {"matchLabels": selector(pods["cluster"], COMPONENT)},
        "template": pod_template(pods, COMPONENT, _pod(args)),
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _about(args), "spec": spec}


def _about(args: GuardArgs) -> Manifest:
    pods = args["pods"]
    return metadata(object_name(pods["cluster"], COMPONENT), pods["namespace"], labels(pods["cluster"], COMPONENT))


def _pod(args: GuardArgs) -> Manifest:
    pods = args["pods"]
    return {
        "serviceAccountName": object_name(pods["cluster"], COMPONENT),
        "automountServiceAccountToken": True,  # it talks to Kubernetes, as only the controllers do
        "terminationGracePeriodSeconds": 5,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "containers": [_guard(args)],
        "volumes": [empty_volume("tmp")],
    }


def _guard(args: GuardArgs) -> Manifest:
    pods = args["pods"]
    return {
        "name": "guard",
        "image": pods["image"],
        "imagePullPolicy": pods["pull_policy"],
        "command": ["python", "-m", "controllers.guard"],
        "env": [
            {"name": "SLIPWAY_CLUSTER", "value": pods["cluster"]},
            {"name": "SLIPWAY_NAMESPACE", "value": pods["namespace"]},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "resources": resources(("10m", "64Mi"), _MEMORY),
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT}],
        "securityContext": confined(CONTROLLER_UID),
        **probes(),
        "volumeMounts": [mount("tmp", "/tmp")],  # noqa: S108 - a mount of the pod's own
    }
