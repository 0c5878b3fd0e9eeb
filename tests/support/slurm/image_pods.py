"""Pods without Kubernetes: containers of the real image under runc, with the users, mounts and rights that the components give them.

A pod is a network namespace with an address on a bridge that nothing else is on, and one or more containers, each with its own overlay of
the image's root. Everything made is removed by `Machine.close`, by recorded process id and name.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.support.log_lines import as_words
from tests.support.patience import patience

PROJECT = Path(__file__).parents[3]
MPI_SUM = Path(__file__).with_name("mpi_sum.py")
"""A program of a user, whose ranks add up their numbers."""
SCRIPTS = PROJECT / "programs" / "start"
LOGIN_CAPABILITIES = ("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SYS_CHROOT")
ADMIN_CAPABILITIES = ("FSETID", "SETFCAP", "SETPCAP")

_ALL = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "LINUX_IMMUTABLE"),
    *("NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT"),
    *("SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE"),
    *("AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ"),
)


# As containerd has them for all that is not privileged.
_MASKED = ("acpi", "asound", "kcore", "keys", "latency_stats", "timer_list", "sched_debug", "scsi")
_READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")

_HOLD = """
import contextlib, socket, sys
held = []
for _ in range(300):
    with contextlib.suppress(ConnectionError):
        held.append(socket.create_connection((sys.argv[1], int(sys.argv[2])), 60))
        held[-1].sendall(sys.argv[3].encode())
print("held", flush=True)
sys.stdin.read()
"""

T = TypeVar("T")


_READS = frozenset({"sacct", "sacctmgr", "scontrol", "sdiag", "sinfo", "sprio", "squeue", "sshare"})
"""Commands of Slurm's that need neither the container's cgroup nor its capabilities: tests ask them at every turn, and nsenter takes a
fifth of runc's processor time."""


class PodError(Exception):
    """A program of the test machine failed, or a wait ran out; the text has the last lines of what it said."""


