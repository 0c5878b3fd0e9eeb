"""Objects for the tests of the runtime."""

from tests.support.fakes.objects import Manifest


def pod(name: str, namespace: str = "slurm", labels: dict[str, str] | None = None, node: str = "", phase: str = "Pending") -> Manifest:
    """A pod as a kubelet would have it, with fields that the structs leave out."""
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}, "managedFields": [{"manager": "kubelet"}]},
        "spec": {"containers": [{"name": "slurmd", "image": "slurm"}], **({"nodeName": node} if node else {})},
        "status": {
            "phase": phase,
            "podIP": "198.18.1.7",
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastProbeTime": None}],
            "containerStatuses": [
                {"name": "slurmd", "ready": False, "restartCount": 2, "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}
            ],
        },
    }


def config_map(name: str, data: dict[str, str], namespace: str = "slurm") -> Manifest:
    """A ConfigMap, complete."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}
