"""The Job that fills one version of the shared root. The version appears in one step when it is complete. An interrupted run is resumed.

`python3 -m programs.root_fill.run`, as root. SLIPWAY_ROOT_VERSION names the version. Its source is one of:

    SLIPWAY_ROOT_IMAGE                      the image of the pod's idle container `source`
    SLIPWAY_ROOT_TAR, SLIPWAY_ROOT_SHA256   a tar of a root, at an address or on the shared volume, and its digest

Optional: SLIPWAY_ROOT_CARRY_FROM, the version whose changes are carried into this one.

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
    """Fills the version, unless it exists. Raises Failed, Refused, OSError, CalledProcessError."""
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
    """Gives a world-writable volume, as provisioners of local disks make them, to root alone: jobs refuse to enter a version on one.
    If root may not change it, logs what an administrator has to do."""
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
    """Locks the version, and returns the lock's descriptor. Waits for another owner. Raises OSError."""
    file = lock_of(version)
    while True:
        opened = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {file}: another fill of version {version} has it, or root-clean, which looks whether the version can go")
            fcntl.flock(opened, fcntl.LOCK_EX)
        # The last owner may have removed the file while we waited; then another process could lock a new file of that name.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(opened), file.stat()):
                return opened
        os.close(opened)


def take_back(place: Place) -> None:
    """Puts back a version that a killed cleaner had put aside. The stack declares it again, so its days start anew once it no longer
    does."""
    if place.aside.is_dir() and not place.root.exists():
        place.aside.rename(place.root)
    place.record(".unused").unlink(missing_ok=True)


def forget_another(place: Place, wanted: Wanted) -> None:
    """Removes an incomplete version from another source, as rsync only compares sizes and times. The lock names the source."""
    lock = lock_of(wanted.version)
    begun = read(lock).strip()
    if begun == wanted.stands_for:
        return
    if place.partial.is_dir():
        say(f"what was begun of version {wanted.version}, from {begun or 'something unknown'}, is removed")
    delete(place.partial)
    place.tarball.unlink(missing_ok=True)  # it has the other source's digest, and is not checked again
    try:
        lock.write_text(f"{wanted.stands_for}\n")
    except OSError:
        end_full_or_failed(f"writing {lock}", wanted.version)


def furnish(root: Path) -> None:
    """Makes the mount points of a job's root, and what else each version has."""
    for name in ("proc", "sys", "dev", "run", "home"):
        make(root / name, 0o755)
    for name in ("tmp", "var/tmp"):
        make(root / name, 0o1777)
    log = root / "var/log"
    if not log.is_symlink():
        log.mkdir(parents=True, exist_ok=True)
    for name in ("hosts", "resolv.conf"):  # the pod's files are mounted here, and must not follow a link
        file = root / "etc" / name
        if file.is_symlink():
            file.unlink()
    settings = root / "etc/apt/apt.conf.d"
    if settings.is_dir():  # two installs at once wait for each other; apt's own default is to fail
        settings.joinpath("90slipway-lock").write_text('DPkg::Lock::Timeout "600";\n')
    root.chmod(0o755)


def make(folder: Path, mode: int) -> None:
    """Makes a folder, or sets the mode of an existing one."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(mode)


def read(file: Path) -> str:
    """The text of a record; empty if it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def lock_of(version: str) -> Path:
    """The lock of a version, which fills and the cleaner take. It contains the fill's source."""
    return SHARED / "filling" / f"{version}.lock"


def size_mib(root: Path) -> str:
    """The size of a version in MiB; "unknown" if `du` fails."""
    command = ["du", "-sm", "--one-file-system", root]
    counted = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    return counted[0] if counted else "unknown"


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def main() -> int:
    # Python as process 1 ignores SIGTERM. Ending at once is safe at any point: the next run resumes.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)
    os.environ["LC_ALL"] = "C"  # the output of programs is parsed
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
