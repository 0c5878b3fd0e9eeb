"""The controllers of one cluster and their rights. What they do is in controllers/, which is no part of this package; the kind that they
serve is in kinds.py.
"""

from pathlib import Path
from typing import Any, TypedDict, cast

import pulumi
import yaml

from components.check_jobs import starts_checks
from components.control_plane import priority_class_name
from components.labels import Manifest, labels, metadata, object_name, outside_name, selector
from components.objects import declare
from components.pods import (
    CONFIG_SYNC_PORT,
    RUNNING_JOBS_PORT,
    SLURMRESTD_PORT,
    PodDefaults,
    confined,
    empty_volume,
    http_probe,
    lost_node_tolerations,
    mount,
    pod_template,
    resources,
    secret_volume,
)
from configs.models.cluster import Cluster

COMPONENT = "nodeset-controller"
"""Tail of its objects' names: `<cluster>-nodeset-controller`."""
CONTROLLER_UID = 65532
"""The user in the controllers' image."""
METRICS_PORT = 8080

_FOLDER = Path(__file__).parent / "crds"
_KEY_PATH = "/etc/slipway/jwt"
_RBAC = "rbac.authorization.k8s.io"
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
    starts_checks: bool
    """True: it may make Jobs, from the CronJobs of health checks."""


def controllers_args(cluster: Cluster, pods: PodDefaults, image: str) -> ControllersArgs:
    return {
        "pods": {**pods, "image": image},
        "jwt_secret": object_name(cluster.name, "jwt"),
        "deletes_machines": any(each.remedies is not None and each.remedies.machines == "DeleteNode" for each in cluster.node_sets),
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
    table = cast(list[dict[str, Any]], yaml.safe_load((_FOLDER / "rbac.yaml").read_text()))
    lacking = {"DeleteNode": not deletes_machines, "StartChecks": not starts_checks}
    return [right for right in table if not lacking.get(right.get("only", ""))]


def build_service_account(args: ControllersArgs) -> Manifest:
    """The ServiceAccount of the controller. Its pods request the token themselves."""
    pods = args["pods"]
    about = metadata(object_name(pods["cluster"], COMPONENT), pods["namespace"], labels(pods["cluster"], COMPONENT))
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about, "automountServiceAccountToken": False}


def build_roles(args: ControllersArgs) -> list[Manifest]:
    """The Role for its own namespace, the ClusterRole for reading nodes, and their bindings."""
    pods = args["pods"]
    cluster, namespace = pods["cluster"], pods["namespace"]
    name = object_name(cluster, COMPONENT)
    inside = metadata(name, namespace, labels(cluster, COMPONENT))
    # Cluster roles have no namespace of their own, so the name carries it.
    outside: Manifest = {"name": outside_name(namespace, name), "labels": labels(cluster, COMPONENT)}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    made: list[Manifest] = []
    for kind, about, scope in (("Role", inside, "namespace"), ("ClusterRole", outside, "cluster")):
        role = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": about, "rules": _rules(scope, args)}
        reference = {"apiGroup": _RBAC, "kind": kind, "name": about["name"]}
        binding = {"apiVersion": f"{_RBAC}/v1", "kind": f"{kind}Binding", "metadata": about, "roleRef": reference, "subjects": [subject]}
        made += [role, binding]
    return made


def _rules(scope: str, args: ControllersArgs) -> list[Manifest]:
    return [
        {"apiGroups": [right["group"]], "resources": [right["resource"]], "verbs": right["verbs"]}
        for right in rights(args["deletes_machines"], args["starts_checks"])
        if right["scope"] == scope
    ]


def build_network_policy(args: ControllersArgs) -> Manifest:
    """In: probes and metrics. Out: names, the API server, slurmrestd, and slurmctld's sidecar."""
    pods = args["pods"]
    cluster = pods["cluster"]
    slurmrestd = {
        "to": [{"podSelector": {"matchLabels": selector(cluster, "slurmrestd")}}],
        "ports": [_port(SLURMRESTD_PORT), _port(RUNNING_JOBS_PORT)],
    }
    sidecar = {"to": [{"podSelector": {"matchLabels": selector(cluster, "slurmctld")}}], "ports": [_port(CONFIG_SYNC_PORT)]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(object_name(cluster, COMPONENT), pods["namespace"], labels(cluster, COMPONENT)),
        "spec": {
            "podSelector": {"matchLabels": selector(cluster, COMPONENT)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [_port(METRICS_PORT)]}],
            "egress": [*api_egress(), slurmrestd, sidecar],
        },
    }


