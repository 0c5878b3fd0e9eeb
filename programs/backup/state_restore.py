"""Restores slurmctld's state from the backup that backup.restoreFrom names, before slurmctld starts, if its disk has no state.

If there are backups and the key is not set, it waits for that. `python3 -m programs.backup.state_restore`, as SlurmUser.

An empty slurmctld would end every job that runs: none of them is known to it. State that is there is never touched; half a copy never
counts.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from names import paths
from slurm.logs import teller
from slurm.pump import take_stderr

from .files import Failed, Folder, pipe, sync
from .plan import STATE, name_of
from .signals import end_at_once

DISK = Path(paths.SLURMCTLD_STATE)

say = teller("state-restore")


def has_state() -> bool:
    """True where slurmctld's disk has files. Raises Failed where it cannot be read: that is not empty."""
    try:
        with os.scandir(DISK) as entries:
            return any(entry.is_file(follow_symlinks=False) for entry in entries)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Failed(f"FAILED: {DISK} cannot be read ({error.strerror}): whether slurmctld's state is there is unknown") from None


def restore(folder: Folder) -> None:
    """Takes a backup. Raises Failed, CalledProcessError, OSError."""
    if has_state():
        say("slurmctld's state is there; nothing to restore")
        return
    chosen = folder.await_choice("slurmctld's disk")
    if not chosen:
        return
    partial = DISK.with_name(f"{DISK.name}.partial")
    subprocess.run(["rm", "-rf", partial], check=True)
    partial.mkdir(mode=0o700, parents=True)
    unpack = ["tar", "--extract", f"--directory={partial}"]
    if not pipe(["zstd", "--quiet", "--decompress", "--stdout", folder.file(chosen)], unpack):
        raise Failed(folder.tell_damaged(chosen))
    sync(partial)
    if DISK.is_dir():
        try:
            DISK.rmdir()
        except OSError:  # it has folders
            DISK.rename(DISK.with_name(f"{DISK.name}.before-restore.{name_of(time.time())}"))
    partial.rename(DISK)
    sync(DISK)
    say(f"restored {chosen}. Jobs submitted after that time are unknown to it, and those of them that run are ended")


def main() -> int:
    end_at_once(143)
    os.umask(0o077)
    try:
        restore(Folder("state", STATE, say))
    except Failed as error:
        say(str(error))
        return 1
    except (subprocess.CalledProcessError, OSError) as error:
        say(f"FAILED: {error}")
        return 1
    return 0


if __name__ == "__main__":
    take_stderr("state-restore")
    sys.exit(main())
