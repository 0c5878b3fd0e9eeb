"""Checks that this machine can run the local cluster, before anything is touched: reports all that is missing, each with a fix.

`observe` reads the machine, `faults` decides.
"""

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from shutil import disk_usage, which

from local import cgroups, layout, packages, processes
from local.commands import LocalError
from local.layout import Paths

BUILD_MIB = 14 * 1024
"""Go's caches and the programs, from nothing."""
STATE_MIB = 6 * 1024
"""Containers, volumes and one unpacked image of each kind."""
MEMORY_MIB = 4 * 1024
"""What the cluster and a small Slurm use together."""
IP_FREEBIND = 15

END_IT = "python -m local down --any-checkout"
CONTROL_PLANE = frozenset({"etcd", "kube-apiserver"})
PORT_OWNERS = {
    layout.API_PORT: "kube-apiserver",
    layout.ETCD_PORT: "etcd",
    layout.ETCD_PEER_PORT: "etcd",
    layout.CONTROLLER_MANAGER_PORT: "kube-controller-manager",
    layout.SCHEDULER_PORT: "kube-scheduler",
}


@dataclass(frozen=True)
class Disk:
    """Room on the file system of a folder, and what it will hold."""

    folder: Path
    free_mib: int
    needed_mib: int
    purpose: str


@dataclass(frozen=True)
class Facts:
    """What `observe` found out about a machine."""

    is_root: bool
    is_linux: bool
    has_apt: bool
    missing_packages: tuple[str, ...]
    memory_mib: int
    disks: tuple[Disk, ...]
    missing_controllers: tuple[str, ...]
    missing_features: tuple[str, ...]
    ports_in_use: tuple[int, ...]
    ranges_in_use: tuple[str, ...]
    """Routes of this machine into the cluster's addresses, as `range dev link`."""
    other_cluster: Path | None
    """State folder of another checkout whose cluster is on this machine."""
    is_running: bool
    """Parts of the cluster run already: their memory and disk are taken, their ports are ours."""


class PreflightError(LocalError):
    """The machine lacks something; the message lists all of it."""


def faults(facts: Facts) -> list[str]:
    """One line for each thing that is missing, with what to do about it."""
    if not facts.is_linux:
        return ["Linux: the local cluster uses its namespaces. Use a cluster of your own instead: make up CONTEXT=name"]
    missing: list[str] = []
    if not facts.is_root:
        missing.append("root: namespaces, mounts and routes need it. Run the command again with sudo.")
    if facts.missing_packages and not facts.has_apt:
        names = ", ".join(facts.missing_packages)
        missing.append(f"Debian packages: {names} are missing, and there is no apt-get. Install what your system calls them.")
    if facts.memory_mib < MEMORY_MIB and not facts.is_running:
        missing.append(f"memory: {facts.memory_mib} MiB are available, {MEMORY_MIB} are needed. End other programs.")
    for disk in facts.disks:
        if disk.free_mib < disk.needed_mib and not facts.is_running:
            missing.append(
                f"disk: {disk.folder} has {disk.free_mib} MiB free, {disk.purpose} needs {disk.needed_mib}. Make room, or put it elsewhere."
            )
    if facts.missing_controllers:
        names = ", ".join(facts.missing_controllers)
        missing.append(f"control groups: {names} missing in {cgroups.ROOT}. Enable them on the kernel command line (cgroup_enable=...).")
    missing += [f"kernel: {feature} cannot be used. Load its module, or use a kernel that has it." for feature in facts.missing_features]
    if facts.other_cluster:
        missing.append(f"another local cluster: {facts.other_cluster} has one on this machine. End it there, or here: {END_IT}")
    for port in facts.ports_in_use if not facts.other_cluster else ():
        missing.append(f"port {port}: another program listens on it, on every address; {PORT_OWNERS[port]} needs it. End that program.")
    for used in facts.ranges_in_use:
        missing.append(f"addresses: {layout.WHOLE_RANGE} is for the cluster, but this machine routes {used}. Remove that route (a VPN?).")
    return missing


