"""Rules of the way in: the Service of the login pods, limits there, and a directory of users."""

import ipaddress
import re

from configs.faults import Fault, quoted
from configs.models.cluster import Cluster
from configs.models.login import LoginLimits, LoginService
from configs.rules.ldap import check_ldap
from configs.rules.names import check_distinct

LEAST_TASKS = 50
LEAST_MEMORY_MIB = 128
_NODE_PORTS = range(30_000, 32_768)
_ANNOTATION = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
"""Source: Kubernetes' qualified names. The prefix may be written with capitals, which it makes small."""


def check_login(cluster: Cluster) -> list[Fault]:
    """Faults of the directory, the login Service and its limits."""
    ldap = check_ldap(cluster.login.ldap) if cluster.login.ldap is not None else []
    return [*ldap, *_check_service(cluster.login.service), *_check_limits(cluster.login.limits)]


def _check_limits(limits: LoginLimits) -> list[Fault]:
    """sshd's own two processes per session count too: a limit that they fill would lock everybody out."""
    path = "cluster.login.limits"
    faults: list[Fault] = []
    if limits.tasks < LEAST_TASKS:
        faults.append(Fault(f"{path}.tasks", f"{limits.tasks} is too few for a session and its programs. Give at least {LEAST_TASKS}."))
    if limits.memory_mib is not None and limits.memory_mib < LEAST_MEMORY_MIB:
        message = f"{limits.memory_mib} MiB is too little for a session and its programs. Give at least {LEAST_MEMORY_MIB}."
        faults.append(Fault(f"{path}.memoryMiB", message))
    return faults


def _check_service(service: LoginService) -> list[Fault]:
    path = "cluster.login.service"
    faults: list[Fault] = []
    if service.node_port is not None:
        if service.type == "ClusterIP":
            faults.append(
                Fault(f"{path}.nodePort", "a ClusterIP service has no node port. Say type: NodePort, or leave it out.", (f"{path}.type",))
            )
        if service.node_port not in _NODE_PORTS:
            message = f"{service.node_port} is outside Kubernetes' node ports ({_NODE_PORTS[0]} to {_NODE_PORTS[-1]})."
            faults.append(Fault(f"{path}.nodePort", message))
    if service.source_ranges and service.type != "LoadBalancer":
        faults.append(Fault(f"{path}.sourceRanges", "works with type: LoadBalancer only; others let everyone in.", (f"{path}.type",)))
    for at, text in enumerate(service.source_ranges):
        if "/" not in text or not _is_network(text):  # Kubernetes takes no address alone
            faults.append(Fault(f"{path}.sourceRanges[{at}]", f"{quoted(text)} is not a network, such as 203.0.113.0/24."))
    faults += check_distinct(f"{path}.sourceRanges", service.source_ranges)
    for key in service.annotations:
        prefix, slash, name = key.rpartition("/")
        if _ANNOTATION.fullmatch(f"{prefix.lower()}{slash}{name}") is None:
            message = f"{quoted(key)} is not a key of a Kubernetes annotation, such as service.beta.kubernetes.io/aws-load-balancer-type."
            faults.append(Fault(f"{path}.annotations", message))
    return faults


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True
