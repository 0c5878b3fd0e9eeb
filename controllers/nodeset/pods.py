"""Builds what a node set has in Kubernetes: pods, claims, the disruption budget, the record of pins, SlurmNodes. Pure."""

import hashlib
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from controllers.nodeset.structs import NodeSetObject, NodeSetSpec, SlurmNodeStatus
from names import crds, labels
from slurm.hostlists import fold

Manifest = dict[str, Any]

MORE_THAN_ALL = 2**31 - 1
"""Pods that a disruption budget wants to be there: never met, so none is ever to spare. With `maxUnavailable`, even 0, Kubernetes compares
the pods with the set's `replicas` instead. Then a set that was scaled in has busy pods to spare, and an elastic set has no such number.
Source: getExpectedPodCount in pkg/controller/disruption, and tests/apiserver/test_evictions.py.
"""


def revision(spec: NodeSetSpec) -> str:
    """Ten hexadecimal digits of what a pod is made from: the same template and claims give the same, any change another."""
    content = msgspec.json.encode((spec.template, spec.volume_claim_templates), order="sorted")
    return hashlib.sha256(content).hexdigest()[:10]


def node_name(nodeset: str, ordinal: int) -> str:
    """Name of the pod, its host and its Slurm node."""
    return f"{nodeset}-{ordinal}"


def ordinal_of(nodeset: str, name: str) -> int | None:
    """The ordinal in a worker's name; None for a name that does not belong to a worker of this set, such as `gpu-01` or `gpu-x`."""
    head, _, tail = name.rpartition("-")
    if head != nodeset or not tail.isascii() or not tail.isdigit() or (len(tail) > 1 and tail[0] == "0"):
        return None
    return int(tail)


def range_text(nodeset: str, ordinals: Iterable[int]) -> str:
    """Workers as Slurm writes them: `gpu-[0-3]`."""
    return fold(node_name(nodeset, ordinal) for ordinal in ordinals)


def selector(nodeset: NodeSetObject) -> dict[str, str]:
    """Labels of all pods of the set."""
    return {labels.CLUSTER: nodeset.spec.cluster, labels.NODESET: nodeset.metadata.name}


def build_pod(nodeset: NodeSetObject, ordinal: int, pinned_to: str | None = None) -> Manifest:
    """The pod of an ordinal; marked busy until Slurm reports otherwise. `pinned_to` is the Kubernetes node it must run on."""
    template = nodeset.spec.template
    name = node_name(nodeset.metadata.name, ordinal)
    pod_labels = {**selector(nodeset), labels.REVISION: revision(nodeset.spec), labels.BUSY: "true"}
    spec: Manifest = {**without_nulls(template.spec), "hostname": name}
    if pinned_to is not None:
        spec["affinity"] = _on_node(spec.get("affinity"), pinned_to)
    if nodeset.spec.volume_claim_templates:
        claims = [
            {"name": claim.metadata.name, "persistentVolumeClaim": {"claimName": claim_name(claim.metadata.name, name)}}
            for claim in nodeset.spec.volume_claim_templates
        ]
        spec["volumes"] = [*spec.get("volumes", []), *claims]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **_about(nodeset, name),
            "labels": {**template.metadata.labels, **pod_labels},
            **({"annotations": template.metadata.annotations} if template.metadata.annotations else {}),
        },
        "spec": spec,
    }


def without_nulls(value: Any) -> Any:
    """The same without keys that are null, at any depth: the API server keeps them, although they mean that the key is absent."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {key: without_nulls(field) for key, field in fields.items() if field is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in cast(list[Any], value) if item is not None]
    return value


def claim_name(template: str, worker: str) -> str:
    """As a StatefulSet calls it: `<template>-<set>-<ordinal>`."""
    return f"{template}-{worker}"


def claim_ordinal(nodeset: str, claim: str) -> int | None:
    """The ordinal that a claim belongs to, of whichever template; None for a name that `claim_name` does not give for this set."""
    head, _, tail = claim.rpartition("-")
    return ordinal_of(nodeset, f"{nodeset}-{tail}") if head.endswith(f"-{nodeset}") else None


def claim_stem(name: str) -> str:
    """The common part of the names of a template's claims: `disk-gpu` of `disk-gpu-0`."""
    return name.rpartition("-")[0]


