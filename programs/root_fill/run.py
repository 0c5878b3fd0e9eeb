"""The Job that fills one version of the shared root. The version appears in one step, when it is whole. If it is interrupted, the next run
resumes.

`python3 -m programs.root_fill.run`, as root. SLIPWAY_ROOT_VERSION says which version. From what, either of:
  SLIPWAY_ROOT_IMAGE                    the image of the pod's container `source`, which does nothing but be there
  SLIPWAY_ROOT_TAR, SLIPWAY_ROOT_SHA256 a tar of a root, at an address or on the shared volume, and its digest
SLIPWAY_ROOT_CARRY_FROM, where given, is the version whose changes get into this one; programs/root_changes/plan.py has the rules.

Exit code 1: this try failed. 3: the next cannot help either.
"""

import contextlib
import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from slurm.pump import take_stderr

from . import image, tarball
from .place import SHARED, Failed, Place, Refused, changes, delete, end_full_or_failed, say, sync
from .plan import Wanted, judge_filled, read_carried, read_wanted


def fill(wanted: Wanted) -> None:
    """Fills the version, unless it is there. Raises Failed, Refused, OSError, CalledProcessError."""
    close_to_others(SHARED)
    for name, mode in (("jobs", 0o755), ("sources", 0o755), ("versions", 0o700), ("filling", 0o700)):
        make(SHARED / name, mode)
    place = Place(wanted.version, take_lock(wanted.version))
    take_back(place)
    if place.root.is_dir():
        if why := judge_filled(wanted, read(place.record()).strip(), read_carried(read(place.record(".carried")))):
            raise Refused(why)
        place.forget_tar()
        lock_of(wanted.version).unlink(missing_ok=True)
        say(f"version {wanted.version} is there already")
        return
    forget_another(place, wanted)
    began = time.monotonic()
    (tarball if wanted.tar else image).fill(place, wanted)
    furnish(place.partial)
    carried, old = place.record(".carried.new"), place.record(".carried")
    carried.unlink(missing_ok=True)
    if wanted.carry_from and (code := place.run(changes("carry", wanted.version, wanted.carry_from))):
        raise Refused if code == 3 else Failed
    if place.run(sync(place.partial)):
        end_full_or_failed("sync", wanted.version)
    place.record(".new").write_text(f"{wanted.stands_for}\n")
    place.record(".new").rename(place.record())
    place.record(".manifest.new").rename(place.record(".manifest"))
    if wanted.carry_from:
        carried.rename(old)
    else:
        old.unlink(missing_ok=True)
    place.partial.rename(place.root)
    place.forget_tar()
    lock_of(wanted.version).unlink(missing_ok=True)
    say(f"version {wanted.version} is filled: {size_mib(place.root)} MiB in {int(time.monotonic() - began)} s")


def close_to_others(volume: Path) -> None:
    """Makes a volume that everybody may write to root's alone, as provisioners of local disks give them out: jobs refuse to enter a version
    on one. Where the server of the volume does not let root do that, it says so and leaves it to its administrators."""
    if not volume.stat().st_mode & stat.S_IWOTH:
        return
    try:
        os.chown(volume, 0, 0)
        volume.chmod(0o755)
    except OSError as error:
        why = f"the shared volume is writable for everybody, and root may not change that ({error.strerror})"
        say(f"{why}: jobs are refused until you chmod 755 it")
    else:
        say("the shared volume was writable for everybody: it is root's now, with mode 755")


def take_lock(version: str) -> int:
    """The open file of the version's lock, locked; waits for whoever has it. Raises OSError."""
    file = lock_of(version)
    while True:
        opened = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {file}: another fill of version {version} has it, or root-clean, which looks whether the version can go")
            fcntl.flock(opened, fcntl.LOCK_EX)
        # Its last owner may have removed it while it was waited for; another could make and have a lock of the name then.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(opened), file.stat()):
                return opened
        os.close(opened)


def take_back(place: Place) -> None:
    """Puts back a version that the cleaner had put out of reach, and was killed before it knew whether it can go. The stack
    declares it again: once it no longer does, the version stays for its days from then on."""
    if place.aside.is_dir() and not place.root.exists():
        place.aside.rename(place.root)
    place.record(".unused").unlink(missing_ok=True)


def forget_another(place: Place, wanted: Wanted) -> None:
    """Removes what a fill had begun of something else, perhaps of a tar whose digest nobody had seen yet: rsync goes by size and time. The
    lock says what it was begun from."""
    lock = lock_of(wanted.version)
    begun = read(lock).strip()
    if begun == wanted.stands_for:
        return
    if place.partial.is_dir():
        say(f"what was begun of version {wanted.version}, from {begun or 'something unknown'}, is removed")
    delete(place.partial)
    place.tarball.unlink(missing_ok=True)  # its digest is that of what was begun; it is not looked at again
    try:
        lock.write_text(f"{wanted.stands_for}\n")
    except OSError:
        end_full_or_failed(f"writing {lock}", wanted.version)


def furnish(root: Path) -> None:
    """Makes the folders that a job's root has mounts on, and what else each version has."""
    for name in ("proc", "sys", "dev", "run", "home"):
        make(root / name, 0o755)
    for name in ("tmp", "var/tmp"):
        make(root / name, 0o1777)
    log = root / "var/log"
    if not log.is_symlink():
        log.mkdir(parents=True, exist_ok=True)
    for name in ("hosts", "resolv.conf"):  # these come from the pod, and no link may be in their way
        file = root / "etc" / name
        if file.is_symlink():
            file.unlink()
    settings = root / "etc/apt/apt.conf.d"
    if settings.is_dir():  # two installs at once wait for each other; apt's own default is to fail
        settings.joinpath("90slipway-lock").write_text('DPkg::Lock::Timeout "600";\n')
    root.chmod(0o755)


def make(folder: Path, mode: int) -> None:
    """Makes a folder, and gives it its mode if it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(mode)


def read(file: Path) -> str:
    """The text of a record; empty where it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def lock_of(version: str) -> Path:
    """The lock of a version, which a fill and the cleaner take. It holds what the fill was begun from."""
    return SHARED / "filling" / f"{version}.lock"


def size_mib(root: Path) -> str:
    """How much room a version takes; "unknown" where `du` does not say."""
    command = ["du", "-sm", "--one-file-system", root]
    counted = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    return counted[0] if counted else "unknown"


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def main() -> int:
    # Python as process 1 would not end on SIGTERM. Ending at once is safe at any point: the next run goes on.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)
    os.environ["LC_ALL"] = "C"  # the words of programs are read
    wanted = read_wanted(os.environ)
    try:
        fill(wanted)
    except (Refused, Failed) as error:
        if str(error):
            say(str(error))
        return 3 if isinstance(error, Refused) else 1
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        say(f"the shared volume is full. Version {wanted.version} is not there" if full else f"FAILED: {error}")
        return 1
    except subprocess.CalledProcessError as error:
        say(f"FAILED: {error}")
        return 1
    return 0


if __name__ == "__main__":
    take_stderr("root-fill")
    sys.exit(main())