def require(facts: Facts) -> None:
    """Raises PreflightError when the machine lacks anything."""
    missing = faults(facts)
    if missing:
        things = "1 thing is" if len(missing) == 1 else f"{len(missing)} things are"
        raise PreflightError("\n".join([f"this machine cannot run the local cluster yet: {things} missing", *(f"  {f}" for f in missing)]))


def observe(paths: Paths, *, is_built: bool) -> Facts:
    """Reads the machine. Changes nothing."""
    running = set(processes.running(paths.records))
    is_root = os.geteuid() == 0
    hierarchies = cgroups.hierarchies()
    v2_controllers = cgroups.ROOT / "cgroup.controllers"
    return Facts(
        is_root=is_root,
        is_linux=sys.platform == "linux",
        has_apt=which("apt-get") is not None,
        missing_packages=tuple(packages.find_missing()),
        memory_mib=available_mib(Path("/proc/meminfo").read_text()),
        disks=(
            Disk(paths.state, _free_mib(paths.state), STATE_MIB, "the cluster's state"),
            *(() if is_built else (Disk(paths.cache, _free_mib(paths.cache), BUILD_MIB, "building Kubernetes"),)),
        ),
        missing_controllers=tuple(cgroups.missing_controllers(hierarchies, v2_controllers.read_text() if v2_controllers.exists() else "")),
        missing_features=tuple(_missing_features(paths)) if is_root and not running else (),
        ports_in_use=tuple(port for port, owner in PORT_OWNERS.items() if owner not in running and not _is_free(port)),
        ranges_in_use=tuple(foreign_routes(Path("/proc/net/route").read_text())),
        other_cluster=other_owner(paths),
        is_running=bool(running),
    )


def recorded_owner(paths: Paths) -> Path:
    """The state folder of the checkout that last made a cluster on this machine; `paths.state` if there is none."""
    return Path(paths.owner.read_text()) if paths.owner.exists() else paths.state


def other_owner(paths: Paths) -> Path | None:
    """The state folder of another checkout that is working on its cluster here, or whose control plane runs; else None: nobody uses its
    leftovers."""
    owner = recorded_owner(paths)
    if owner == paths.state:
        return None
    other_paths = replace(paths, state=owner)
    is_used = _is_locked(other_paths.lock) or not CONTROL_PLANE.isdisjoint(processes.running(other_paths.records))
    return owner if is_used else None


def available_mib(meminfo: str) -> int:
    """MemAvailable of /proc/meminfo in MiB, 0 when it does not say."""
    return next((int(line.split()[1]) // 1024 for line in meminfo.splitlines() if line.startswith("MemAvailable:")), 0)


def foreign_routes(table: str) -> Iterable[str]:
    """Routes of /proc/net/route into our addresses that do not use our bridge. The default route does not count."""
    for line in table.splitlines()[1:]:
        link, target, _, _, _, _, _, mask = line.split()[:8]
        network = IPv4Network((_address(target), bin(int(mask, 16)).count("1")))
        if link != layout.BRIDGE and network.prefixlen and network.overlaps(layout.WHOLE_RANGE):
            yield f"{network} dev {link}"


def _address(word: str) -> IPv4Address:
    """From /proc/net/route's hexadecimal, which is in the machine's own byte order."""
    return IPv4Address(int(word, 16).to_bytes(4, sys.byteorder))


def _free_mib(folder: Path) -> int:
    return disk_usage(_existing(folder)).free >> 20


def _is_locked(file: Path) -> bool:
    if not file.exists():
        return False
    with file.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _is_free(port: int) -> bool:
    """False if something listens on the port on all addresses. Nobody else can listen on the bridge's own address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        # A closed connection that lingers does not count as a listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((str(layout.HOST), port))
        except OSError:
            return False
    return True


def _missing_features(paths: Paths) -> list[str]:
    lower, upper = (_existing(folder) for folder in (paths.cache, paths.state))
    command = ["unshare", "--net", "--mount", "--propagation=private", sys.executable, "-m", "local.probe", str(lower), str(upper)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return [f"namespaces ({last})"]
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
