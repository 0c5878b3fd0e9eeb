"""Prepares a worker's container for jobs: folders, devices, cgroups, limits. As root, in a privileged container. Thin: decisions are
in `plan_gpus` and in the kernel.
"""

import contextlib
import os
import resource
import stat
import subprocess
from collections.abc import Callable
from enum import Enum

from names import paths, variables

_FOLDERS = (paths.RUN, paths.SLURM_RUN, paths.SLURMD_SPOOL, "/var/log/slurm")
_STOPPING = paths.STOPPING
"""Made by the stop hook of the container before this one."""
_SU = f"{paths.PLUGINS}/su"
_ROOT_SETTINGS = f"{paths.ROOT_SETTINGS}/root.conf"
_JOB_FOLDERS = paths.JOBS_TMP
"""Where jobs have their folders, as images/slurm/root/conf.c has it by default."""
_DISKS = paths.JOB_DISKS
"""What each job has of the node's disk, for images/slurm/root/disk.c."""
_DISK_CHECK = f"{paths.PLUGINS}/disk-check"
_SCRATCH = paths.SCRATCH
_SHARE_DRIVER = ("bash", f"{paths.PACKAGES}/programs/worker/share-driver.sh")
_CGROUPS = "/sys/fs/cgroup"
_TOO_OLD = "FAILED: this image is older than Slipway's scripts: build and push it again"
_NVIDIA = 195
"""The major number of its devices."""
_TRIES = 20


class PrepareError(Exception):
    """Jobs may not run here; the text says why, and what to do."""


class Gpus(Enum):
    """What to do about the devices of GPUs."""

    KEEP = 1
    HIDE = 2
    REFUSE = 3


def plan_gpus(has_gpus: bool, has_devices: bool, has_own_dev: bool) -> Gpus:
    """What becomes of the machine's GPUs in a node set that may have none of its own (`has_gpus`).

    Slurm guards the devices that gres.conf names, and a privileged pod has all that its machine has. `has_own_dev`: the pod's /dev is its
    own, so that removing them there removes them nowhere else.
    """
    if has_gpus or not has_devices:
        return Gpus.KEEP
    return Gpus.HIDE if has_own_dev else Gpus.REFUSE


def prepare(say: Callable[[str], None]) -> None:
    """All of it. Raises PrepareError, OSError, CalledProcessError."""
    for folder in _FOLDERS:
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o755)  # noqa: S103 - slurmd and users go through
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_STOPPING)
    _make_devices(int(os.environ.get(variables.SIMULATED_GPUS) or 0))
    _hide_gpus(has_gpus=os.environ.get(variables.GPUS) != "0")
    if not os.access(_SU, os.F_OK):  # with Debian's own, a program of a user's could run outside of every job
        raise PrepareError(_TOO_OLD)
    subprocess.run(["mount", "--bind", _SU, "/usr/bin/su"], check=True)  # slurmd runs it for jobs that have no cgroup yet
    if (
        os.access(_ROOT_SETTINGS, os.F_OK) and subprocess.run(_SHARE_DRIVER, check=False).returncode
    ):  # jobs see another root than this pod's
        say("jobs will not find the driver's files; see the lines above")
    _give_disks(os.environ.get(variables.JOB_DISKS, ""))
    _prepare_cgroup()
    _shield()
    _raise_limits(say)


def _make_devices(number: int) -> None:
    """Stand-ins for GPUs, so that Slurm can hand them out and guard them; there is nothing behind them."""
    for minor in range(number):
        device = f"/dev/nvidia{minor}"
        if not os.access(device, os.F_OK):
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(_NVIDIA, minor))
            os.chmod(device, 0o666)  # noqa: S103 - as the driver makes them


