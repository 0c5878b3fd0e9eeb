"""A changed line of slurm.conf on the local cluster's dev stack: from its write to the pod's new files, and to slurmctld's new answer."""

import json
import re
import time
from dataclasses import dataclass

from tests.cluster.dev_stack import DevStack, eventually

_FILES = ("exec", "dev-slurmctld-0", "-c", "reconfigure", "--", "readlink", "/etc/slurm/..data")
_CHANGES = ("03:00:00", "04:00:00", "05:00:00", "06:00:00", "07:00:00")


@dataclass(frozen=True)
class Live:
    """Of one change, in seconds; a look takes a tenth of a second or two."""

    write_to_files_s: float
    """Until the kubelet has swapped the files in slurmctld's pod."""
    write_to_answer_s: float
    """Until slurmctld answers with the new value."""


def measure() -> list[Live]:
    """Several changes, one after another; then the config is as it was."""
    stack = DevStack()
    before = stack.get("configmap", "dev-slurm-config")["data"]["slurm.conf"]
    try:
        return [_measure(stack, before, limit) for limit in _CHANGES]
    finally:
        _write(stack, before)
        eventually("the old limit", lambda: not any(f"MaxTime={limit}" in _partition(stack) for limit in _CHANGES), 120)


def _measure(stack: DevStack, before: str, limit: str) -> Live:
    folder = stack.kubectl(*_FILES)
    begin = time.monotonic()
    _write(stack, re.sub(r"(PartitionName=main .*?MaxTime=)\S+", rf"\g<1>{limit}", before))
    eventually("new files", lambda: stack.kubectl(*_FILES) != folder, 120, every_s=0.05)
    files_s = time.monotonic() - begin
    eventually("the new limit", lambda: f"MaxTime={limit}" in _partition(stack), 120, every_s=0.05)
    answer_s = time.monotonic() - begin
    eventually("the second word", lambda: _annotation(stack).endswith(".2"), 60)
    return Live(files_s, answer_s)


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
