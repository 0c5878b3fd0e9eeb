"""Who may connect to which port: one table, of which the network policies are made. docs/security.md has it for people.

A policy says who may come in, never who may not. So a port that somebody needs whose address is not known is open to all: users' commands,
the API server's proxy. The kubelet is always let in to the pods of its node, so the ports of probes are open to nobody. Policies add up: a
site lets others in by a policy of its own. Many clusters enforce none: listeners have bounds of their own (slurm/listen).
"""

from collections.abc import Mapping, Sequence

from components.labels import Manifest, labels, metadata, object_name, selector
from components.pods import PodDefaults
from slurm.ports import (
    CHECKS_PORT,
    CONFIG_SYNC_PORT,
    CONTROLLER_PORT,
    EC2_PORT,
    MARIADB_PORT,
    METRICS_PORT,
    QUEUE_PORT,
    RUNNING_JOBS_PORT,
    SLURMCTLD_PORT,
    SLURMDBD_PORT,
    SLURMRESTD_PORT,
)

USERS = ("login", "slurmd")
"""Components in whose pods users run programs."""
EVERYBODY = ("everybody",)
NOT_USERS = ("all pods but those of users",)
"""Of all namespaces: a Prometheus may be anywhere."""

CALLERS: Mapping[str, Mapping[int, tuple[str, ...]]] = {
    "slurmctld": {SLURMCTLD_PORT: EVERYBODY, CONFIG_SYNC_PORT: ("nodeset-controller",), CHECKS_PORT: ("metrics", "slurmd")},
    "slurmdbd": {SLURMDBD_PORT: EVERYBODY},
    "mariadb": {MARIADB_PORT: ("backup", "slurmdbd")},
    "slurmrestd": {SLURMRESTD_PORT: EVERYBODY, RUNNING_JOBS_PORT: ("nodeset-controller", "page"), QUEUE_PORT: EVERYBODY},
    "nodeset-controller": {CONTROLLER_PORT: NOT_USERS},
    "guard": {CONTROLLER_PORT: NOT_USERS},
    "ec2": {CONTROLLER_PORT: NOT_USERS, EC2_PORT: ("nodeset-controller",)},
    "metrics": {METRICS_PORT: NOT_USERS},
    "page": {CONTROLLER_PORT: EVERYBODY},
}
"""By component and port: components of the same cluster, or one of the two above."""


def policy(pods: PodDefaults, component: str, egress: Sequence[Manifest] | None = None) -> Manifest:
    """The NetworkPolicy `<cluster>-<component>`. Without `egress`, what the pods reach is not limited."""
    cluster = pods["cluster"]
    spec: Manifest = {
        "podSelector": {"matchLabels": selector(cluster, component)},
        "policyTypes": ["Ingress"],
        "ingress": [{**_sources(cluster, callers), "ports": [port(number)]} for number, callers in CALLERS[component].items()],
    }
    if egress is not None:
        spec |= {"policyTypes": ["Ingress", "Egress"], "egress": [*egress]}
    about = metadata(object_name(cluster, component), pods["namespace"], labels(cluster, component))
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": about, "spec": spec}


def egress_to(cluster: str, component: str, *ports: int) -> Manifest:
    """What lets a program reach ports of another component of the cluster."""
    return {"to": [{"podSelector": {"matchLabels": selector(cluster, component)}}], "ports": [port(each) for each in ports]}


NAMES: Manifest = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
"""What lets a program ask for names."""


def port(number: int) -> Manifest:
    return {"port": number, "protocol": "TCP"}


def _sources(cluster: str, callers: tuple[str, ...]) -> Manifest:
    if callers == EVERYBODY:
        return {}
    if callers == NOT_USERS:
        others = {"matchExpressions": [{"key": "app.kubernetes.io/component", "operator": "NotIn", "values": [*USERS]}]}
        return {"from": [{"namespaceSelector": {}, "podSelector": others}]}
    return {"from": [{"podSelector": {"matchLabels": selector(cluster, each)}} for each in callers]}
