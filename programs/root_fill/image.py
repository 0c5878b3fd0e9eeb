"""Copies the root of an image, from /proc of an idle container, and compares the copy with it."""

import contextlib
import subprocess
import time

from .place import Failed, Place, Refused, changes, delete, end_full_or_failed, say, sync
from .plan import Wanted, copy_command

_HOLD = "hold"
"""Name of the program that the container runs."""
_TRIES = 300
_PAUSE_S = 0.1


def fill(place: Place, wanted: Wanted) -> None:
    """Copies the root, or resumes a copy. Raises Failed, Refused.

    The copy is complete if files, kinds, sizes, owners and modes are equal. The check reads the image, also for the manifest, while it is
    copied, and the copy while it is synced to the disk.
    """
    process = find_source(wanted.image)
    is_begun = place.partial.is_dir()
    if is_begun:
        say(f"resuming version {wanted.version}, begun earlier")
    else:
        say(f"filling version {wanted.version} from {wanted.image}")
        place.partial.mkdir()
    copy = copy_command(f"/proc/{process}/root", str(place.partial), is_begun)
    check = place.begin(changes("filled", wanted.version, process), stdin=subprocess.PIPE)
    failed = copy[0] if place.run(copy) else ""
    if not failed:
        tell_copied(check)
        failed = "sync" if place.run(sync(place.partial)) else ""
    code = end(check)
    if failed:
        end_full_or_failed(failed, wanted.version)
    if code == 3:
        delete(place.partial)
        raise Refused
    if code == 4:
        delete(place.partial)
        raise Failed("starting over with the next try")
    if code:
        end_full_or_failed("reading it", wanted.version)
    hold = place.partial / _HOLD
    with contextlib.suppress(OSError):  # the mount point of that program, unless the image has files there
        hold.rmdir()
    place.partial.joinpath(".dockerenv").unlink(missing_ok=True)


def find_source(image: str) -> str:
    """The pid of the image's container. Raises Failed."""
    for _ in range(_TRIES):
        process_id = subprocess.run(["pgrep", "-o", "-x", _HOLD], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
        if process_id:
            return process_id
        time.sleep(_PAUSE_S)
    raise Failed(f"the container of {image} does not run")


def tell_copied(check: "subprocess.Popen[bytes]") -> None:
    """Tells the check that the copy is done. If the check has ended already, it has logged why."""
    if check.stdin:
        with contextlib.suppress(BrokenPipeError):
            check.stdin.write(b"copied\n")
            check.stdin.flush()


def end(check: "subprocess.Popen[bytes]") -> int:
    """Ends the check and returns its exit code. At the end of its input it gives up if the copy is not done."""
    if check.stdin:
        with contextlib.suppress(BrokenPipeError):
            check.stdin.close()
    return check.wait()
