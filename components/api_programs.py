"""What the programs of controllers/ share in Kubernetes: an account with the rights of a table, a network policy and probes.

Their pods request the account's token themselves. No other pod of a cluster talks to the API server.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from components import network
from components.labels import Manifest, component_metadata, labels, object_name, outside_name
from components.pods import PodDefaults, confined, empty_volume, http_probe, lost_node_tolerations, mount, resources
from configs.yaml_text import parse_yaml
from names import ports, variables

CONTROLLER_UID = 65532
"""The user in the controllers' image."""
_FOLDER = Path(__file__).parent / "crds"
_RBAC = "rbac.authorization.k8s.io"


def about(pods: PodDefaults, component: str) -> Manifest:
    """The metadata of the component's object `<cluster>-<component>`."""
    return component_metadata(pods["cluster"], pods["namespace"], component)


def rights_table(file: str) -> list[dict[str, Any]]:
    """A table of rights in the folder of kinds: `group`, `resource`, `verbs` and `why`. Some tables also have `scope` (namespace or
    cluster) and the `name` of a single object."""
    return cast(list[dict[str, Any]], parse_yaml((_FOLDER / file).read_text()))


def service_account(pods: PodDefaults, component: str) -> Manifest:
    """The ServiceAccount. Its pods request their token explicitly."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about(pods, component), "automountServiceAccountToken": False}


def bound_role(pods: PodDefaults, component: str, kind: str, role: Manifest, rights: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    """A Role or ClusterRole (`kind`) with the metadata `role` and these rights, and its binding to the component's ServiceAccount."""
    subject = {"kind": "ServiceAccount", "name": object_name(pods["cluster"], component), "namespace": pods["namespace"]}
    reference = {"apiGroup": _RBAC, "kind": kind, "name": role["name"]}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": role, "rules": [_rule(right) for right in rights]},
        {"apiVersion": f"{_RBAC}/v1", "kind": f"{kind}Binding", "metadata": role, "roleRef": reference, "subjects": [subject]},
    ]


def scoped_roles(pods: PodDefaults, component: str, rights: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    """The Role for the cluster's namespace, the ClusterRole for cluster-scoped objects, and their bindings."""
    # A ClusterRole has no namespace, so its name contains it.
    name = outside_name(pods["namespace"], object_name(pods["cluster"], component))
    cluster_wide: Manifest = {"name": name, "labels": labels(pods["cluster"], component)}
    manifests: list[Manifest] = []
    for kind, role, scope in (("Role", about(pods, component), "namespace"), ("ClusterRole", cluster_wide, "cluster")):
        manifests += bound_role(pods, component, kind, role, [right for right in rights if right["scope"] == scope])
    return manifests


def _rule(right: Mapping[str, Any]) -> Manifest:
    names = {"resourceNames": [right["name"]]} if "name" in right else {}
    return {"apiGroups": [right["group"]], "resources": [right["resource"]], "verbs": right["verbs"], **names}


def network_policy(pods: PodDefaults, component: str, egress: Sequence[Manifest] = ()) -> Manifest:
    """Ingress by the table in network.py; egress to DNS, the API server and `egress`."""
    return network.policy(pods, component, [*_api_egress(), *egress])


def _api_egress() -> list[Manifest]:
    """DNS and the API server. Its address is unknown here, and policies apply behind the Service, so any address is allowed on its two
    usual ports."""
    return [network.NAMES, {"ports": [network.port(443), network.port(6443)]}]


def pod(pods: PodDefaults, component: str, container: Manifest, volumes: Sequence[Manifest] = (), end_s: int = 5, **spec: Any) -> Manifest:
    """The pod of one program, with `end_s` seconds to end."""
    return {
        "serviceAccountName": object_name(pods["cluster"], component),
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": end_s,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        **spec,
        "containers": [container],
        "volumes": [*volumes, empty_volume("tmp")],
    }


def container(
    pods: PodDefaults,
    name: str,
    module: str,
    env: Mapping[str, str],
    *,
    requests: tuple[str, str],
    memory: str,
    mounts: Sequence[Manifest] = (),
    port_name: str = "metrics",
    more_ports: Sequence[Manifest] = (),
    knows_its_name: bool = True,
) -> Manifest:
    """Runs `python -m MODULE` in the image of `pods`, which must be the controllers' image. Sets `env`, and POD_NAME if
    `knows_its_name`."""
    pod_name = {"name": variables.POD_NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return {
        "name": name,
        "image": pods["image"],
        "imagePullPolicy": pods["pull_policy"],
        "command": ["python", "-m", module],
        "env": [*({"name": key, "value": value} for key, value in env.items()), *([pod_name] if knows_its_name else [])],
        "resources": resources(requests, memory),
        "ports": [{"name": port_name, "containerPort": ports.CONTROLLER}, *more_ports],
        "securityContext": confined(CONTROLLER_UID),
        "startupProbe": http_probe(ports.PROBE, "/healthz", periodSeconds=1, failureThreshold=60),
        "livenessProbe": http_probe(ports.PROBE, "/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        "readinessProbe": http_probe(ports.PROBE, "/readyz", periodSeconds=2, timeoutSeconds=5),
        "volumeMounts": [*mounts, mount("tmp", "/tmp")],  # noqa: S108 - a mount of the pod's own
    }