def build_claims(nodeset: NodeSetObject, ordinal: int) -> list[Manifest]:
    """The claims of an ordinal. They outlive the set unless it says Delete, and so have no owner."""
    name = node_name(nodeset.metadata.name, ordinal)
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": claim_name(claim.metadata.name, name),
                "namespace": nodeset.metadata.namespace,
                "labels": {**claim.metadata.labels, **selector(nodeset)},
            },
            "spec": without_nulls(claim.spec),
        }
        for claim in nodeset.spec.volume_claim_templates
    ]


def build_disruption_budget(nodeset: NodeSetObject, all_count_as_busy: bool) -> Manifest:
    """Nobody may evict a pod that may run a job. While Slurm is silent that is every pod: one write instead of a write for each."""
    unless_free = [] if all_count_as_busy else [{"key": labels.BUSY, "operator": "NotIn", "values": ["false"]}]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**_about(nodeset, nodeset.metadata.name), "labels": selector(nodeset)},
        "spec": {"minAvailable": MORE_THAN_ALL, "selector": {"matchLabels": selector(nodeset), "matchExpressions": unless_free}},
    }


def pins_name(nodeset: str) -> str:
    """Name of the ConfigMap that records where the ordinals of a pinned set run."""
    return f"{nodeset}-places"


def read_pins(data: dict[str, str]) -> dict[int, str]:
    """What `build_pins` wrote; an entry that it did not write is left out."""
    return {int(ordinal): machine for ordinal, machine in data.items() if ordinal.isascii() and ordinal.isdigit()}


def build_pins(nodeset: NodeSetObject, pins: dict[int, str]) -> Manifest:
    """Which Kubernetes node each ordinal belongs to: `"3": "machine-17"`. One object a set; 10,000 nodes take 0.6 MB of 1 MiB."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**_about(nodeset, pins_name(nodeset.metadata.name)), "labels": selector(nodeset)},
        "data": {str(ordinal): pins[ordinal] for ordinal in sorted(pins)},
    }


def build_slurm_node(nodeset: NodeSetObject, ordinal: int, status: SlurmNodeStatus) -> Manifest:
    """The object with the status of an ordinal's Slurm node. It is deleted with the set."""
    return {
        "apiVersion": crds.API_VERSION,
        "kind": "SlurmNode",
        "metadata": {**_about(nodeset, node_name(nodeset.metadata.name, ordinal)), "labels": selector(nodeset)},
        "status": msgspec.to_builtins(status),
    }


def _about(nodeset: NodeSetObject, name: str) -> Manifest:
    owner = {
        "apiVersion": crds.API_VERSION,
        "kind": "NodeSet",
        "name": nodeset.metadata.name,
        "uid": nodeset.metadata.uid,
        "controller": True,
        # Deleting the set must not wait for the garbage collector's view of its pods: the finalizer drains them first.
        "blockOwnerDeletion": False,
    }
    return {"name": name, "namespace": nodeset.metadata.namespace, "ownerReferences": [owner]}


def _on_node(affinity: Manifest | None, node: str) -> Manifest:
    wanted = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    nodes: Manifest = dict((affinity or {}).get("nodeAffinity") or {})
    required: Manifest = nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {"nodeSelectorTerms": [{}]}
    terms: list[Manifest] = [
        {**term, "matchFields": [*term.get("matchFields", []), *wanted["matchFields"]]} for term in required["nodeSelectorTerms"]
    ]
    nodes["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    return {**(affinity or {}), "nodeAffinity": nodes}
