"""NVIDIA's GPU Operator, where it is asked for, once for all pools. RuntimeClasses are in kinds.py.

The operator brings driver, container toolkit and device plugin. Off by default: many machine images have them.
"""

from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as kubernetes

from components.labels import object_name
from components.node_pool import worker_pool
from configs.models.cluster import Cluster

_CHART = "gpu-operator"
_REPOSITORY = "https://helm.ngc.nvidia.com/nvidia"
OPERATOR_CLASS = "nvidia"
"""The RuntimeClass that the operator makes itself."""
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
    has_mig: bool
    """Some GPUs are divided by MIG."""


class GpuRuntimeArgs(TypedDict):
    """What the pools ask for."""

    cluster: str
    """Name of the cluster."""
    operator: NotRequired[GpuOperatorArgs]
    """The GPU Operator; left out for none."""


def gpu_runtime_args(cluster: Cluster) -> GpuRuntimeArgs:
    """The GPU Operator where it is asked for."""
    operator = cluster.gpu_operator
    made: GpuRuntimeArgs = {"cluster": cluster.name}
    if operator.enabled:
        tainted = [toleration for pool in cluster.node_pools for toleration in worker_pool(pool)["tolerations"]]
        made["operator"] = {
            "version": operator.version,
            "driver": operator.driver,
            "toolkit": operator.toolkit,
            "tolerations": [toleration for at, toleration in enumerate(tainted) if toleration not in tainted[:at]],
            "has_mig": any(node_set.gpus and node_set.gpus.mig for node_set in cluster.node_sets),
        }
    return made


class GpuRuntime(pulumi.ComponentResource):
    """The GPU Operator. It serves the whole Kubernetes cluster."""

    operator_status: pulumi.Output[str]
    """Status of the operator's Helm release; empty without a release."""

    def __init__(self, name: str, args: GpuRuntimeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:GpuRuntime", name, {}, opts)
        self.operator_status = pulumi.Output.from_input("")
        if "operator" in args:
            release = kubernetes.helm.v3.Release(
                object_name(args["cluster"], _CHART), **build_operator(args["operator"]), opts=pulumi.ResourceOptions(parent=self)
            )
            self.operator_status = release.status.apply(lambda status: status.status)
        self.register_outputs({"operator_status": self.operator_status})


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
            "operator": {"runtimeClass": OPERATOR_CLASS},
            # Workers take whole machines, and Slurm hands out instances of MIG: to Kubernetes a GPU is one GPU, divided or not.
            **({"mig": {"strategy": "none"}} if operator["has_mig"] else {}),
            "daemonsets": {"tolerations": tolerations},
            "node-feature-discovery": {"worker": {"tolerations": tolerations}},
        },
    }
