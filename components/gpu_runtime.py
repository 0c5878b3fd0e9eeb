"""NVIDIA's GPU Operator, once for all pools. RuntimeClasses are in kinds.py.

The operator brings driver, container toolkit and device plugin. It is off by default, as many machine images have them.
"""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.labels import object_name
from components.pods import tolerations
from configs.models.cluster import Cluster

_CHART = "gpu-operator"
_REPOSITORY = "https://helm.ngc.nvidia.com/nvidia"
OPERATOR_CLASS = "nvidia"
"""The RuntimeClass that the operator creates."""
_GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""The chart tolerates it by default, but our lists replace the chart's."""


class GpuRuntime(pulumi.ComponentResource):
    """The GPU Operator. It serves the whole Kubernetes cluster."""

    operator_status: pulumi.Output[str]
    """Status of the operator's Helm release; empty without a release."""

    def __init__(self, name: str, cluster: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:GpuRuntime", name, {}, opts)
        self.operator_status = pulumi.Output.from_input("")
        if cluster.gpu_operator.enabled:
            release = kubernetes.helm.v3.Release(
                object_name(cluster.name, _CHART), **build_operator(cluster), opts=pulumi.ResourceOptions(parent=self)
            )
            self.operator_status = release.status.apply(lambda status: status.status)
        self.register_outputs({"operator_status": self.operator_status})


def build_operator(cluster: Cluster) -> dict[str, Any]:
    """Arguments of the Helm release. The operator must not replace a driver on its own: that would evict workers and their jobs.

    Source: values.yaml of the chart.
    """
    operator = cluster.gpu_operator
    has_mig = any(node_set.gpus and node_set.gpus.mig for node_set in cluster.node_sets)
    taints = (taint for pool in cluster.node_pools for taint in pool.taints if taint.key != _GPU_TAINT["key"])
    tolerated = [_GPU_TAINT, *tolerations(tuple(dict.fromkeys(taints)))]
    return {
        "chart": _CHART,
        "version": operator.version,
        "repository_opts": {"repo": _REPOSITORY},
        "namespace": _CHART,
        "create_namespace": True,
        "values": {
            "driver": {"enabled": operator.driver, "upgradePolicy": {"autoUpgrade": False}},
            "toolkit": {"enabled": operator.toolkit},
            "operator": {"runtimeClass": OPERATOR_CLASS},
            # Workers take whole machines, and Slurm allocates MIG instances: Kubernetes counts a GPU as one, divided or not.
            **({"mig": {"strategy": "none"}} if has_mig else {}),
            "daemonsets": {"tolerations": tolerated},
            "node-feature-discovery": {"worker": {"tolerations": tolerated}},
        },
    }
