"""Names and labels of a cluster's objects, and the fixed subset of labels for selectors.

Selectors are immutable in Kubernetes: a new key in `selector` would replace every workload. Add keys to `labels` instead.
"""

from typing import Any

from names.labels import CLUSTER, COMPONENT, INSTANCE, MANAGED_BY, NAME, NODESET, PART_OF

Manifest = dict[str, Any]
"""A Kubernetes object or a part of one, with the API's camelCase keys."""


def object_name(cluster: str, part: str) -> str:
    """The fixed name of an object that others connect to or mount: `<cluster>-<part>`."""
    return f"{cluster}-{part}"


def slurm_config_name(cluster: str) -> str:
    """Name of the ConfigMap with Slurm's files."""
    return object_name(cluster, "slurm-config")


def jwt_secret_name(cluster: str) -> str:
    """Name of the Secret whose `jwt_hs256.key` signs Slurm's tokens."""
    return object_name(cluster, "jwt")


def outside_name(namespace: str, name: str) -> str:
    """The name of a cluster-scoped object, which contains the stack's namespace.

    After a namespace with dashes comes a dot, which names of namespaces and clusters cannot contain: `a-b` with `c` is not `a` with `b-c`.
    """
    return f"{namespace}.{name}" if "-" in namespace else f"{namespace}-{name}"


def selector(cluster: str, component: str, nodeset: str | None = None) -> dict[str, str]:
    """The fixed labels that select the pods of a component, or of one of its node sets."""
    pod_labels = {
        NAME: "slurm",
        INSTANCE: cluster,
        COMPONENT: component,
    }
    return pod_labels if nodeset is None else {**pod_labels, NODESET: nodeset}


def labels(cluster: str, component: str, nodeset: str | None = None) -> dict[str, str]:
    """All labels of an object: its selector and its origin."""
    return {
        **selector(cluster, component, nodeset),
        PART_OF: "slipway",
        MANAGED_BY: "slipway",
        CLUSTER: cluster,
    }


def metadata(name: str, namespace: str, object_labels: dict[str, str], annotations: dict[str, str] | None = None) -> Manifest:
    """The metadata of a namespaced object."""
    return {"name": name, "namespace": namespace, "labels": object_labels, **({"annotations": annotations} if annotations else {})}


def component_metadata(cluster: str, namespace: str, component: str, annotations: dict[str, str] | None = None) -> Manifest:
    """The metadata of a component's object `<cluster>-<component>`."""
    return metadata(object_name(cluster, component), namespace, labels(cluster, component), annotations)
