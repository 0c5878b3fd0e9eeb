"""The control groups of the local cluster: `/slipway/host` for the control plane, `/slipway/<node>` for a node's programs and pods.

They also identify leftovers: this cluster started every process below `/slipway`.
"""

import contextlib
import os
import signal
from pathlib import Path
from time import monotonic, sleep

ROOT = Path("/sys/fs/cgroup")
NEEDED = ("cpu", "cpuset", "memory", "pids")
OURS = "slipway"


def find_hierarchies(mountinfo: str) -> list[Path]:
    """Where cgroups are mounted: /sys/fs/cgroup with v2; with v1 one path per controller, and maybe v2 as `unified`."""
    points: list[Path] = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        point, kind = Path(left.split()[4]), right.split()[0]
        if kind in ("cgroup", "cgroup2") and ROOT in (point, point.parent):
            points.append(point)
    return list(dict.fromkeys(points))


def hierarchies() -> list[Path]:
    """The hierarchies of this machine."""
    return find_hierarchies(Path("/proc/self/mountinfo").read_text())


def is_v2(points: list[Path]) -> bool:
    """True when the one unified hierarchy is in use."""
    return points == [ROOT]


def missing_controllers(points: list[Path], v2_controllers: str) -> list[str]:
    """The controllers that the kubelet needs and this machine does not give, for v1 and v2."""
    present = set(v2_controllers.split()) if is_v2(points) else {name for path in points for name in path.name.split(",")}
    return [name for name in NEEDED if name not in present]


def tracking(points: list[Path]) -> Path:
    """The hierarchy to find processes in: the unified one, or v1's memory, which contains every pod."""
    return ROOT if is_v2(points) else next(path for path in points if "memory" in path.name.split(","))


def make(cgroup: str) -> None:
    """Makes a group in every hierarchy, with its controllers usable by groups below."""
    for hierarchy in hierarchies():
        path = hierarchy
        for part in Path(cgroup.lstrip("/")).parts:
            _open_for_children(path)
            path = path / part
            path.mkdir(exist_ok=True)
            if (path / "cpuset.cpus").exists() and not is_v2([hierarchy]):
                _inherit_cpuset(path)


def procs_file(cgroup: str) -> str:
    """The file that a process writes its id to, to join the group."""
    return str(tracking(hierarchies()) / cgroup.lstrip("/") / "cgroup.procs")


def processes(cgroup: str = OURS) -> list[int]:
    """Ids of all processes in a group and below it."""
    top = tracking(hierarchies()) / cgroup.lstrip("/")
    ids: list[int] = []
    for folder, _, _ in os.walk(top):
        with contextlib.suppress(FileNotFoundError, OSError):
            ids += [int(word) for word in (Path(folder) / "cgroup.procs").read_text().split()]
    return ids


def kill(cgroup: str = OURS, timeout_s: float = 20) -> list[int]:
    """Kills everything in a group and below until nothing is left. Gives the ids that would not go."""
    deadline = monotonic() + timeout_s
    while (left := processes(cgroup)) and monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        sleep(0.02)
    return left


def remove(cgroup: str = OURS, timeout_s: float = 5) -> list[Path]:
    """Removes a group and all below it from every hierarchy. Gives the folders that are still there."""
    deadline = monotonic() + timeout_s
    while True:
        for hierarchy in hierarchies():
            for folder, _, _ in os.walk(hierarchy / cgroup.lstrip("/"), topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()
        left = [path for hierarchy in hierarchies() if (path := hierarchy / cgroup.lstrip("/")).exists()]
        if not left or monotonic() > deadline:
            return left
        sleep(0.05)


def _open_for_children(path: Path) -> None:
    """With v2, a group's controllers reach its subgroups only if they are enabled."""
    control = path / "cgroup.subtree_control"
    if not control.exists():
        return
    missing = set((path / "cgroup.controllers").read_text().split()) - set(control.read_text().split())
    for controller in missing:
        # One a write: a controller that cannot be had must not keep the others from being switched on.
        with contextlib.suppress(OSError):
            control.write_text(f"+{controller}")


def _inherit_cpuset(path: Path) -> None:
    """With v1, a new cpuset is empty, and nothing can run in it until it gets its parent's."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not (path / name).read_text().strip():
            (path / name).write_text((path.parent / name).read_text())
