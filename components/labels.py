"""Names and labels that every object of a cluster carries, and the small frozen subset that selectors use.

Selectors are immutable in Kubernetes: a key added to `selector` replaces every workload. Add to `labels` instead.
"""

from typing import Any

from names.labels import CLUSTER, COMPONENT, INSTANCE, MANAGED_BY, NAME, NODESET, PART_OF

Manifest = dict[str, Any]
"""A Kubernetes object, or a part of one, in the words of the API: camelCase keys, plain values."""


def object_name(cluster: str, part: str) -> str:
    """The fixed name of what others dial or mount: `<cluster>-<part>`."""
    return f"{cluster}-{part}"


def slurm_config_name(cluster: str) -> str:
    """Name of the ConfigMap with slurm.conf and its peers."""
    return object_name(cluster, "slurm-config")


def jwt_secret_name(cluster: str) -> str:
    """Name of the Secret whose `jwt_hs256.key` signs Slurm's tokens."""
    return object_name(cluster, "jwt")


def outside_name(namespace: str, name: str) -> str:
    """The name of an object that is in no namespace: that of the stack's namespace is part of it.

    A dot follows a namespace with dashes, which no namespace and no cluster can hold: `a-b` with `c` is not `a` with `b-c`.
    """
    return f"{namespace}.{name}" if "-" in namespace else f"{namespace}-{name}"


def selector(cluster: str, component: str, nodeset: str | None = None) -> dict[str, str]:
    """The frozen labels that choose the pods of one component, or of one node set of it."""
    pod_labels = {
        NAME: "slurm",
        INSTANCE: cluster,
        COMPONENT: component,
    }
    return pod_labels if nodeset is None else {**pod_labels, NODESET: nodeset}


def labels(cluster: str, component: str, nodeset: str | None = None) -> dict[str, str]:
    """All labels of an object: its selector, and where it comes from."""
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
