"""A node's private mount namespace: its own /run, /var/lib/{containerd,kubelet,cni} and pod logs, bound from our state folder.

containerd and kubelet of a node must share it (in two, pods see empty volumes). A file pins it, so it needs no process.
"""

import contextlib
import os
import shlex
import subprocess
from pathlib import Path

from local.commands import LocalError, run, succeeds
from local.layout import Node, Paths

BOUND = {
    "containerd": Path("/var/lib/containerd"),
    "kubelet": Path("/var/lib/kubelet"),
    "cni": Path("/var/lib/cni"),
    "logs/pods": Path("/var/log/pods"),
    "logs/containers": Path("/var/log/containers"),
}
"""Folder of a node in our state, and where the node's programs see it."""

COMPLETE = "mounts-complete"
"""File in a node's /run that says that nothing interrupted the making of its namespace."""


def render_script(node: Node, paths: Paths) -> str:
    """The script that runs in the new namespace. The host's mounts still arrive (slave); the node's own are shared among its pods (shared),
    as mount propagation of volumes requires."""
    binds = [(paths.node(node) / name, target) for name, target in BOUND.items()] + [(paths.run(node), Path("/run"))]
    lines = [f"mount --bind {shlex.quote(str(source))} {target}" for source, target in binds]
    return "\n".join(["mount --make-rshared /", *lines, f"touch /run/{COMPLETE}"]) + "\n"


def mount_points(mountinfo: str) -> set[str]:
    """Where something is mounted, from /proc/self/mountinfo (which writes spaces as \\040)."""
    return {line.split()[4].replace("\\040", " ") for line in mountinfo.splitlines()}


def mounted() -> set[str]:
    """Where something is mounted on this machine."""
    return mount_points(Path("/proc/self/mountinfo").read_text())


def up(nodes: tuple[Node, ...], paths: Paths) -> None:
    """Makes the namespaces that are not there. Raises LocalError."""
    pins = paths.runtime / "mnt"
    pins.mkdir(parents=True, exist_ok=True)
    _make_mount_points(paths)
    if str(pins) not in mounted():
        run(["mount", "--bind", str(pins), str(pins)])
        # A namespace can only be pinned on a mount that is not propagated into that namespace.
        run(["mount", "--make-private", str(pins)])
    for node in nodes:
        pin, complete = paths.mount_pin(node), paths.run(node) / COMPLETE
        if str(pin) in mounted():
            if complete.exists():
                continue
            run(["umount", str(pin)])
        complete.unlink(missing_ok=True)
        for name in BOUND:
            (paths.node(node) / name).mkdir(parents=True, exist_ok=True)
        paths.run(node).mkdir(parents=True, exist_ok=True)
        pin.touch()
        _unshare(pin, render_script(node, paths))


def down(nodes: tuple[Node, ...], paths: Paths) -> None:
    """Releases the namespaces; their mounts vanish with their last process. Then removes the mount points that we made."""
    pins = paths.runtime / "mnt"
    for place in [*(paths.mount_pin(node) for node in nodes), pins]:
        _let_go(place)
    if paths.made_folders.exists():
        for name in reversed(paths.made_folders.read_text().splitlines()):
            folder = Path(name)
            if folder.is_dir() and not any(folder.iterdir()):
                _let_go(folder)
                with contextlib.suppress(OSError):  # somebody else has found a use for it
                    folder.rmdir()
        paths.made_folders.unlink()


def enter(node: Node, paths: Paths) -> tuple[str, ...]:
    """The command prefix that runs a program in the node's mount and network namespaces, with the same process id."""
    return ("nsenter", f"--mount={paths.mount_pin(node)}", f"--net=/run/netns/{node.netns}", "--")


def _unshare(pin: Path, script: str) -> None:
    """Makes a mount namespace, pins it and runs the script in it.

    Only an older namespace can pin one. Linux 6.18 takes the smaller number for the older, and numbers namespaces in blocks per CPU.
    So in a container pinning is refused on some CPUs ("Invalid argument"), and every CPU is tried.
    """
    errors = ""
    for cpu in sorted(os.sched_getaffinity(0)):
        command = ("taskset", "--cpu-list", str(cpu), "unshare", f"--mount={pin}", "--propagation=slave", "sh", "-e")
        done = subprocess.run(command, input=script, text=True, capture_output=True, check=False)
        if done.returncode == 0:
            return
        errors = done.stderr.strip()
        if str(pin) in mounted():
            run(["umount", str(pin)])
            break
    raise LocalError(f"no mount namespace at {pin}: {errors}")


def _make_mount_points(paths: Paths) -> None:
    made_folders = paths.made_folders.read_text().splitlines() if paths.made_folders.exists() else []
    # `ip netns` makes the last one, and mounts it on itself.
    for target in (*BOUND.values(), Path("/run/netns")):
        if not target.exists():
            made_folders.append(str(target))
            paths.made_folders.write_text("\n".join(made_folders) + "\n")
            target.mkdir(parents=True)


def _let_go(place: Path) -> None:
    while str(place) in mounted():
        if not succeeds(["umount", str(place)]):
            run(["umount", "--lazy", str(place)])
