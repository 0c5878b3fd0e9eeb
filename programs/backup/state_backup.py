"""Sidecar of slurmctld: a copy of its state on the backup volume every SLIPWAY_STATE_BACKUP_S seconds, because its disk can be mounted in
that pod only. `python3 -m programs.backup.state_backup`, as SlurmUser.

slurmctld writes each file anew and renames it, so a copy of whole files can be restored like the state after a crash. When a
copy fails, the program reports it and tries again in a minute. It never ends by itself, as slurmctld's pod would then count as broken. The
Job of the database's backup fails when these grow old.
"""

import os
import subprocess
import time
from pathlib import Path

from names import paths, variables
from slurm.logs import teller
from slurm.pump import take_stderr

from .files import Failed, Folder, free_in, read_pipe, size_of
from .plan import STATE, is_due, is_whole_state, retry_s, unread
from .signals import end_at_once

DISK = Path(paths.SLURMCTLD_STATE)
_LOOK_S = 1
_GONE = 1
"""tar's code where a file went while it read; find's where a folder did."""

say = teller("state-backup")


class Sidecar:
    """What one run remembers of its tries."""

    def __init__(self, folder: Folder, interval_s: int, keep: int) -> None:
        self._folder, self._interval_s, self._keep = folder, interval_s, keep
        self._failures = 0
        self._next = time.monotonic()

    def look(self) -> None:
        """Makes a backup if one is due."""
        if time.monotonic() < self._next:
            return
        if os.path.exists(DISK / "job_state"):  # noqa: PTH110 - False, as well, where the folder cannot be read; Path.exists may raise
            if not self._is_due():
                return
            if self._back_up():
                self._failures = 0
                return
            self._failures += 1
            self._next = time.monotonic() + retry_s(self._failures)
            if self._failures > 1:
                free = free_in(self._folder.path)
                say(f"FAILED: no backup of slurmctld's state ({free} are free); the older ones stay; again in {retry_s(self._failures)} s")
        elif DISK.is_dir() and not os.access(DISK, os.X_OK):
            say(f"FAILED: no backup of slurmctld's state: {DISK} cannot be read; again in {retry_s(2)} s")
            self._next = time.monotonic() + retry_s(2)

    def _is_due(self) -> bool:
        try:
            return is_due(self._folder.read(), self._interval_s, time.time())
        except Failed:
            return True  # the backup says what is wrong

    def _back_up(self) -> bool:
        """Makes a backup; False where there is none, which it says."""
        try:
            with self._folder.begin() as (name, partial):
                if not copy(partial):
                    return False
                self._folder.publish(name, partial)
            self._folder.prune(self._keep, days=self._keep)
            self._folder.has_future()
            say(f"{name}: {size_of(self._folder.file(name))}; there are {len(self._folder.read().past)}")
        except Failed as error:
            say(str(error))
            return False
        except OSError as error:
            say(f"FAILED: {error}")
            return False
        return True


def copy(partial: Path) -> bool:
    """Packs the state; False where not all of it is there, which it says. Raises OSError."""
    told = partial.with_name(f"{partial.name}.said")
    pack = [
        "tar",
        "--create",
        f"--directory={DISK}",
        "--no-recursion",
        "--files-from=-",
        "--ignore-failed-read",
        "--warning=no-file-changed",
    ]
    with told.open("wb") as said, partial.open("wb") as made:
        tar = subprocess.Popen(pack, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)
        zstd = subprocess.Popen(["zstd", "--quiet", "-T1"], stdin=tar.stdout, stdout=made)
        assert tar.stdin
        assert tar.stdout
        tar.stdout.close()
        # The list of jobs first, then their scripts: a script without a job does no harm, a job without its script is lost.
        tar.stdin.write(b"job_state\n")
        tar.stdin.flush()
        list_rest = ["find", ".", "-mindepth", "1", "!", "-path", "./job_state", "-printf", "%P\\n"]
        found = subprocess.run(list_rest, cwd=DISK, stdout=tar.stdin, check=False).returncode
        tar.stdin.close()
        codes = (found, tar.wait(), zstd.wait())
    words = unread(told.read_text(errors="replace"))
    told.unlink()
    if words:
        say(f"FAILED: not all of slurmctld's state can be read: {'; '.join(words)}")
        return False
    listed = read_pipe(["zstd", "--quiet", "--decompress", "--stdout", partial], ["tar", "--list"])
    return set(codes) <= {0, _GONE} and listed is not None and is_whole_state(listed.splitlines())


def main() -> None:
    end_at_once(0)
    os.umask(0o077)
    os.environ["LC_ALL"] = "C"  # tar's words are read
    folder = Folder("state", STATE, say)
    sidecar = Sidecar(folder, int(os.environ[variables.STATE_BACKUP_S]), int(os.environ[variables.BACKUP_KEEP]))
    while True:
        sidecar.look()
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    take_stderr("state-backup")
    main()
