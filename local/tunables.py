"""Kernel settings of the whole machine that change while the local cluster is up, and their return afterwards."""

import json
from collections.abc import Mapping
from pathlib import Path

RAISED = {"fs/inotify/max_user_instances": 1024, "fs/inotify/max_user_watches": 524288, "net/ipv4/ip_forward": 1}
"""Three kubelets and the pods' programs watch files, all as root: Debian's 128 instances are soon used up. Pods leave by the machine."""

TOUCHED_BY_KUBELET = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
"""Each kubelet sets these at its start."""


def plan_raise(current: Mapping[str, int]) -> dict[str, int]:
    """The settings to raise; one that is high enough is left alone."""
    return {name: value for name, value in RAISED.items() if current.get(name, value) < value}


def remember_and_raise(file: Path, proc: Path = Path("/proc/sys")) -> None:
    """Writes the machine's own values to `file`, once, then raises what is too low."""
    current = {name: int((proc / name).read_text()) for name in (*RAISED, *TOUCHED_BY_KUBELET) if (proc / name).exists()}
    if not file.exists():
        partial = file.with_suffix(".new")
        partial.write_text(json.dumps(current))
        partial.rename(file)
    for name, value in plan_raise(current).items():
        (proc / name).write_text(str(value))


def restore(file: Path, proc: Path = Path("/proc/sys")) -> None:
    """Gives the machine its own values back."""
    if not file.exists():
        return
    for name, value in json.loads(file.read_text()).items():
        # The machine may have started again since, with another kernel.
        if (proc / name).exists() and int((proc / name).read_text()) != value:
            (proc / name).write_text(str(value))
    file.unlink()
