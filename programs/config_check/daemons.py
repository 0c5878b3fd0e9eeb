"""Starts the daemons that slurmctld needs, with keys and data of their own below WORK: munged, and slurmdbd with a MariaDB. Thin."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from names import paths, ports

from .plan import DATABASE_UP, Said, folders_of_slurmdbd, judge, jwt_key_of, port_of_slurmdbd, throwaway_database

WORK = Path("/tmp/check")  # noqa: S108 - of a container of its own
_START_S = 20
_PAUSE_S = 0.02


class CheckError(Exception):
    """The files could not be checked, which says nothing about them."""


class Daemons:
    """The processes that were started here, to be ended."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[bytes]] = []

    def start(self, user: str, log: Path, *command: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Starts a program in the foreground, with its output in a log."""
        with log.open("wb") as sink:
            run_as = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", *command]
            self._all.append(
                subprocess.Popen(run_as, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env={**os.environ, **(env or {})})
            )
        return self._all[-1]

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kills it: none of its data is kept."""
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        self._all.remove(process)

    def end_all(self) -> None:
        for process in [*self._all]:
            self.end(process)


def start_munged(daemons: Daemons) -> None:
    """Raises CheckError."""
    run, state = Path(paths.MUNGE_RUN), Path("/var/lib/munge")
    for folder in (run, state):
        make_folder(folder, "munge")
        folder.chmod(0o755)
    key, log = WORK / "munge.key", WORK / "munged.log"
    make_key(key, "munge", 128)
    files = ("--key-file", str(key), "--seed-file", f"{state}/seed", "--pid-file", f"{run}/munged.pid", "--log-file", f"{state}/log")
    munged = daemons.start("munge", log, "munged", "--foreground", "--force", *files)
    _await("munged", munged, log, (run / "munge.socket.2").exists)


def start_slurmdbd(slurmdbd_conf: str, slurm_conf: str, user: str, daemons: Daemons) -> Said | None:
    """Starts slurmdbd with its file, but with a MariaDB of its own. Its files are in WORK/slurmdbd.

    Returns its complaints if it refuses the file. Raises CheckError.
    """
    password = os.urandom(8).hex()
    _start_mariadb(password, daemons)
    folder, log = WORK / "slurmdbd", WORK / "slurmdbd.log"
    for path in (str(folder), *folders_of_slurmdbd(slurmdbd_conf)):
        make_folder(Path(path), user)
    if key := jwt_key_of(slurmdbd_conf):
        make_key(Path(key), user, 32)
    (folder / "slurm.conf").write_text(slurm_conf)
    file = folder / "slurmdbd.conf"
    file.touch(0o600)
    file.write_text(throwaway_database(slurmdbd_conf, socket.gethostname(), "check", password))
    shutil.chown(file, user, user)
    port = port_of_slurmdbd(slurmdbd_conf)
    slurmdbd = daemons.start(user, log, "slurmdbd", "-D", "-v", env={"SLURM_CONF": str(folder / "slurm.conf")})
    # It says that it has started a moment before it listens.
    if not wait(lambda: slurmdbd.poll() is not None or (DATABASE_UP.search(text_of(log)) is not None and _listens(port)), _START_S):
        raise CheckError(f"slurmdbd did not start within {_START_S} s; it said last: {last_of(log)}")
    findings = judge(text_of(log), ("slurmdbd.conf",), "slurmdbd.conf")
    if slurmdbd.poll() is not None and not findings.mistakes:
        raise CheckError(f"slurmdbd ended with {slurmdbd.returncode}; it said last: {last_of(log)}")
    return findings if findings.mistakes else None


def _start_mariadb(password: str, daemons: Daemons) -> None:
    data, log = WORK / "mysql", WORK / "mariadb.log"
    make_folder(data, "mysql")
    shared = ("--no-defaults", f"--datadir={data}")
    install = daemons.start("mysql", log, "mariadb-install-db", *shared, "--skip-test-db", "--skip-name-resolve")
    if not wait(lambda: install.poll() is not None, _START_S) or install.returncode:
        raise CheckError(f"MariaDB's data folder was not made; the last words: {last_of(log)}")
    accounts = WORK / "accounts.sql"
    user = f"CREATE USER 'check'@'%' IDENTIFIED BY '{password}'"
    accounts.write_text(f"CREATE DATABASE slurm_acct_db;\n{user};\nGRANT ALL ON *.* TO 'check'@'%';\n")
    small = ("--innodb-snapshot-isolation=OFF", "--innodb-flush-log-at-trx-commit=0", "--performance-schema=OFF", "--skip-name-resolve")
    where = (
        f"--socket={data}/socket",
        f"--pid-file={data}/pid",
        "--bind-address=127.0.0.1",
        f"--port={ports.MARIADB}",
        f"--init-file={accounts}",
    )
    mariadb = daemons.start("mysql", log, "mariadbd", *shared, *small, *where)
    _await("MariaDB", mariadb, log, lambda: _answers("127.0.0.1", ports.MARIADB))


def make_folder(folder: Path, owner: str) -> None:
    """Makes a folder for a user. One at the top of the root, such as /run, stays as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    if len(folder.parts) > 2:
        shutil.chown(folder, owner, owner)


def make_key(file: Path, owner: str, size: int) -> None:
    """A random key that its owner alone can read, unless there is one."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(0o400)
        file.write_bytes(os.urandom(size))
        shutil.chown(file, owner, owner)


def wait(is_done: Callable[[], bool], deadline_s: float) -> bool:
    """False if the condition did not come true in time."""
    until = time.monotonic() + deadline_s
    while not is_done():
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE_S)
    return True


def text_of(log: Path) -> str:
    """The log so far."""
    return log.read_text(errors="replace")


def last_of(log: Path) -> str:
    """The last line of a log."""
    return next((line for line in reversed(text_of(log).splitlines()) if line.strip()), "nothing")


def _await(name: str, process: subprocess.Popen[bytes], log: Path, is_up: Callable[[], bool]) -> None:
    wait(lambda: process.poll() is not None or is_up(), _START_S)
    if process.poll() is not None or not is_up():
        raise CheckError(f"{name} did not start within {_START_S} s; it said last: {last_of(log)}")


def _listens(port: int) -> bool:
    """True once a process of the container listens on a TCP port. It does not connect: that would be an error in the process's log."""
    lines = [line.split() for table in ("tcp", "tcp6") for line in text_of(Path("/proc/net", table)).splitlines()[1:]]
    return any(state == "0A" and address.endswith(f":{port:04X}") for _, address, _, state, *_ in lines)


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 1).close()
    except OSError:
        return False
    return True
