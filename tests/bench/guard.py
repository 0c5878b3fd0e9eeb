"""The guard on the local cluster's dev stack: from a change by hand to the object as it was deployed, and the memory that it takes."""

import json
import re
import time
from collections.abc import Iterator

from tests.bench.results import Benchmark, Figure, figure
from tests.support.cluster.dev_stack import DevStack, eventually

_EDITED = ("configmap/dev-users", "configmap/dev-login-settings", "configmap/dev-accounts")
_DELETED = ("service/dev-slurmctld", "service/dev-slurmrestd", "configmap/dev-slurm-config")
_POD = ("--selector=app.kubernetes.io/component=guard", "--output=jsonpath={.items[0].spec.nodeName}")


def measure(objects: int) -> Iterator[Figure]:
    """Seconds until an object is back, of each kind of change; a look takes a twentieth of a second. Fewer changes of an object than make
    the guard stop. Then its memory: the working set, which the kubelet counts. Resident it is more, with pages that other programs of the
    image share."""
    stack = DevStack()
    edits = [_edit(stack, name) for name in _EDITED[:objects]]
    yield figure("object edited by hand until it is as deployed", 10, edits)
    deletions = [_delete(stack, name) for name in _DELETED[:objects]]
    yield figure("object deleted by hand until it is made again", 10, deletions)
    yield figure("memory of the guard", 50, [_memory_mb(stack)], unit="MB")


def _memory_mb(stack: DevStack) -> float:
    node = stack.kubectl("get", "pods", *_POD)
    figures = stack.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/resource")
    found = re.search(r'^container_memory_working_set_bytes\{container="guard".*?\} (\S+)', figures, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"the kubelet of {node} tells nothing of the guard:\n{figures[:2000]}")
    return float(found[1]) / 1e6


def _edit(stack: DevStack, name: str) -> float:
    begin = time.monotonic()
    stack.kubectl("patch", name, "--type=merge", "--patch", json.dumps({"data": {"bench": "x"}}))
    eventually("restored", lambda: "bench" not in json.loads(stack.kubectl("get", name, "-o", "json"))["data"], 60, every_s=0.05)
    return time.monotonic() - begin


def _delete(stack: DevStack, name: str) -> float:
    begin = time.monotonic()
    stack.kubectl("delete", name)
    eventually("made again", lambda: stack.kubectl("get", name, "--ignore-not-found", "-o", "name"), 60, every_s=0.05)
    return time.monotonic() - begin


BENCHMARK = Benchmark("guard", measure, len(_EDITED), 1)
