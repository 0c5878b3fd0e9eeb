"""Which changes of inputs make a provider replace a resource. Pure. Types of other providers are not covered.

Source: pulumi-kubernetes, provider/pkg/provider/diff.go (`forceNewProperties`), for apps, batch, core, rbac and storage; pulumi-random,
where every input replaces. Slipway's providers make ConfigMaps and Secrets mutable, so only immutable ones are replaced.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_EVERY_OBJECT = ("metadata.name", "metadata.namespace")
_JOB = ("spec.completions", "spec.parallelism", "spec.selector", "spec.template")
_CLAIM = ("accessModes", "dataSource", "selector", "storageClassName", "volumeMode", "volumeName")
"""A claim's whole spec except its size, which may grow. Source: pulumi-kubernetes, pull request 1705."""
_ROLE = ("roleRef",)
_VOLUME_SOURCES = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "csi",
    "gcePersistentDisk",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
)
_BY_KIND: Mapping[str, tuple[str, ...]] = {
    "ClusterRoleBinding": _ROLE,
    "DaemonSet": ("spec.selector",),
    "Deployment": ("spec.selector",),
    "Job": _JOB,
    "PersistentVolume": tuple(f"spec.{source}" for source in _VOLUME_SOURCES),
    "PersistentVolumeClaim": tuple(f"spec.{field}" for field in _CLAIM),
    "RoleBinding": _ROLE,
    "Secret": ("type",),
    "Service": ("spec.clusterIP",),
    "StatefulSet": (
        "spec.podManagementPolicy",
        "spec.revisionHistoryLimit",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    "StorageClass": ("parameters", "provisioner"),
}
_IF_IMMUTABLE: Mapping[str, tuple[str, ...]] = {
    "ConfigMap": ("data", "binaryData", "immutable"),
    "Secret": ("data", "stringData", "immutable"),
}


def dotted(path: Iterable[str]) -> str:
    """A path as people write it: `spec.containers[0].image`."""
    return ".".join(path).replace(".[", "[")


def replacing_path(type_: str, old: Mapping[str, Any], changed: Iterable[tuple[str, ...]]) -> str:
    """The first changed path that replaces the resource; empty if it is updated in place. `old` is its old inputs."""
    return next((dotted(path) for path in changed if _replaces(type_, old, path)), "")


def _replaces(type_: str, old: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    if type_.startswith("random:"):
        return True
    if not type_.startswith("kubernetes:"):
        return False
    kind = type_.rpartition(":")[2]
    fields = (*_EVERY_OBJECT, *_BY_KIND.get(kind, ()), *(_IF_IMMUTABLE.get(kind, ()) if old.get("immutable") else ()))
    return any(path[: len(steps)] == steps for steps in (tuple(field.split(".")) for field in fields))
