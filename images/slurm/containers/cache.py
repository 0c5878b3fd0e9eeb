"""The user's folder of images on this node. Root's part (images/slurm/root/container_evict.c) keeps all users' folders within their bound.

images/ID/{rootfs,env,workdir,size,used}: an image. images/ID.lock: exclusive during pull and removal. images/ID.part: unfinished.
tags/: the last image of each tag. jobs/JOB/: containers, each with its image's id; root removes the folder when the job ends.
"""

import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

from .refusals import Refused

MIB = 1 << 20
ANSWER_S = 600
"""Time for slurmstepd to remove images of hundreds of thousands of files."""


class Cache:
    """The user's folder on this node. The only part that acts, with the functions named run."""

    def __init__(self, base: Path, node: str, room: socket.socket | None) -> None:
        self.base, self.node, self.room = base, node, room
        self.images = base / "images"
        self.tags = base / "tags"
        for folder in (self.images, self.tags):
            folder.mkdir(mode=0o700, exist_ok=True)

    def say(self, text: str) -> None:
        """A line in the job's stderr."""
        print(f"slipway: {self.node}: {text}", file=sys.stderr, flush=True)

    def lock(self, image: str, image_name: str, waits: bool = True) -> int | None:
        """The image's lock, to pull or remove it; None where another has it, and `waits` is off."""
        file = os.open(self.images / f"{image}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not waits:
                os.close(file)
                return None
            self.say(f"another job of yours is pulling {image_name} on this node: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def has(self, image: str) -> bool:
        """True where the image is there, whole."""
        return (self.images / image / "rootfs").is_dir()

    def sweep(self) -> None:
        """Removes what pulls left that were killed."""
        for part in self.images.glob("*.part"):
            if (file := self.lock(part.stem, "", waits=False)) is not None:
                run_removal(part)
                os.close(file)

    def make_room(self, image_name: str, needed_mib: int) -> None:
        """Reserves this much until `give_back`. Images of any user that no step uses may be removed for it. Raises Refused."""
        free = run_free(self.base)
        answer = self._ask(needed_mib) or (f"disk {free}" if free < needed_mib else "room")
        if why := explain_answer(answer, image_name, needed_mib):
            raise why

    def give_back(self) -> None:
        """The image counts from now on, or there is none."""
        self._ask(0)

    def _ask(self, needed_mib: int) -> str:
        if self.room is None:
            return ""
        try:
            self.room.settimeout(ANSWER_S)
            self.room.send(str(needed_mib).encode())
            return self.room.recv(64).decode(errors="replace")
        except TimeoutError:
            self.room = None  # a late answer is that to no further question
            raise Refused("this node has not removed images to make room within ten minutes: try again") from None
        except OSError:
            return ""


def explain_answer(answer: str, image_name: str, needed_mib: int) -> Refused | None:
    """Why there is no room (images/slurm/root/container_room.h has the answers); None where there is."""
    match answer.split():
        case ["cache", used, bound]:
            where = f"cache of images is full: {used} of {bound} MiB are used by running jobs, of all users (slurm.containers.cacheMiB)"
        case ["disk", free]:
            where = f"disk for containers has {free} MiB free"
        case _:
            return None
    return Refused(f"{image_name} needs about {needed_mib} MiB, and this node's {where}")


def run_removal(folder: Path) -> None:
    """Removes a tree, including folders closed to their owner. Neither program follows links."""
    if not folder.is_symlink() and not folder.exists():
        return
    if subprocess.run(["/bin/rm", "-rf", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
        subprocess.run(["/bin/chmod", "-R", "u+rwX", str(folder)], capture_output=True, check=False)
        subprocess.run(["/bin/rm", "-rf", str(folder)], capture_output=True, check=False)


def run_free(folder: Path) -> int:
    """MiB that are free on the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize // MIB