def _hide_gpus(has_gpus: bool) -> None:
    devices = [f"/dev/{name}" for name in sorted(os.listdir("/dev")) if name.startswith("nvidia") or name in ("dri", "kfd")]
    if plan_gpus(has_gpus, bool(devices), has_own_dev=True) is Gpus.KEEP:
        return
    mounted = ["findmnt", "--noheadings", "--output", "FSTYPE", "--mountpoint", "/dev"]
    kind = subprocess.run(mounted, capture_output=True, text=True, check=False).stdout.strip()
    if plan_gpus(has_gpus, bool(devices), has_own_dev=kind == "tmpfs") is Gpus.REFUSE:
        named = " ".join(devices)
        raise PrepareError(
            f"the pod has no /dev of its own, so {named} would be open to jobs: take a machine without GPUs for this node set"
        )
    subprocess.run(["rm", "-rf", *devices], check=True)


def _give_disks(wanted: str) -> None:
    """Gives each job its own part of the node's disk from now on. First a trial: a small part is made, and must be full when it should."""
    if not wanted:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_DISKS)
        return
    if not os.access(_DISK_CHECK, os.X_OK):
        raise PrepareError(_TOO_OLD)
    trial = f"{_JOB_FOLDERS}/trial"
    os.makedirs(trial, mode=0o700, exist_ok=True)
    tried = subprocess.run([_DISK_CHECK, trial], capture_output=True, text=True, check=False)
    subprocess.run(["rm", "-rf", trial], check=True)
    if tried.returncode:
        raise PrepareError(
            f"jobs cannot get their own part of the node's disk here: {tried.stderr.strip() or f'code {tried.returncode}'}. "
            "Mend the machine, or leave tmp and scratch out of the node set"
        )
    os.makedirs(_SCRATCH, exist_ok=True)  # for jobs that see the pod; all others have it in their own root
    with open(f"{_DISKS}.new", "w", encoding="ascii") as file:
        file.write(f"{wanted}\n")
    os.rename(f"{_DISKS}.new", _DISKS)


def own_group(text: str) -> str:
    """The group in the only line of /proc/self/cgroup of v2, below the folder of all groups; empty for the topmost one.

    The path is / in a cgroup namespace; privileged pods of containerd and CRI-O share the machine's.
    """
    return text.strip().removeprefix("0::").rstrip("/")


def _prepare_cgroup() -> None:
    """On v2 a group with processes has no children with controllers, so ours move into a leaf. Slurm puts jobs beside PID 1's group: with
    the leaf, inside the container."""
    if not os.access(f"{_CGROUPS}/cgroup.controllers", os.F_OK):
        return
    own = _CGROUPS + own_group(_read("/proc/self/cgroup"))
    os.makedirs(f"{own}/slipway", exist_ok=True)
    for _ in range(_TRIES):  # the list is read whole before the first move, and again: an exec may have added a process meanwhile
        processes = _read(f"{own}/cgroup.procs").split()
        if not processes:
            break
        for process in processes:
            _write(f"{own}/slipway/cgroup.procs", process)
    for controller in _read(f"{own}/cgroup.controllers").split():
        _write(f"{own}/cgroup.subtree_control", f"+{controller}")


def _shield() -> None:
    """The kernel must pick a job's task, never its slurmstepd. A pod has a score near 1000; Slurm lowers it only with CAP_SYS_RESOURCE."""
    for score in ("-999", "0"):
        if _write("/proc/self/oom_score_adj", score):
            return


def _raise_limits(say: Callable[[str], None]) -> None:
    """Jobs get slurmd's limit of locked memory, and RDMA registers what a job computes with."""
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] // 1024
        say(
            f"jobs may lock no more than {limit} KiB of memory each, and RDMA may need more: the container runtime has this limit, and "
            "the pod no CAP_SYS_RESOURCE to raise it"
        )


def _read(path: str) -> str:
    opened = os.open(path, os.O_RDONLY)
    try:
        parts: list[bytes] = []
        while part := os.read(opened, 65536):
            parts.append(part)
        return os.fsdecode(b"".join(parts))
    finally:
        os.close(opened)


def _write(path: str, text: str) -> bool:
    """False where the kernel refuses it."""
    try:
        opened = os.open(path, os.O_WRONLY)
        try:
            os.write(opened, f"{text}\n".encode())
        finally:
            os.close(opened)
    except OSError:
        return False
    return True
