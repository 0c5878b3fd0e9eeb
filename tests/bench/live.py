"""A changed line of slurm.conf on the local cluster's dev stack: from its write to the pod's new files, and to slurmctld's new answer."""

import json
import re
import time
from collections.abc import Iterator

from tests.bench.results import Benchmark, Figure, figure
from tests.support.cluster.dev_stack import DevStack, eventually

_FILES = ("exec", "dev-slurmctld-0", "-c", "reconfigure", "--", "readlink", "/etc/slurm/..data")
_CHANGES = ("03:00:00", "04:00:00", "05:00:00", "06:00:00", "07:00:00")


def measure(changes: int) -> Iterator[Figure]:
    """Several changes, one after another; then the config is as it was. A look takes a tenth of a second or two."""
    stack = DevStack()
    before = stack.get("configmap", "dev-slurm-config")["data"]["slurm.conf"]
    try:
        files_s, answer_s = zip(*(_measure(stack, before, limit) for limit in _CHANGES[:changes]), strict=True)
        yield figure("changed line of slurm.conf: written to live", 5, answer_s)
        yield figure("changed line of slurm.conf: of this, to the files in slurmctld's pod", None, files_s)
    finally:
        _write(stack, before)
        eventually("the old limit", lambda: not any(f"MaxTime={limit}" in _partition(stack) for limit in _CHANGES), 120)


def _measure(stack: DevStack, before: str, limit: str) -> tuple[float, float]:
    """Seconds until the kubelet has swapped the files in slurmctld's pod, and until slurmctld answers with the new value."""
    folder = stack.kubectl(*_FILES)
    begin = time.monotonic()
    _write(stack, re.sub(r"(PartitionName=main .*?MaxTime=)\S+", rf"\g<1>{limit}", before))
    eventually("new files", lambda: stack.kubectl(*_FILES) != folder, 120, every_s=0.05)
    files_s = time.monotonic() - begin
    eventually("the new limit", lambda: f"MaxTime={limit}" in _partition(stack), 120, every_s=0.05)
    answer_s = time.monotonic() - begin
    eventually("the second word", lambda: _annotation(stack).endswith(".2"), 60)
    return files_s, answer_s


def _write(stack: DevStack, text: str) -> None:
    """As `up` writes it, so that the fields stay the stack's own."""
    config = stack.get("configmap", "dev-slurm-config")
    about = {key: config["metadata"][key] for key in ("name", "namespace", "labels")}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {**config["data"], "slurm.conf": text}}
    stack.kubectl("apply", "--server-side", "--field-manager=slipway", "--force-conflicts", "--filename=-", stdin=json.dumps(manifest))


def _partition(stack: DevStack) -> str:
    return stack.kubectl("exec", "dev-slurmctld-0", "-c", "slurmctld", "--", "scontrol", "show", "partition", "main")


def _annotation(stack: DevStack) -> str:
    return stack.get("pod", "dev-slurmctld-0")["metadata"].get("annotations", {}).get("slipway.dev/files", "")


BENCHMARK = Benchmark("live", measure, len(_CHANGES), 1)
