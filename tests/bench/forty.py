"""Forty real worker pods on the local cluster's two kubelets, beside forty plain pods: 1 to 40, back to 1, and 40 again.

What a pod costs these machines differs from one machine to the next and from minute to minute. So plain pods of the same image and the same
requests are scaled right before each run, and the figure that can be compared is the ratio.
"""

import json
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.bench.results import Benchmark, Figure, figure
from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.patience import patience

TINY = {
    "nodePools[0].hardware.coresPerSocket": 32,
    "nodeSets[0].size": 40,
    "nodeSets[0].cpus": 1,
    "nodeSets[0].memoryMiB": 256,
    "nodeSets[0].resources": '{"cpu": "5m", "memoryMiB": 48}',
}
"""What lets forty workers share two machines of two cores."""
_PLAIN = "bench-plain"


@dataclass(frozen=True)
class Size:
    """Workers, how often they are scaled out and in, and what the dev stack's workers have to be for it."""

    nodes: int = 40
    runs: int = 2
    workers: Mapping[str, int | str] = field(default_factory=lambda: TINY)


@dataclass(frozen=True)
class Run:
    """Seconds from the change of a size."""

    plain_s: float
    """Of the plain pods, until forty are Ready."""
    out_s: float
    """Until forty nodes are idle in Slurm."""
    in_s: float
    """Until one pod is left."""

    @property
    def ratio(self) -> float:
        """How much longer forty Slurm nodes take than forty pods that do nothing."""
        return self.out_s / self.plain_s


def measure(size: Size) -> Iterator[Figure]:
    """Gives the dev stack these workers, and its own back afterwards."""
    stack, nodes = DevStack(), size.nodes
    # Whoever ran `kubectl scale` last, as this does, has made the number of replicas its own.
    stack.slipway("up", "--force-conflicts", *options(size))
    try:
        _idle(stack, nodes)
        _scale(stack, 1)
        _make_plain(stack)
        runs = [Run(_scale_plain(stack, nodes), _scale(stack, nodes), _scale(stack, 1)) for _ in range(size.runs)]
        say = f"{nodes} real pods on two kubelets"
        yield figure(f"{say}: 1 to {nodes} idle", 11, [run.out_s for run in runs])
        yield figure(f"{say}: {nodes} plain pods, 1 to {nodes} Ready", None, [run.plain_s for run in runs])
        yield figure(f"{say}: relative to the plain pods", None, [run.ratio for run in runs], unit="")
        yield figure(f"{say}: {nodes} idle nodes to 1 pod", None, [run.in_s for run in runs])
    finally:
        stack.kubectl("delete", "statefulset", _PLAIN, "--ignore-not-found")
        stack.slipway("up", "--force-conflicts")
        stack.wait_until_settled()


def options(size: Size) -> list[str]:
    """For `up`: what makes the workers so."""
    return [word for key, value in size.workers.items() for word in ("--config", f"cluster.{key}={value}")]


def build_plain(template: dict[str, Any]) -> dict[str, Any]:
    """Pods of a worker's image, with its requests and on its machines, that start `sleep` and nothing else; all at once, not in turn."""
    spec, labels = template["spec"], {"app": _PLAIN}
    (first,) = spec["containers"]
    container = {
        "name": "sleep",
        "image": first["image"],
        "imagePullPolicy": first["imagePullPolicy"],
        "command": ["sleep", "infinity"],
        "resources": {"requests": first["resources"]["requests"]},
    }
    pod = {
        "nodeSelector": spec["nodeSelector"],
        "tolerations": spec["tolerations"],
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": _PLAIN},
        "spec": {
            "replicas": 1,
            "podManagementPolicy": "Parallel",
            "serviceName": _PLAIN,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _make_plain(stack: DevStack) -> None:
    plain = build_plain(stack.get("nodeset", "cpu")["spec"]["template"])
    stack.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(plain))
    _await_plain(stack, 1)


def _scale_plain(stack: DevStack, size: int) -> float:
    """Seconds until so many plain pods are Ready, from one; gives the machines back to the workers."""
    begin = time.monotonic()
    stack.kubectl("scale", "statefulset", _PLAIN, f"--replicas={size}")
    _await_plain(stack, size)
    took = time.monotonic() - begin
    stack.kubectl("scale", "statefulset", _PLAIN, "--replicas=1")
    _await_pods(stack, f"app={_PLAIN}")
    return took


def _await_plain(stack: DevStack, size: int) -> None:
    stack.wait(f"--for=jsonpath={{.status.readyReplicas}}={size}", f"statefulset/{_PLAIN}", deadline_s=200)


def _await_pods(stack: DevStack, selector: str) -> None:
    eventually("one pod", lambda: len(stack.get("pods", labels=selector)["items"]) == 1, 120, every_s=0.2)


def _scale(stack: DevStack, size: int) -> float:
    begin = time.monotonic()
    stack.kubectl("scale", "nodeset", "cpu", f"--replicas={size}")
    if size == 1:
        _await_pods(stack, "slipway.dev/nodeset=cpu")
    else:
        _idle(stack, size)
    return time.monotonic() - begin


def _idle(stack: DevStack, size: int) -> None:
    """Waits inside slurmctld's pod: a command of kubectl for each look would take a share of what is measured. sinfo lists a node once for
    each of its partitions."""
    count = f"sinfo --noheader --Node --nodes=cpu-[0-{size - 1}] --states=idle --format='%N %T' | sort -u | grep -c ' idle$'"
    loop = f"until [[ $({count}) == {size} ]]; do sleep 0.2; done"
    stack.slurm(f"timeout {200 * patience():.0f} bash -c {shlex.quote(loop)}", timeout_s=220)


BENCHMARK = Benchmark("forty", measure, Size(), Size(nodes=2, runs=1, workers={}))
