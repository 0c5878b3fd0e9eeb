"""The web page of one cluster, and its rights. What it shows is in controllers/page."""

from pathlib import Path
from typing import Any, TypedDict, cast

import pulumi
import yaml

from components.controllers import CONTROLLER_UID, api_egress, probes
from components.labels import Manifest, labels, metadata, object_name, selector
from components.objects import declare
from components.pods import (
    RUNNING_JOBS_PORT,
    SLURMRESTD_PORT,
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

COMPONENT = "page"
"""Tail of its objects' names: `<cluster>-page`."""
PORT = 80
"""Of its Service."""
_LISTENS = 8080
_MEMORY = "1Gi"
"""A bound for a leak: a snapshot of 5,000 nodes and 10,000 jobs is below 4 MB, in a few copies."""
_KEY_PATH = "/etc/slipway/jwt"
_TABLE = Path(__file__).parent / "crds" / "page_rbac.yaml"
_RBAC = "rbac.authorization.k8s.io"
_HIDEABLE = ("jobs", "nodes")


class PageArgs(TypedDict):
    """What the page needs to know."""

    pods: PodDefaults
    """What all pods of the cluster share; the image is the controllers' own."""
    jwt_secret: str
    """Name of the Secret whose `jwt_hs256.key` signs tokens."""
    hidden: list[str]
    """`jobs` and `nodes`, where `page.hide` or Slurm's PrivateData hides them."""


def page_args(cluster: Cluster, pods: PodDefaults, image: str) -> PageArgs:
    return {"pods": {**pods, "image": image}, "jwt_secret": object_name(cluster.name, "jwt"), "hidden": hidden(cluster)}


def hidden(cluster: Cluster) -> list[str]:
    """What `page.hide` and PrivateData hide of jobs and nodes, wherever the stack file has it. Slurm looks for the words `job`, `node` and
    `all` in PrivateData."""
    asked = cluster.page.hide if cluster.page is not None else ()
    lines = [*cluster.slurm.settings.items(), *((key, value) for key, _, value in (line.partition("=") for line in cluster.slurm.raw))]
    said = " ".join(str(value) for key, value in lines if key.strip().lower() == "privatedata").lower()
    return [one for one in _HIDEABLE if one in asked or one[:-1] in said or "all" in said]


class StatusPage(pulumi.ComponentResource):
    """One pod that shows the cluster in a browser, and its Service. While it is away nobody sees the page, and nothing else happens."""

    def __init__(self, name: str, args: PageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:StatusPage", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        made = [declare(manifest, child) for manifest in (build_service_account(args), *build_roles(args), build_network_policy(args))]
        declare(build_service(args), child)
        declare(build_deployment(args), pulumi.ResourceOptions(parent=self, depends_on=made))
        self.register_outputs({})


def rights() -> list[dict[str, Any]]:
    """The table of what the page may do in the cluster's namespace: `group`, `resource`, `verbs` and `why`."""
    return cast(list[dict[str, Any]], yaml.safe_load(_TABLE.read_text()))


def build_service_account(args: PageArgs) -> Manifest:
    """The ServiceAccount of the page. Its pod requests the token itself."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _about(args), "automountServiceAccountToken": False}


def build_roles(args: PageArgs) -> list[Manifest]:
    """The Role for the cluster's namespace, and its binding."""
    about = _about(args)
    rules = [{"apiGroups": [right["group"]], "resources": [right["resource"]], "verbs": right["verbs"]} for right in rights()]
    subject = {"kind": "ServiceAccount", "name": about["name"], "namespace": about["namespace"]}
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": about["name"]}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": about, "rules": rules},
        {"apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding", "metadata": about, "roleRef": reference, "subjects": [subject]},
    ]


def build_network_policy(args: PageArgs) -> Manifest:
    """In: the page, on one port. Out: names, the API server, and the program beside slurmrestd."""
    cluster = args["pods"]["cluster"]
    slurmrestd = {
        "to": [{"podSelector": {"matchLabels": selector(cluster, "slurmrestd")}}],
        "ports": [{"port": RUNNING_JOBS_PORT, "protocol": "TCP"}],
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _about(args),
        "spec": {
            "podSelector": {"matchLabels": selector(cluster, COMPONENT)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"port": _LISTENS, "protocol": "TCP"}]}],
            "egress": [*api_egress(), slurmrestd],
        },
    }


def build_service(args: PageArgs) -> Manifest:
    """The Service `<cluster>-page`, inside the cluster only: an ssh tunnel of a login pod ends there, or a proxy stands before it."""
    return service(args["pods"], COMPONENT, PORT, ports=[{"name": "http", "port": PORT, "targetPort": _LISTENS}])


def build_deployment(args: PageArgs) -> Manifest:
    """The Deployment of the page: one replica, which alone has the last day; the old one goes first."""
    pods = args["pods"]
    spec: Manifest = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selector(pods["cluster"], COMPONENT)},
        "template": pod_template(pods, COMPONENT, _pod(args)),
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _about(args), "spec": spec}


def _about(args: PageArgs) -> Manifest:
    pods = args["pods"]
    return metadata(object_name(pods["cluster"], COMPONENT), pods["namespace"], labels(pods["cluster"], COMPONENT))


def _pod(args: PageArgs) -> Manifest:
    pods = args["pods"]
    return {
        "serviceAccountName": object_name(pods["cluster"], COMPONENT),
        "automountServiceAccountToken": True,  # it reads node sets and their nodes
        "terminationGracePeriodSeconds": 5,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        # The group that may read the JWT key.
        "securityContext": {"fsGroup": CONTROLLER_UID},
        "containers": [_page(args)],
        "volumes": [secret_volume("jwt", args["jwt_secret"]), empty_volume("tmp")],
    }


def _page(args: PageArgs) -> Manifest:
    pods = args["pods"]
    cluster, namespace = pods["cluster"], pods["namespace"]
    env = {
        "SLIPWAY_CLUSTER": cluster,
        "SLIPWAY_NAMESPACE": namespace,
        "SLIPWAY_SLURMRESTD": f"http://{object_name(cluster, 'slurmrestd')}.{namespace}:{SLURMRESTD_PORT}",
        "SLIPWAY_JWT_KEY": f"{_KEY_PATH}/jwt_hs256.key",
        "SLIPWAY_HISTORY": "/tmp/history.json",  # noqa: S108 - a mount of the pod's own
        **({"SLIPWAY_HIDDEN": ",".join(args["hidden"])} if args["hidden"] else {}),
    }
    return {
        "name": "page",
        "image": pods["image"],
        "imagePullPolicy": pods["pull_policy"],
        "command": ["python", "-m", "controllers.page"],
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "resources": resources(("10m", "64Mi"), _MEMORY),
        "ports": [{"name": "http", "containerPort": _LISTENS}],
        "securityContext": confined(CONTROLLER_UID),
        **probes(),
        "volumeMounts": [mount("jwt", _KEY_PATH, read_only=True), mount("tmp", "/tmp")],  # noqa: S108 - a mount of the pod's own
    }
