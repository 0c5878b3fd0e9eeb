"""What belongs to the whole Kubernetes cluster and outlives every stack: the kind NodeSet, and RuntimeClasses.

Deleting a kind would delete every object of it, whoever made it, and a RuntimeClass may be in use by others. So both stay when a stack
goes, and the next stack finds them there. They want a provider of their own, with `upsert_existing_objects` and `enable_patch_force`:
to all others an object that exists is an error. Of several stacks that bring them the newest wins.
"""

from pathlib import Path
from typing import TypedDict

import pulumi
import yaml

from components.controller_settings import add_missing_fields, settings_schema
from components.gpu_runtime import OPERATOR_CLASS
from components.labels import Manifest, labels, object_name
from components.objects import declare
from configs.models.cluster import Cluster

_FOLDER = Path(__file__).parent / "crds"
_FORMER_PARENTS = {
    "CustomResourceDefinition": ("controllers", "slipway:index:Controllers"),
    "RuntimeClass": ("gpu-runtime", "slipway:index:GpuRuntime"),
}
"""The components that had these objects before: end of the name, and type."""


class KindsArgs(TypedDict):
    """The kinds that the Kubernetes cluster needs."""

    cluster: str
    """Name of the Slurm cluster."""
    install_crds: bool
    """True: bring the kind NodeSet. False: another stack in this Kubernetes cluster does."""
    runtime_classes: list[str]
    """RuntimeClasses that pods of the pools name; each has the container runtime's handler of the same name."""


def kinds_args(cluster: Cluster) -> KindsArgs:
    """The kind NodeSet, and the RuntimeClasses that the pools name. The GPU Operator makes its own RuntimeClass."""
    names = {pool.runtime_class for pool in cluster.node_pools if pool.runtime_class}
    theirs = {OPERATOR_CLASS} if cluster.gpu_operator.enabled else set[str]()
    return {"cluster": cluster.name, "install_crds": cluster.kubernetes.install_crds, "runtime_classes": sorted(names - theirs)}


class Kinds(pulumi.ComponentResource):
    """The kind NodeSet and RuntimeClasses of a Kubernetes cluster. They stay when the stack goes; the next stack takes them over."""

    crd_names: pulumi.Output[list[str]]
    """Names of the CustomResourceDefinitions brought here."""
    runtime_class_names: pulumi.Output[list[str]]
    """Names of the RuntimeClasses brought here."""

    def __init__(self, name: str, args: KindsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Kinds", name, {}, opts)
        crds = [build_crd(args["cluster"])] if args["install_crds"] else []
        classes = build_runtime_classes(args)
        for manifest in (*crds, *classes):
            end, former = _FORMER_PARENTS[manifest["kind"]]
            moved = pulumi.Alias(parent=pulumi.create_urn(object_name(args["cluster"], end), former, opts.parent if opts else None))
            declare(manifest, pulumi.ResourceOptions(parent=self, retain_on_delete=True, aliases=[moved]))
        self.crd_names = pulumi.Output.from_input([crd["metadata"]["name"] for crd in crds])
        self.runtime_class_names = pulumi.Output.from_input([runtime_class["metadata"]["name"] for runtime_class in classes])
        self.register_outputs({"crd_names": self.crd_names, "runtime_class_names": self.runtime_class_names})


def build_crd(cluster: str) -> Manifest:
    """The kind NodeSet, the same from every stack. Objects of the kind come after the API server knows it."""
    crd: Manifest = yaml.safe_load((_FOLDER / "nodesets.yaml").read_text())
    for version in crd["spec"]["versions"]:
        add_missing_fields(version["schema"]["openAPIV3Schema"]["properties"]["spec"], settings_schema())
    wait = {"pulumi.com/waitFor": "condition=Established", "pulumi.com/patchForce": "true"}
    return {**crd, "metadata": {**crd["metadata"], "labels": _labels(cluster, "crd"), "annotations": wait}}


def build_runtime_classes(args: KindsArgs) -> list[Manifest]:
    """A RuntimeClass for each name, the same from every stack."""
    about = {"labels": _labels(args["cluster"], "gpu-runtime"), "annotations": {"pulumi.com/patchForce": "true"}}
    return [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name, **about}, "handler": name}
        for name in sorted(set(args["runtime_classes"]))
    ]


def _labels(cluster: str, component: str) -> dict[str, str]:
    """Labels without the Slurm cluster's name: two stacks must not take an object from each other at every turn."""
    return {
        key: value
        for key, value in labels(cluster, component).items()
        if key.startswith("app.kubernetes.io/") and not key.endswith("/instance")
    }
