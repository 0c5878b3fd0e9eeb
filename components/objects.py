"""Registers manifests as typed resources of pulumi-kubernetes, and builds ConfigMaps and Secrets. Only `declare` registers.

Manifests have Kubernetes' camelCase keys, which the typed classes accept, so the API gets exactly what a builder returns.
"""

import base64
import contextlib
import functools
import hashlib
import json
from collections.abc import Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.labels import Manifest, metadata
from names import crds

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""For objects that become ready only after other objects exist, so that waiting for them would never end."""

SECRET_DATA = "data"  # noqa: S105 (the name of a field, not a secret)
"""Its changes are ignored in a Secret with the first generation of a key, see `components.generations`."""

CLAIMS = "spec.volumeClaimTemplates"
"""Its changes are ignored in a StatefulSet: Kubernetes refuses them, so the set and its disks would be replaced."""

_CLASSES: dict[tuple[str, str], Any] = {
    ("v1", "ConfigMap"): kubernetes.core.v1.ConfigMap,
    ("v1", "Namespace"): kubernetes.core.v1.Namespace,
    ("v1", "PersistentVolume"): kubernetes.core.v1.PersistentVolume,
    ("v1", "PersistentVolumeClaim"): kubernetes.core.v1.PersistentVolumeClaim,
    ("v1", "Secret"): kubernetes.core.v1.Secret,
    ("v1", "Service"): kubernetes.core.v1.Service,
    ("v1", "ServiceAccount"): kubernetes.core.v1.ServiceAccount,
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): kubernetes.apiextensions.v1.CustomResourceDefinition,
    ("apps/v1", "Deployment"): kubernetes.apps.v1.Deployment,
    ("apps/v1", "StatefulSet"): kubernetes.apps.v1.StatefulSet,
    ("batch/v1", "CronJob"): kubernetes.batch.v1.CronJob,
    ("networking.k8s.io/v1", "NetworkPolicy"): kubernetes.networking.v1.NetworkPolicy,
    ("node.k8s.io/v1", "RuntimeClass"): kubernetes.node.v1.RuntimeClass,
    ("policy/v1", "PodDisruptionBudget"): kubernetes.policy.v1.PodDisruptionBudget,
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): kubernetes.rbac.v1.ClusterRole,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): kubernetes.rbac.v1.ClusterRoleBinding,
    ("rbac.authorization.k8s.io/v1", "Role"): kubernetes.rbac.v1.Role,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): kubernetes.rbac.v1.RoleBinding,
    ("scheduling.k8s.io/v1", "PriorityClass"): kubernetes.scheduling.v1.PriorityClass,
    (crds.API_VERSION, "NodeSet"): functools.partial(kubernetes.apiextensions.CustomResource, api_version=crds.API_VERSION, kind="NodeSet"),
    **{
        ("monitoring.coreos.com/v1", kind): functools.partial(
            kubernetes.apiextensions.CustomResource, api_version="monitoring.coreos.com/v1", kind=kind
        )
        for kind in ("PodMonitor", "PrometheusRule", "ServiceMonitor")
    },
}


@dataclass(frozen=True)
class Declared:
    """A registered object, for the record of the deployed objects."""

    manifest: Manifest
    """The object as it was declared."""
    ignored: tuple[str, ...]
    """Paths whose changes are ignored."""
    resource: pulumi.Resource
    """Its resource."""


_collected: ContextVar[list[Declared] | None] = ContextVar("collected", default=None)
_ARGUMENTS = {"automountServiceAccountToken": "automount_service_account_token", "roleRef": "role_ref"}


def declare(manifest: Manifest, opts: pulumi.ResourceOptions, name: str | None = None) -> pulumi.CustomResource:
    """Registers a manifest as the typed resource of its kind, or as a custom resource. The logical name defaults to the object's name.

    Raises KeyError for a kind without a class above.
    """
    make = _CLASSES[manifest["apiVersion"], manifest["kind"]]
    fields = {_ARGUMENTS.get(key, key): value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    resource = make(name or manifest["metadata"]["name"], **fields, opts=opts)
    if (collected := _collected.get()) is not None:
        collected.append(Declared(manifest, tuple(opts.ignore_changes or ()), resource))
    return resource


@contextlib.contextmanager
def collecting() -> Generator[list[Declared]]:
    """Collects the objects that are declared during the block, in order."""
    collected: list[Declared] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def content_name(prefix: str, files: Mapping[str, str]) -> str:
    """`<prefix>-<hash of the files>`: any change of the files changes the name."""
    content = json.dumps(dict(files), sort_keys=True).encode()
    return f"{prefix}-{hashlib.sha256(content).hexdigest()[:10]}"


def config_map(name: str, namespace: str, object_labels: dict[str, str], files: Mapping[str, str]) -> Manifest:
    """A mutable ConfigMap with a fixed name: a change reaches running pods and rolls nothing."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name, namespace, object_labels), "data": dict(files)}


def immutable_config_map(prefix: str, namespace: str, object_labels: dict[str, str], files: Mapping[str, str]) -> Manifest:
    """An immutable ConfigMap named by its content: a change makes a new ConfigMap, which rolls the pods that mount it.

    The old ConfigMap is deleted when no declared object mounts it. A worker that still uses it keeps its files until its kubelet restarts.
    """
    return {**config_map(content_name(prefix, files), namespace, object_labels, files), "immutable": True}


def secret(
    name: str,
    namespace: str,
    object_labels: dict[str, str],
    data: Mapping[str, pulumi.Input[str]],
    annotations: dict[str, str] | None = None,
) -> Manifest:
    """A Secret from values in base64. Pass Pulumi secrets, so that they stay secret in state, plans and logs."""
    about = metadata(name, namespace, object_labels, annotations)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque", "data": dict(data)}


def encode(text: str) -> str:
    """The text in base64, for a Secret's `data`."""
    return base64.b64encode(text.encode()).decode()
