"""Who may connect to which port: one table, of which the network policies are made. docs/explain/security.md has it for people.

A policy can only allow. So a port is open to all if a client's address is unknown: users' commands, the API server's proxy. The kubelet can
always reach the pods of its node, so the ports of probes are closed. Policies add up: a site can allow more with its own policy. Many
clusters enforce none, so listeners have their own limits (slurm/listen).
"""

from collections.abc import Mapping, Sequence

from components.labels import Manifest, component_metadata, selector
from components.pods import PodDefaults
from names import ports
from names.labels import COMPONENT

USERS = ("login", "slurmd")
"""Components in whose pods users run programs."""
EVERYBODY = ("everybody",)
NOT_USERS = ("all pods but those of users",)
"""In all namespaces: a Prometheus may be anywhere."""

CALLERS: Mapping[str, Mapping[int, tuple[str, ...]]] = {
    "slurmctld": {ports.SLURMCTLD: EVERYBODY, ports.CONFIG_SYNC: ("nodeset-controller",), ports.CHECKS: ("metrics", "slurmd")},
    "slurmdbd": {ports.SLURMDBD: EVERYBODY},
    "mariadb": {ports.MARIADB: ("backup", "slurmdbd")},
    "slurmrestd": {ports.SLURMRESTD: EVERYBODY, ports.RUNNING_JOBS: ("nodeset-controller", "page"), ports.QUEUE: EVERYBODY},
    "nodeset-controller": {ports.CONTROLLER: NOT_USERS},
    "guard": {ports.CONTROLLER: NOT_USERS},
    "ec2": {ports.CONTROLLER: NOT_USERS, ports.EC2: ("nodeset-controller",)},
    "metrics": {ports.METRICS: NOT_USERS},
    "page": {ports.CONTROLLER: EVERYBODY},
}
"""By component and port: components of the same cluster, or one of the two values above."""


def policy(pods: PodDefaults, component: str, egress: Sequence[Manifest] | None = None) -> Manifest:
    """The NetworkPolicy of a component in CALLERS. Without `egress`, the pods may connect to anything."""
    cluster = pods["cluster"]
    ingress = [{**_sources(cluster, callers), "ports": [port(number)]} for number, callers in CALLERS[component].items()]
    return build_policy(cluster, pods["namespace"], component, ingress, egress)


def build_policy(
    cluster: str, namespace: str, component: str, ingress: Sequence[Manifest] | None, egress: Sequence[Manifest] | None = None
) -> Manifest:
    """The NetworkPolicy `<cluster>-<component>`. Without `ingress`, nothing may connect to the pods."""
    spec: Manifest = {"podSelector": {"matchLabels": selector(cluster, component)}, "policyTypes": ["Ingress"]}
    if ingress is not None:
        spec["ingress"] = [*ingress]
    if egress is not None:
        spec |= {"policyTypes": ["Ingress", "Egress"], "egress": [*egress]}
    about = component_metadata(cluster, namespace, component)
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": about, "spec": spec}


def egress_to(cluster: str, component: str, *ports: int) -> Manifest:
    """The egress rule to ports of another component of the cluster."""
    return {"to": [{"podSelector": {"matchLabels": selector(cluster, component)}}], "ports": [port(number) for number in ports]}


NAMES: Manifest = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
"""The egress rule to DNS."""


def port(number: int) -> Manifest:
    return {"port": number, "protocol": "TCP"}


def _sources(cluster: str, callers: tuple[str, ...]) -> Manifest:
    if callers == EVERYBODY:
        return {}
    if callers == NOT_USERS:
        not_users = {"matchExpressions": [{"key": COMPONENT, "operator": "NotIn", "values": [*USERS]}]}
        return {"from": [{"namespaceSelector": {}, "podSelector": not_users}]}
    return {"from": [{"podSelector": {"matchLabels": selector(cluster, caller)}} for caller in callers]}
