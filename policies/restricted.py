"""Pods are restricted in the sense of Kubernetes' Pod Security Standards; `exceptions` names those that cannot be, and what they may have.

Source of every check: Pod Security Standards, profile "restricted" (with "baseline"). Exemptions set in admission controllers are ignored.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from policies.exceptions import HOST_PATHS, PODS, Exempt
from policies.pods import Container, Pod, pods
from policies.records import Fault, Resource, Rule, items, mapping

_SAFE_SYSCTLS = frozenset(
    {
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.ping_group_range"),
        *("net.ipv4.ip_unprivileged_port_start", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
        *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_syncookies"),
    }
)
_PROFILES = ("RuntimeDefault", "Localhost")
_VOLUMES = frozenset(["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "nfs", "persistentVolumeClaim", "projected", "secret"])
"""The volumes of the standard, and nfs, which the standard leaves out for its protocol's age, not to protect the node."""
_MORE = frozenset({"NET_BIND_SERVICE"})
_NONE = Exempt("")
_REMEDY = "Take it away, or accept it with LEVELS in slipway_policies.py."


def check(resources: Sequence[Resource]) -> Iterator[Fault]:
    """What pods have beyond the standard and beyond their exception."""
    for pod in pods(resources):
        for path, problem in _pod_faults(pod):
            yield Fault(pod.resource, f"{pod.path}.{path}", problem, _REMEDY)
        for container in pod.containers:
            exempt = PODS.get((pod.component, container.name), _NONE) if pod.resource.is_slipways else _NONE
            for name, path, problem in _container_faults(container, exempt):
                if name not in exempt.allows:
                    yield Fault(pod.resource, f"{container.path}.{path}", problem, _REMEDY)


def _pod_faults(pod: Pod) -> Iterator[tuple[str, str]]:
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.get(key):
            yield key, "shares it with the machine."
    for volume in (mapping(item) for item in items(pod.spec.get("volumes"))):
        name = str(volume.get("name", "?"))
        for sort in volume.keys() - _VOLUMES - {"name"}:
            if not (sort == "hostPath" and pod.resource.is_slipways and _is_shared(name)):
                value = mapping(volume[sort]).get("path", sort)
                yield f"volumes[{name}].{sort}", f'"{value}" is a part of the machine.'
    for sysctl in (mapping(item).get("name") for item in items(pod.security.get("sysctls"))):
        if sysctl not in _SAFE_SYSCTLS:
            yield "securityContext.sysctls", f"{sysctl} is none of the safe ones."


def _is_shared(volume: str) -> bool:
    return any(volume == name or (name.endswith("-") and volume.startswith(name)) for name in HOST_PATHS)


def _container_faults(container: Container, exempt: Exempt) -> Iterator[tuple[str, str, str]]:
    """The name of a failed check, the place and what is there."""
    security, shared = container.security, container.pod.security

    def effective(key: str) -> Any:
        return security[key] if key in security else shared.get(key)

    if security.get("privileged"):
        yield "privileged", "securityContext.privileged", "is true: the container has every right on the machine."
    if security.get("allowPrivilegeEscalation") is not False:
        yield "escalation", "securityContext.allowPrivilegeEscalation", "is not false."
    if effective("runAsNonRoot") is not True:
        yield "root", "securityContext.runAsNonRoot", "is not true."
    elif effective("runAsUser") == 0:
        yield "root", "securityContext.runAsUser", "is 0, root."
    capabilities = mapping(security.get("capabilities"))
    if "ALL" not in items(capabilities.get("drop")):
        yield "capabilities", "securityContext.capabilities.drop", "does not name ALL."
    for name in sorted(set(items(capabilities.get("add"))) - _MORE - exempt.capabilities):
        yield "added", "securityContext.capabilities.add", f"{name} is more than the standard allows."
    if mapping(effective("seccompProfile")).get("type") not in _PROFILES:
        yield "seccomp", "securityContext.seccompProfile", "is not RuntimeDefault."
    if mapping(effective("appArmorProfile")).get("type", "RuntimeDefault") not in _PROFILES:
        yield "apparmor", "securityContext.appArmorProfile", "is not RuntimeDefault."
    if security.get("procMount", "Default") != "Default":
        yield "proc", "securityContext.procMount", "is not Default."
    for port in (mapping(item) for item in items(container.spec.get("ports"))):
        if port.get("hostPort"):
            yield "ports", f"ports[{port.get('name', port.get('containerPort'))}].hostPort", f"{port['hostPort']} is a port of the machine."


RULE = Rule(
    "restricted-pods",
    "Pods have no right beyond the restricted standard, except those that policies/exceptions.py names.",
    "Kubernetes, Pod Security Standards, profile restricted.",
    check,
)
