"""Gets a tar of a root, from an address or the shared volume, checks its digest and unpacks it."""

import subprocess
import time
from pathlib import Path
from typing import NoReturn

from .place import Failed, Place, Refused, begin_digest, changes, delete, digest_of, end_full_or_failed, finish_digest, say, sync
from .plan import Download, Heard, Tries, Unpacked, Wanted, download_command, judge_download, judge_unpacking


def fill(place: Place, wanted: Wanted) -> None:
    """Gets the tar, unpacks it and checks the result. Raises Failed, Refused, OSError."""
    if wanted.file:
        tarball = Path(wanted.file)
        if not tarball.is_file():
            raise Failed(f"{tarball} is not there; put the tar on the shared volume first")
        say(f"reading {tarball}")  # its digest is computed while it is unpacked
    else:
        tarball = place.tarball
        if not tarball.is_file():  # it gets this name once its digest is right
            download(place, wanted)
    say(f"filling version {wanted.version} from {wanted.tar}")
    unpack(place, wanted, tarball)
    syncing = subprocess.Popen(sync(place.partial))  # most of it is on the disk when the check is done
    if code := place.run(changes("filled", wanted.version)):
        delete(place.partial)
        if code == 3:
            place.forget_tar()
            raise Refused
        raise Failed
    if syncing.wait():  # a later sync would not report a failed write
        end_full_or_failed("sync", wanted.version, place.partial)


def download(place: Place, wanted: Wanted) -> None:
    """Downloads the tar, or resumes the download. Raises Failed, Refused, OSError."""
    is_begun = _size(place.download) > 0
    say(f"{'going on to get' if is_begun else 'getting'} {wanted.tar}")
    while True:
        # For a complete download the server answers 416, so the digest is checked first.
        digest = _digest_if_readable(place.download)
        if digest != wanted.sha256:
            fetch(place, wanted)
            digest = digest_of(place.download)
        if digest == wanted.sha256 or not is_begun:
            break
        is_begun = False  # what was begun earlier may be the start of another file
        place.download.unlink()
    check_digest(place, wanted, digest)
    place.download.rename(place.tarball)


def fetch(place: Place, wanted: Wanted) -> None:
    """Downloads until the file is complete. Raises Failed, Refused."""
    tries = Tries()
    while True:
        size = _size(place.download)
        command = download_command(wanted.tar, str(place.download))
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, pass_fds=(place.lock,), check=False)
        match judge_download(done.returncode, done.stdout):
            case Download.DONE:
                return
            case Download.REFUSED:
                place.download.unlink(missing_ok=True)
                raise Refused(f"{wanted.tar} answers {done.stdout}: look at storage.root.versions[].tar.url")
            case Download.FULL:
                end_full_or_failed("curl", wanted.version)
            case Download.ANEW:
                place.download.unlink(missing_ok=True)
            case Download.AGAIN:
                pass
        tries = tries.after(_size(place.download) - size)
        if tries.is_over:
            raise Failed(f"{wanted.tar} did not arrive in {tries.failed} tries; what did is kept for the next")
        time.sleep(tries.pause_s)


def unpack(place: Place, wanted: Wanted, tarball: Path) -> None:
    """Unpacks the tar with GNU tar, which detects the compression. Raises Failed, Refused, OSError."""
    delete(place.partial)  # an incomplete file looks like a complete one
    place.partial.mkdir()
    with tarball.open("rb") as content:
        taking = begin_digest(content) if wanted.file else None  # parallel to tar, so that the file is read from the disk once
    keep = ["--xattrs", "--xattrs-include=*", "--acls", "--numeric-owner", "--preserve-permissions"]
    command = ["tar", "--extract", f"--file={tarball}", *keep, f"--directory={place.partial}"]
    heard = Heard()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", pass_fds=(place.lock,)
    ) as tar:
        for line in tar.stdout or ():
            heard.hear(line.rstrip("\n"))
    for line in heard.first:
        say(line)
    if taking:
        try:
            digest = finish_digest(taking)
        except subprocess.CalledProcessError:
            delete(place.partial)
            raise Failed(f"{tarball} cannot be read; the next try starts over") from None
        check_digest(place, wanted, digest)
    match judge_unpacking(heard, tar.returncode):
        case Unpacked.REFUSED, why:
            _refuse(place, f"{wanted.tar}: {why}")
        case Unpacked.FULL, _:
            end_full_or_failed("tar", wanted.version, place.partial)
        case _:
            pass


def check_digest(place: Place, wanted: Wanted, digest: str) -> None:
    """Raises Refused for a wrong digest."""
    if digest != wanted.sha256:
        _refuse(place, f"{wanted.tar} has the sha256 {digest}, not {wanted.sha256}. Nothing of it is kept")


def _refuse(place: Place, why: str) -> NoReturn:
    delete(place.partial)
    place.forget_tar()
    raise Refused(why)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _digest_if_readable(file: Path) -> str:
    try:
        return digest_of(file) if _size(file) else ""
    except (OSError, subprocess.CalledProcessError):
        return ""
