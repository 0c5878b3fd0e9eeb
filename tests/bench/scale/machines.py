"""Stand-in kubelets for all simulated machines in one task: a slurmd process for each bound pod, and the pod's status.

Left out: images, volumes, sandboxes and the other containers, which cost a real kubelet seconds on a machine of its own.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from controllers.runtime.api import Api
from controllers.runtime.errors import NotFound
from controllers.runtime.informer import Informer
from controllers.runtime.structs import KUBE_NODES, PODS, Pod
from tests.bench.scale.slurm import Slurm

PODS_PER_MACHINE = 10
_PROBE_S = 0.1


@dataclass
class Times:
    """When each pod got how far, in seconds since 1970 by the name of the pod."""

    created: dict[str, float] = field(default_factory=dict[str, float])
    bound: dict[str, float] = field(default_factory=dict[str, float])
    ready: dict[str, float] = field(default_factory=dict[str, float])


@dataclass
class Machines:
    """Kubernetes nodes that exist in the API only, and what runs there."""

    api: Api
    slurm: Slurm
    labels: dict[str, str]
    """Of the pool that the pods ask for."""
    times: Times = field(default_factory=Times)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _known: set[str] = field(default_factory=set[str])
    """uids of pods that have been started."""

    async def register(self, number: int) -> None:
        """Makes the Kubernetes nodes, ready."""
        room = {"cpu": "64", "memory": "512Gi", "pods": str(PODS_PER_MACHINE)}
        status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}
        for at in range(number):
            about = {"name": f"machine-{at}", "labels": {"kubernetes.io/hostname": f"machine-{at}", **self.labels}}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": about, "spec": {}}
            await self.api.create(KUBE_NODES, node, field_manager="bench")
            await self.api.patch(KUBE_NODES, "", f"machine-{at}", {"status": status}, field_manager="bench", subresource="status")
            # Kubernetes taints a node until its kubelet is ready; the controller that would lift that is not here.
            await self.api.patch(KUBE_NODES, "", f"machine-{at}", {"spec": {"taints": None}}, field_manager="bench")

    async def run(self) -> None:
        """Follows the pods until it is cancelled; then ends what runs."""
        pods: Informer[Pod] = Informer(self.api, PODS)
        pods.on_change(self._on_change)
        try:
            await pods.run()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _on_change(self, _old: Pod | None, new: Pod | None) -> None:
        if new is None:
            return
        name, now = new.metadata.name, time.time()
        self.times.created.setdefault(name, now)
        if new.spec.node_name is None:
            return
        self.times.bound.setdefault(name, now)
        if new.metadata.deletion_timestamp is not None:
            self._spawn(f"stop {new.metadata.uid}", self._stop(new))
        else:
            self._spawn(new.metadata.uid, self._start(new))

    def _spawn(self, what: str, work: Any) -> None:
        if what in self._known:
            work.close()
            return
        self._known.add(what)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, pod: Pod) -> None:
        name = pod.metadata.name
        self.slurm.start_worker(name)
        while not self.slurm.is_listening(name):
            await asyncio.sleep(_PROBE_S)
        ready = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
        status = {"phase": "Running", "podIP": "198.18.255.1", "conditions": ready}
        await self.api.patch(PODS, pod.metadata.namespace, name, {"status": status}, field_manager="kubelet", subresource="status")
        self.times.ready[name] = time.time()

    async def _stop(self, pod: Pod) -> None:
        if pod.metadata.name in self.slurm.workers:
            await asyncio.to_thread(self.slurm.stop_worker, pod.metadata.name)
        try:
            await self.api.delete(PODS, pod.metadata.namespace, pod.metadata.name, uid=pod.metadata.uid, grace_s=0)
        except NotFound:
            return
