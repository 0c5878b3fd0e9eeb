"""The kinds NodeSet and SlurmNode, and RuntimeClasses. They belong to the whole Kubernetes cluster and outlive every stack.

Deleting a kind would delete all its objects, and others may use a RuntimeClass. So both stay when a stack is destroyed, and the next stack
adopts them. They need a provider with `upsert_existing_objects` and `enable_patch_force`: for others, an existing object is an error. If
several stacks declare them, the last deployment wins.
"""

from pathlib import Path

import pulumi

from components.controller_settings import add_missing_fields, settings_schema
from components.gpu_runtime import OPERATOR_CLASS
from components.labels import Manifest, labels, object_name
from components.objects import declare
from configs.models.cluster import Cluster
from configs.yaml_text import parse_yaml
from names import crds

_FOLDER = Path(__file__).parent / "crds"
_NODE_SETS = f"nodesets.{crds.GROUP}"
_CONTROLLERS = ("controllers", "slipway:index:Controllers")
_GPU_RUNTIME = ("gpu-runtime", "slipway:index:GpuRuntime")
"""Former components of these objects: suffix of the name, and type."""


class Kinds(pulumi.ComponentResource):
    """The kinds and RuntimeClasses of a Kubernetes cluster. They stay when the stack is destroyed; the next stack takes them over."""

    crd_names: pulumi.Output[list[str]]
    """Names of the declared CustomResourceDefinitions."""
    runtime_class_names: pulumi.Output[list[str]]
    """Names of the declared RuntimeClasses."""

    def __init__(self, name: str, cluster: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Kinds", name, {}, opts)
        definitions = build_crds(cluster.name) if cluster.kubernetes.install_crds else []
        classes = build_runtime_classes(cluster)
        for manifest in (*definitions, *classes):
            moved = [
                pulumi.Alias(parent=pulumi.create_urn(object_name(cluster.name, suffix), former, opts.parent if opts else None))
                for suffix, former in former_parents(manifest)
            ]
            declare(manifest, pulumi.ResourceOptions(parent=self, retain_on_delete=True, aliases=moved))
        self.crd_names = pulumi.Output.from_input([crd["metadata"]["name"] for crd in definitions])
        self.runtime_class_names = pulumi.Output.from_input([runtime_class["metadata"]["name"] for runtime_class in classes])
        self.register_outputs({"crd_names": self.crd_names, "runtime_class_names": self.runtime_class_names})


def former_parents(manifest: Manifest) -> list[tuple[str, str]]:
    """The former component of an object: suffix of its name, and type. Newer kinds have none."""
    if manifest["kind"] == "RuntimeClass":
        return [_GPU_RUNTIME]
    return [_CONTROLLERS] if manifest["metadata"]["name"] == _NODE_SETS else []


def build_crds(cluster: str) -> list[Manifest]:
    """The kinds NodeSet and SlurmNode, the same from every stack. Their objects are created after the API server serves them."""
    node_sets, slurm_nodes = (_read(name, cluster) for name in ("nodesets", "slurmnodes"))
    for version in node_sets["spec"]["versions"]:
        add_missing_fields(version["schema"]["openAPIV3Schema"]["properties"]["spec"], settings_schema())
    return [node_sets, slurm_nodes]


def build_runtime_classes(cluster: Cluster) -> list[Manifest]:
    """The RuntimeClasses that the pools name, the same from every stack. Each has the container runtime's handler of the same name. The
    GPU Operator creates its own RuntimeClass."""
    names = {pool.runtime_class for pool in cluster.node_pools if pool.runtime_class}
    operators = {OPERATOR_CLASS} if cluster.gpu_operator.enabled else set[str]()
    metadata_fields = {"labels": _labels(cluster.name, "gpu-runtime"), "annotations": {"pulumi.com/patchForce": "true"}}
    return [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name, **metadata_fields}, "handler": name}
        for name in sorted(names - operators)
    ]


def _read(name: str, cluster: str) -> Manifest:
    crd: Manifest = parse_yaml((_FOLDER / f"{name}.yaml").read_text())
    wait = {"pulumi.com/waitFor": "condition=Established", "pulumi.com/patchForce": "true"}
    return {**crd, "metadata": {**crd["metadata"], "labels": _labels(cluster, "crd"), "annotations": wait}}


def _labels(cluster: str, component: str) -> dict[str, str]:
    """Labels without the Slurm cluster's name, so that two stacks do not change an object back and forth."""
    return {
        key: value
        for key, value in labels(cluster, component).items()
        if key.startswith("app.kubernetes.io/") and not key.endswith("/instance")
    }
