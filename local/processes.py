"""Long-running programs that we start. A record identifies each process by id, start time and boot id, so that only ours are ever ended.

The process writes its record before it becomes the program, so no program ever runs without one.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep

LAUNCHER = """
set -e
record=$1 digest=$2 procs=$3; shift 3
[ -z "$procs" ] || echo $$ >"$procs"
set -- "$(cut -d' ' -f22 /proc/$$/stat)" "$@"
echo "$$ $1 $(cat /proc/sys/kernel/random/boot_id) $digest" >"$record.new"
mv "$record.new" "$record"
shift
exec "$@"
"""

LOG_BYTES = 32 << 20
"""A log that is longer is replaced at its program's next start."""


@dataclass(frozen=True)
class Identity:
    """What identifies a process: its start time in clock ticks since boot, and the boot."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True)
class Program:
    """A program to keep running. It is restarted if `watched`, the text of its configuration, changes."""

    name: str
    argv: tuple[str, ...]
    cgroup_procs: tuple[str, ...] = ()
    watched: str = ""

    @property
    def digest(self) -> str:
        """Changes with the command line and with the configuration."""
        return sha256("\0".join([*self.argv, self.watched]).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Record:
    """A process that we started, and the digest of the Program that it was started from."""

    name: str
    identity: Identity
    digest: str


def parse_record(name: str, text: str) -> Record | None:
    """A record file's content; None when it is not one (a disk that was full)."""
    match text.split():
        case [pid, ticks, boot_id, digest] if pid.isdigit() and ticks.isdigit():
            return Record(name, Identity(int(pid), int(ticks), boot_id), digest)
        case _:
            return None


def parse_stat(stat: str, boot_id: str) -> Identity | None:
    """The identity in /proc/PID/stat; None for a zombie. The name in brackets may contain spaces and brackets."""
    before, _, after = stat.rpartition(")")
    fields = after.split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):
        return None
    return Identity(int(before.split(" ", 1)[0]), int(fields[19]), boot_id)


def boot_id() -> str:
    """Identifies this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def observe(pid: int, boot: str) -> Identity | None:
    """The identity of the process that has this id now; None when there is none."""
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text(), boot)
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(record: Record, boot: str) -> bool:
    """True when the very process of the record still runs."""
    return observe(record.identity.pid, boot) == record.identity


def read_records(folder: Path) -> dict[str, Record]:
    """All records, by program name."""
    parsed = (parse_record(path.name, path.read_text()) for path in sorted(folder.glob("*")) if path.suffix != ".new")
    return {record.name: record for record in parsed if record}


def running(folder: Path) -> dict[str, Record]:
    """The records whose processes still run, by program name."""
    boot = boot_id()
    return {name: record for name, record in read_records(folder).items() if is_alive(record, boot)}


def plan_start(programs: Iterable[Program], alive: dict[str, Record]) -> tuple[list[Record], list[Program]]:
    """The programs to stop because their configuration is old, and those to start because they do not run."""
    outdated = [alive[p.name] for p in programs if p.name in alive and alive[p.name].digest != p.digest]
    return outdated, [p for p in programs if p.name not in alive or alive[p.name].digest != p.digest]


def keep_running(programs: Iterable[Program], records: Path, logs: Path) -> list[str]:
    """Starts what does not run, restarts what runs with an old configuration. Gives the names of what was started."""
    programs = list(programs)
    outdated, to_start = plan_start(programs, running(records))
    stop(outdated, records)
    for program in to_start:
        start(program, records, logs)
    return [program.name for program in to_start]


def start(program: Program, records: Path, logs: Path) -> None:
    """Starts a program in a session of its own, with its output in `logs`. Returns when its record is written."""
    records.mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    record = records / program.name
    record.unlink(missing_ok=True)
    procs = program.cgroup_procs[0] if program.cgroup_procs else ""
    log_file = logs / f"{program.name}.log"
    keeps_log = log_file.exists() and log_file.stat().st_size < LOG_BYTES
    with log_file.open("ab" if keeps_log else "wb") as log:
        child = subprocess.Popen(
            ["/bin/sh", "-c", LAUNCHER, "launcher", str(record), program.digest, procs, *program.argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    while not record.exists() and child.poll() is None:
        sleep(0.005)


def stop(records: Iterable[Record], folder: Path, grace_s: float = 10) -> None:
    """Ends processes by their records: asks, waits up to `grace_s` (0: does not ask), then kills. Removes the records of those that are
    gone."""
    boot = boot_id()
    records = list(records)
    left = [record for record in records if is_alive(record, boot)]
    for sent, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)) if grace_s else ((signal.SIGKILL, 10.0),):
        for record in left:
            send(record, sent, boot)
        deadline = monotonic() + wait_s
        while left and monotonic() < deadline:
            left = [record for record in left if is_alive(record, boot)]
            sleep(0.02)
    for record in records:
        if record not in left:
            (folder / record.name).unlink(missing_ok=True)


def send(record: Record, number: signal.Signals, boot: str) -> None:
    """Sends a signal to the recorded process only, even if its id has been reused."""
    try:
        handle = os.pidfd_open(record.identity.pid)
    except ProcessLookupError:
        return
    try:
        # The handle pins the process; only then is it safe to ask which process it is.
        if is_alive(record, boot):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)
