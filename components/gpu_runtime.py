"""What GPU pods need of a Kubernetes cluster, once for all pools: RuntimeClasses, and NVIDIA's GPU Operator where it is asked for.

The operator brings driver, container toolkit and device plugin. Off by default: many machine images have them.
"""

from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as kubernetes

from components.labels import Manifest, labels, object_name

_CHART = "gpu-operator"
_REPOSITORY = "https://helm.ngc.nvidia.com/nvidia"
_OPERATOR_CLASS = "nvidia"
_GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""Tolerated by the chart's own defaults, which lists of ours replace."""


class GpuOperatorArgs(TypedDict):
    """NVIDIA's GPU Operator."""

    version: str
    """Version of the chart, for instance `v25.3.4`."""
    driver: bool
    """Install the driver; off where the machine image has it."""
    toolkit: bool
    """Install the container toolkit; off where the machine image has it."""
    tolerations: list[dict[str, Any]]
    """Taints of the pools' nodes."""


class GpuRuntimeArgs(TypedDict):
    """What the pools ask for."""

    cluster: str
    """Name of the cluster."""
    runtime_classes: list[str]
    """RuntimeClasses that pods of the pools name; each has the container runtime's handler of the same name."""
    operator: NotRequired[GpuOperatorArgs]
    """The GPU Operator; left out for none."""


class GpuRuntime(pulumi.ComponentResource):
    """RuntimeClasses and the GPU Operator. Both serve the whole Kubernetes cluster: RuntimeClasses stay when the stack goes."""

    operator_status: pulumi.Output[str]
    """Status of the operator's Helm release; empty without one."""

    def __init__(self, name: str, args: GpuRuntimeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:GpuRuntime", name, {}, opts)
        kept = pulumi.ResourceOptions(parent=self, retain_on_delete=True)
        for manifest in build_runtime_classes(args):
            about = manifest["metadata"]
            kubernetes.node.v1.RuntimeClass(about["name"], metadata=about, handler=manifest["handler"], opts=kept)
        self.operator_status = pulumi.Output.from_input("")
        if "operator" in args:
            release = kubernetes.helm.v3.Release(
                object_name(args["cluster"], _CHART), **build_operator(args["operator"]), opts=pulumi.ResourceOptions(parent=self)
            )
            self.operator_status = release.status.apply(lambda status: status.status)
        self.register_outputs({"operator_status": self.operator_status})


def build_runtime_classes(args: GpuRuntimeArgs) -> list[Manifest]:
    """One RuntimeClass a name, less the one that the operator makes itself."""
    names = {name for name in args["runtime_classes"] if name != _OPERATOR_CLASS or "operator" not in args}
    about = labels(args["cluster"], "gpu-runtime")
    return [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name, "labels": about}, "handler": name}
        for name in sorted(names)
    ]


def build_operator(operator: GpuOperatorArgs) -> dict[str, Any]:
    """Arguments of the Helm release. The operator must not replace a driver by itself: it would evict workers and their jobs.

    Source: values.yaml of the chart.
    """
    tolerations = [_GPU_TAINT, *(each for each in operator["tolerations"] if each["key"] != _GPU_TAINT["key"])]
    return {
        "chart": _CHART,
        "version": operator["version"],
        "repository_opts": {"repo": _REPOSITORY},
        "namespace": _CHART,
        "create_namespace": True,
        "values": {
            "driver": {"enabled": operator["driver"], "upgradePolicy": {"autoUpgrade": False}},
            "toolkit": {"enabled": operator["toolkit"]},
            "operator": {"runtimeClass": _OPERATOR_CLASS},
            "daemonsets": {"tolerations": tolerations},
            "node-feature-discovery": {"worker": {"tolerations": tolerations}},
        },
    }
