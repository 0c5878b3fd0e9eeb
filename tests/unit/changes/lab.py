"""A small cluster in Slurm's words, and steps that change it."""

from dataclasses import replace
from typing import Any

from changes.jobs import Job
from changes.steps import Op, Step, differences

CONF = """\
# rendered
ClusterName=lab
MaxJobCount=100
SchedulerParameters=bf_window=60
NodeName=cpu-[0-3] CPUs=4 RealMemory=1000 State=CLOUD
NodeName=gpu-[0-1] CPUs=8 RealMemory=2000 Gres=gpu:h100:4 Feature=nvlink,ib State=CLOUD
PartitionName=main Nodes=cpu-[0-3] Default=YES MaxTime=1-00:00:00 State=UP
PartitionName=gpu Nodes=gpu-[0-1] MaxTime=INFINITE State=UP
"""
JOB = Job("1", "alice", is_waiting=False, partitions=("main",), nodes=frozenset({"cpu-0"}), ends_at=2_000_000_000, limit_min=60)
WAITING = Job("2", "bob", is_waiting=True, partitions=("main",), limit_min=60)
GPUS = Job("3", "carol", is_waiting=True, partitions=("gpu",), limit_min=60, node_count=2, tres={"cpu": 16, "gres/gpu:h100": 8})
NODE_SET: dict[str, Any] = {
    "apiVersion": "slipway.dev/v1alpha1",
    "kind": "NodeSet",
    "metadata": {"name": "cpu", "namespace": "slurm"},
    "spec": {"cluster": "lab", "replicas": 4, "template": {"spec": {"containers": [{"name": "slurmd", "image": "a"}]}}},
}


def files(old: str, new: str, **others: tuple[str | None, str | None]) -> Step:
    """The change of Slurm's files: slurm.conf, and others by name with a dash for the dot."""
    before, after = {"slurm.conf": old}, {"slurm.conf": new}
    for name, (was, will) in others.items():
        before |= {name.replace("_", "."): was} if was is not None else {}
        after |= {name.replace("_", "."): will} if will is not None else {}
    return step("update", {"kind": "ConfigMap", "data": before}, {"kind": "ConfigMap", "data": after})


def node_set(**spec: Any) -> Step:
    """An update of the NodeSet cpu, whose spec gets these fields."""
    return step("update", NODE_SET, {**NODE_SET, "spec": {**NODE_SET["spec"], **spec}})


def step(op: Op, old: dict[str, Any], new: dict[str, Any]) -> Step:
    """An object's change, from its two states."""
    manifest = new or old
    about = manifest.get("metadata", {"name": "lab-slurm-config", "namespace": "slurm"})
    group = manifest.get("apiVersion", "v1").rpartition("/")[0]
    return Step(op, group, manifest["kind"], about["namespace"], about["name"], old, new, tuple(differences(old, new)))


def running(number: str, user: str, *nodes: str, ends_at: int | None = 2_000_000_000) -> Job:
    """A job on these nodes."""
    return replace(JOB, number=number, user=user, nodes=frozenset(nodes), ends_at=ends_at)