def api_egress() -> list[Manifest]:
    """What a program that talks to the API server reaches: names, and the server. Where that listens is not known here, and policies see
    the address behind a Service: any address, on its two usual ports."""
    return [{"ports": [_port(53, "UDP"), _port(53)]}, {"ports": [_port(443), _port(6443)]}]


def probes() -> Manifest:
    """The probes of a container whose program answers as controllers/runtime/serve.py does."""
    return {
        "startupProbe": http_probe(METRICS_PORT, "/healthz", periodSeconds=1, failureThreshold=60),
        "livenessProbe": http_probe(METRICS_PORT, "/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        "readinessProbe": http_probe(METRICS_PORT, "/readyz", periodSeconds=2, timeoutSeconds=5),
    }


def _port(number: int, protocol: str = "TCP") -> Manifest:
    return {"port": number, "protocol": protocol}


def build_disruption_budget(args: ControllersArgs) -> Manifest:
    """Machines are emptied one replica at a time."""
    pods = args["pods"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(object_name(pods["cluster"], COMPONENT), pods["namespace"], labels(pods["cluster"], COMPONENT)),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(pods["cluster"], COMPONENT)}},
    }


def build_deployment(args: ControllersArgs) -> Manifest:
    """The Deployment of the NodeSet controller: the replica that holds the Lease acts, the other takes over within seconds."""
    pods = args["pods"]
    cluster = pods["cluster"]
    spec: Manifest = {
        "replicas": _REPLICAS,
        "selector": {"matchLabels": selector(cluster, COMPONENT)},
        "template": pod_template(pods, COMPONENT, _pod(args)),
    }
    about = metadata(object_name(cluster, COMPONENT), pods["namespace"], labels(cluster, COMPONENT))
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec}


def _pod(args: ControllersArgs) -> Manifest:
    pods = args["pods"]
    cluster = pods["cluster"]
    apart = {"labelSelector": {"matchLabels": selector(cluster, COMPONENT)}, "topologyKey": "kubernetes.io/hostname"}
    return {
        "serviceAccountName": object_name(cluster, COMPONENT),
        "automountServiceAccountToken": True,  # it talks to Kubernetes; no other pod of a cluster does
        "priorityClassName": priority_class_name(cluster, pods["namespace"]),
        "terminationGracePeriodSeconds": 20,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "affinity": {
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": apart}]},
        },
        # The group that may read the JWT key.
        "securityContext": {"fsGroup": CONTROLLER_UID},
        "containers": [_controller(args)],
        "volumes": [secret_volume("jwt", args["jwt_secret"]), empty_volume("tmp")],
    }


def _controller(args: ControllersArgs) -> Manifest:
    pods = args["pods"]
    cluster, namespace = pods["cluster"], pods["namespace"]
    env = {
        "SLIPWAY_CLUSTER": cluster,
        "SLIPWAY_NAMESPACE": namespace,
        "SLIPWAY_SLURMRESTD": f"http://{object_name(cluster, 'slurmrestd')}.{namespace}:{SLURMRESTD_PORT}",
        "SLIPWAY_JWT_KEY": f"{_KEY_PATH}/jwt_hs256.key",
    }
    return {
        "name": "controller",
        "image": pods["image"],
        "imagePullPolicy": pods["pull_policy"],
        "command": ["python", "-m", "controllers.nodeset"],
        "env": [
            *({"name": key, "value": value} for key, value in env.items()),
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "resources": resources(("50m", "96Mi"), _MEMORY),
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT}],
        "securityContext": confined(CONTROLLER_UID),
        **probes(),
        "volumeMounts": [mount("jwt", _KEY_PATH, read_only=True), mount("tmp", "/tmp")],  # noqa: S108 - a mount of the pod's own
    }