@dataclass
class Container:
    """One running container."""

    id: str
    """Its name for runc."""
    bundle: Path
    """Folder with its configuration, overlay and log."""
    process: subprocess.Popen[bytes]
    machine: "Machine"
    variables: Mapping[str, str]
    """Its environment."""

    @property
    def log(self) -> str:
        """What it wrote so far, as people read it: `worker: slurmd ended`."""
        return as_words("\n".join([*self.lines, ""]))

    @property
    def lines(self) -> list[str]:
        """The lines that it wrote so far, as the container runtime gets them."""
        return (self.bundle / "log").read_text(errors="replace").split("\n")[:-1]

    def run(self, *command: str, user: int = 0, timeout_s: float = 180, check: bool = True, env: Mapping[str, str] | None = None) -> str:
        """Runs a command inside, for no longer than `timeout_s` by the machine's pace; gives what it printed. Raises PodError when it fails
        and `check` is on."""
        variables = [part for key, value in (env or {}).items() for part in ("--env", f"{key}={value}")]
        full = [*self.machine.runc, "exec", "--user", f"{user}:{user}", *variables, self.id, *command]
        environment = None
        if command[0] in _READS and (process := self._first_process()):
            spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root")
            full = ["nsenter", f"--target={process}", *spaces, f"--setuid={user}", f"--setgid={user}", "--", *command]
            environment = {**self.variables, **(env or {})}
        done = subprocess.run(full, capture_output=True, text=True, timeout=timeout_s * patience(), check=False, env=environment)
        if check and done.returncode:
            raise PodError(f"{self.id}: {' '.join(command)} gave {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def _first_process(self) -> str:
        """Its process id; empty where it does not run."""
        file = self.bundle / "pid"
        return file.read_text() if self.process.poll() is None and file.exists() else ""

    def signal(self, name: str) -> None:
        """Sends a signal to the container's first process. Raises PodError where runc refuses, with its words."""
        done = subprocess.run([*self.machine.runc, "kill", self.id, name], check=False, capture_output=True, text=True)
        if done.returncode:
            raise PodError(f"{self.id}: runc kill {name} gave {done.returncode}: {done.stderr}")

    def ended(self, timeout_s: float = 120) -> int:
        """Waits for its end, by the machine's pace; gives its exit code."""
        return self.process.wait(timeout_s * patience())

    def stop(self, signal: str = "TERM", timeout_s: float = 60) -> int:
        """Ends the container and removes what it had; gives its exit code. After the time, by the machine's pace, it is killed."""
        if self.process.poll() is None:
            with suppress(PodError):  # it may have ended since it was looked at
                self.signal(signal)
            try:
                self.process.wait(timeout_s * patience())
            except subprocess.TimeoutExpired:
                self.signal("KILL")
                self.process.wait(60 * patience())
        subprocess.run([*self.machine.runc, "delete", "--force", self.id], capture_output=True, check=False)
        subprocess.run(["umount", str(self.bundle / "root")], check=True, capture_output=True)
        self.machine.containers.pop(self.id, None)
        return self.process.returncode


@dataclass
class Machine:
    """The pods of one test: their names, addresses and containers, all below one folder."""

    folder: Path
    image: Path
    """The unpacked root of the image."""
    prefix: str
    """Start of the names of its network namespaces."""
    containers: dict[str, Container] = field(default_factory=dict[str, Container])
    addresses: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def runc(self) -> list[str]:
        """runc with a state folder of its own."""
        return ["runc", "--root", str(self.folder / "runc")]

    def open(self, names: Mapping[str, Sequence[str]]) -> None:
        """Makes the network: each pod with the names by which it is reached, on one bridge inside a namespace of its own."""
        hub = f"{self.prefix}hub"
        _run("ip", "netns", "add", hub)
        _run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", hub, "link", "set", "bridge", "up")
        _run("ip", "-n", hub, "link", "set", "lo", "up")
        self.add_address("hub", hub, "bridge", 1)
        for number, pod in enumerate(names, start=10):
            namespace = f"{self.prefix}{pod}"
            _run("ip", "netns", "add", namespace)
            _run("ip", "-n", hub, "link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", namespace)
            _run("ip", "-n", hub, "link", "set", f"v{number}", "master", "bridge", "up")
            _run("ip", "-n", namespace, "link", "set", "lo", "up")
            self.add_address(pod, namespace, "eth0", number)
        self._give_way()
        lines = [f"{self.addresses[pod]} {' '.join([pod, *more])}" for pod, more in names.items()]
        (self.folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))

    def _give_way(self) -> None:
        """Beside tests that go first (`nice` in the Makefile), the pods' cgroup does not count more than this process: a nice value holds
        within a cgroup only. Those of the local cluster are in one as well."""
        shares = Path(f"/sys/fs/cgroup/cpu/{self.prefix}pods/cpu.shares")
        if os.nice(0) > 0 and shares.parents[1].is_dir():
            shares.parent.mkdir(exist_ok=True)
            shares.write_text(f"{1024 / 1.25 ** os.nice(0):.0f}")  # the weight of one process with this nice value

    def add_address(self, pod: str, namespace: str, link: str, number: int) -> None:
        """Gives a link its address, and remembers it."""
        self.addresses[pod] = f"198.18.255.{number}"
        _run("ip", "-n", namespace, "address", "add", f"{self.addresses[pod]}/24", "dev", link)
        _run("ip", "-n", namespace, "link", "set", link, "up")

    def start(
        self,
        pod: str,
        name: str,
        command: Sequence[str],
        mounts: Mapping[str, tuple[Path, bool]],
        env: Mapping[str, str] | None = None,
        user: int = 0,
        group: int | None = None,
        privileged: bool = False,
        capabilities: Sequence[str] = (),
        read_only: bool = False,
        fs_group: int | None = None,
        may_gain: bool = False,
        cwd: str = "/",
    ) -> Container:
        """Starts a container of a pod. `mounts`: path inside to (path outside, read-only). `may_gain`: setuid programs get their rights."""
        container_id = f"{self.prefix}{pod}-{name}"
        bundle = self.folder / container_id
        shutil.rmtree(bundle, ignore_errors=True)
        for part in ("upper", "work", "root"):
            (bundle / part).mkdir(parents=True)
        layers = f"lowerdir={self.image},upperdir={bundle / 'upper'},workdir={bundle / 'work'}"
        _run("mount", "-t", "overlay", "overlay", "-o", layers, str(bundle / "root"))
        shared = {
            "/etc/hosts": (self.folder / "hosts", True),
            "/opt/slipway/scripts": (SCRIPTS, True),
            "/opt/slipway/names": (PROJECT / "names", True),
            "/opt/slipway/slurm": (PROJECT / "slurm", True),
        }
        all_mounts = sorted({**shared, **mounts}.items())  # a folder before what lies in it
        granted = [f"CAP_{each}" for each in (_ALL if privileged else capabilities)]
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **(env or {})}
        spec = {
            "ociVersion": "1.0.2",
            "hostname": pod,
            "root": {"path": "root", "readonly": read_only},
            "process": {
                "cwd": cwd,
                "args": list(command),
                "env": [f"{key}={value}" for key, value in variables.items()],
                "user": {"uid": user, "gid": user if group is None else group, "additionalGids": [fs_group] if fs_group else []},
                "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), granted),
                "noNewPrivileges": not (privileged or may_gain),
            },
            "mounts": [*_system_mounts(privileged), *(_bind(inside, *outside) for inside, outside in all_mounts)],
            "linux": {
                "namespaces": [
                    *({"type": kind} for kind in ("pid", "ipc", "uts", "mount")),
                    {"type": "network", "path": f"/run/netns/{self.prefix}{pod}"},
                ],
                "cgroupsPath": f"/{self.prefix}pods/{container_id}",
                "maskedPaths": [] if privileged else [f"/proc/{name}" for name in _MASKED],
                "readonlyPaths": [] if privileged else [f"/proc/{name}" for name in _READ_ONLY],
                "resources": {"devices": [{"allow": privileged, "access": "rwm"}, *([] if privileged else _DEVICES)]},
            },
        }
        (bundle / "config.json").write_text(json.dumps(spec))
        with (bundle / "log").open("wb") as log:
            words = [*self.runc, "run", "--bundle", str(bundle), "--pid-file", str(bundle / "pid"), container_id]
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        container = Container(container_id, bundle, process, self, variables)
        self.containers[container_id] = container
        return container

    @contextmanager
    def held(self, pod: str, port: int, says: str = "") -> Generator[None]:
        """300 connections to a port of a pod, from an address that is no pod's. Each says this much and then nothing."""
        hold = ["nsenter", f"--net=/run/netns/{self.prefix}hub", "python3", "-c", _HOLD, self.addresses[pod], str(port), says]
        with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            try:
                assert holder.stdout.readline() == b"held\n"
                yield
            finally:
                holder.stdin.close()

    def lay_disk(self, folder: Path, mib: int) -> None:
        """Mounts a disk of its own on an empty folder: what a node does when its disk fills up depends on this one alone."""
        file = self.folder / f"{folder.name}.disk"
        with file.open("wb") as blocks:
            blocks.truncate(mib << 20)
        _run("mkfs.ext4", "-q", "-m", "0", str(file))
        _run("mount", "-o", "loop", str(file), str(folder))

    def logs(self) -> list[tuple[str, int | None, str]]:
        """Name, exit code (None while it runs) and log of each container, the one that wrote last first."""
        newest = sorted(self.containers.values(), key=lambda each: (each.bundle / "log").stat().st_mtime, reverse=True)
        return [(each.id.removeprefix(self.prefix), each.process.poll(), each.log) for each in newest]

    def keep_logs(self) -> None:
        """Copies what each container said to a folder beside, for whoever looks into a failure."""
        kept = self.folder.with_name(f"{self.folder.name}.logs")
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for log in self.folder.glob("*/log"):
            shutil.copy(log, kept / f"{log.parent.name}.log")

    def close(self) -> None:
        """Ends all containers and removes processes, mounts, namespaces and cgroups; also those that a killed run left in this folder."""
        for container in [*self.containers.values()]:
            container.stop("KILL")
        listed = subprocess.run([*self.runc, "list", "--quiet"], capture_output=True, text=True, check=False).stdout
        for left in listed.split():
            subprocess.run([*self.runc, "delete", "--force", left], capture_output=True, check=False)
        mounted = [line.split(" ")[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for point in sorted((each for each in mounted if each.startswith(f"{self.folder}/")), reverse=True):
            _run("umount", point)
        spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        for line in spaces.splitlines():
            if line.split()[0].startswith(self.prefix):
                _run("ip", "netns", "delete", line.split()[0])
        for top in Path("/sys/fs/cgroup").glob(f"*/{self.prefix}pods"):
            for group in sorted((each for each in top.rglob("*") if each.is_dir()), reverse=True):
                group.rmdir()
            top.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_for(what: str, probe: Callable[[], T], deadline_s: float = 30, pause_s: float | None = None) -> T:
    """Polls until the probe gives something true; raises PodError after the deadline, by the machine's pace, with what it gave last.

    Unless told how often to look, what takes long is looked at less often: others want the processor.
    """
    began = time.monotonic()
    while True:
        try:
            found = probe()
        except (PodError, subprocess.TimeoutExpired) as error:
            found, last = None, str(error)
        else:
            last = repr(found)
        if found:
            return found
        if (waited_s := time.monotonic() - began) > deadline_s * patience():
            raise PodError(f"no {what} within {waited_s:.0f} s; last: {last}")
        time.sleep(min(max(0.1, waited_s / 30), 0.5) if pause_s is None else pause_s)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PodError(f"{' '.join(command)}: {done.stderr.strip()}")


def _bind(inside: str, outside: Path, read_only: bool) -> dict[str, Any]:
    return {"destination": inside, "type": "bind", "source": os.fspath(outside), "options": ["rbind", "ro" if read_only else "rw"]}


def _system_mounts(privileged: bool) -> list[dict[str, Any]]:
    access = "rw" if privileged else "ro"
    return [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
        {
            "destination": "/dev/pts",
            "type": "devpts",
            "source": "devpts",
            "options": ["newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
        },
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777"]},
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue"},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", access]},
        {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["nosuid", "noexec", "nodev", access]},
    ]


_DEVICES = [
    {"allow": True, "type": "c", "major": major, "minor": minor, "access": "rwm"}
    for major, minor in ((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2), (136, None))
]
