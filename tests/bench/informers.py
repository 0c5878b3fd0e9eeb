"""What the controllers' local copy of a large cluster costs: all nodes and pods listed, then changes of pods.

`measure` runs the fake API server as a process of its own, so that only the controllers' side is counted. Prints nothing.
"""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster, User

from controllers.runtime.api import connect
from controllers.runtime.informer import Informer
from controllers.runtime.structs import KUBE_NODES, PODS, KubeNode, Pod
from tests.bench.results import Benchmark, Figure, figure
from tests.support.fakes.kubernetes import FakeKubernetes

_ALL = ("PodScheduled", "Initialized", "ContainersReady", "Ready", "PodReadyToStartContainers")


@dataclass(frozen=True)
class Size:
    """Of the cluster and of what happens there; `runs` is how often both processes are started."""

    machines: int = 5_000
    workers: int = 10_000
    changes: int = 20_000
    runs: int = 3


@dataclass(frozen=True)
class Cost:
    """What it took on the controllers' side."""

    list_s: float
    """Both lists, until synced."""
    change_us: float
    rss_mb: float
    """Peak memory of the process."""


def measure(size: Size) -> Iterator[Figure]:
    """What a client counts of itself."""
    costs = [Cost(**json.loads(subprocess.run(_command("client", size), capture_output=True, check=True).stdout)) for _ in range(size.runs)]
    listed = f"list of {size.machines:,} nodes and {size.workers:,} pods"
    yield figure(f"controllers: {listed}", 5, [cost.list_s for cost in costs])
    yield figure("controllers: one change of a pod", 200, [cost.change_us for cost in costs], unit="µs")
    yield figure("controllers: peak memory with these", 300, [cost.rss_mb for cost in costs], unit="MB")


def _command(role: str, size: Size) -> list[str]:
    return [sys.executable, "-m", "tests.bench.informers", role, json.dumps(asdict(size))]


def worker(number: int, size: Size, restarts: int = 0) -> dict[str, Any]:
    """A worker's pod of about 4 kB, as large as a real one."""
    variables = [{"name": f"VARIABLE_{each}", "value": "x" * 20} for each in range(20)]
    volumes = [{"name": f"volume-{each}", "configMap": {"name": f"map-{each}", "defaultMode": 420}} for each in range(6)]
    mounts = [{"name": f"volume-{each}", "mountPath": f"/etc/volume-{each}"} for each in range(6)]
    about: dict[str, Any] = {
        "name": f"gpu-{number}",
        "namespace": "slurm",
        "labels": {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": f"set-{number % 20}", "slipway.dev/revision": "0123456789"},
        "managedFields": [{"manager": "slipway", "operation": "Update", "fieldsV1": {f"f:{each}": {} for each in range(60)}}],
    }
    spec = {
        "nodeName": f"machine-{number % size.machines}",
        "containers": [{"name": "slurmd", "image": "slurm", "env": variables, "volumeMounts": mounts}],
        "volumes": volumes,
    }
    status = {
        "phase": "Running",
        "conditions": [{"type": each, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"} for each in _ALL],
        "containerStatuses": [{"name": "slurmd", "ready": True, "restartCount": restarts, "image": "slurm"}],
    }
    return {"metadata": about, "spec": spec, "status": status}


def machine(number: int) -> dict[str, Any]:
    """A Kubernetes node of about 2 kB."""
    labels = {f"example.com/label-{each}": f"value-{number}" for each in range(30)}
    status = {"capacity": {"cpu": "192", "memory": "2000Gi", "nvidia.com/gpu": "8"}, "allocatable": {"cpu": "190", "nvidia.com/gpu": "8"}}
    return {"metadata": {"name": f"machine-{number}", "labels": labels}, "spec": {}, "status": status}


async def _serve(size: Size) -> None:
    async with FakeKubernetes() as server:
        for number in range(size.machines):
            server.put(KUBE_NODES, machine(number))
        for number in range(size.workers):
            server.put(PODS, worker(number, size))
        changes = [worker(number % size.workers, size, 1 + number // size.workers) for number in range(size.changes)]
        _say({"port": server.port})
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, sys.stdin.readline)
        for at, change in enumerate(changes):
            server.put(PODS, change)
            if at % 500 == 0:
                await asyncio.sleep(0)
        await loop.run_in_executor(None, sys.stdin.readline)


async def _follow(size: Size) -> None:
    server = subprocess.Popen(_command("server", size), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None
    port = json.loads(server.stdout.readline())["port"]
    config = KubeConfig.from_one(cluster=Cluster(server=f"http://127.0.0.1:{port}"), user=User(token="bench")).get()
    api = connect(config)
    machines = Informer(api, KUBE_NODES)
    pods = Informer(api, PODS, indexes={"nodeset": lambda pod: [pod.metadata.labels["slipway.dev/nodeset"]]})
    seen, all_seen = 0, asyncio.Event()

    def count(old: Pod | None, new: Pod | None) -> None:
        nonlocal seen
        seen += old is not None and new is not None
        if seen == size.changes:
            all_seen.set()

    pods.on_change(count)
    begin = time.perf_counter()
    informers: list[Informer[Pod] | Informer[KubeNode]] = [machines, pods]
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    for informer in informers:
        await informer.synced.wait()
    list_s = time.perf_counter() - begin
    server.stdin.write("change\n")
    server.stdin.flush()
    begin = time.perf_counter()
    await all_seen.wait()
    change_us = 1e6 * (time.perf_counter() - begin) / size.changes
    server.stdin.write("end\n")
    server.stdin.flush()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await api.close()
    server.wait()
    # Not ru_maxrss, which a process that was forked by a large one inherits from it.
    peak_mb = int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) / 1024
    _say({"list_s": round(list_s, 2), "change_us": round(change_us, 1), "rss_mb": round(peak_mb)})


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


BENCHMARK = Benchmark("informers", measure, Size(), Size(machines=2, workers=4, changes=8, runs=1))

if __name__ == "__main__":
    roles: dict[str, Callable[[Size], Awaitable[None]]] = {"server": _serve, "client": _follow}
    asyncio.run(roles[sys.argv[1]](Size(**json.loads(sys.argv[2]))))  # pyright: ignore[reportArgumentType]
