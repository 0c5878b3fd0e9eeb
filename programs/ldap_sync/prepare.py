"""The init container: as root, makes the program's folder on the shared volume and gives it to the program's user.

`python3 -m programs.ldap_sync.prepare <uid>`. Exits with 1 and one line, the pod's termination message, if users could replace the folder:
whoever writes these files can become any user.
"""

import contextlib
import os
import stat
import sys
from pathlib import Path

from names import paths
from slurm.logs import teller
from slurm.pump import take_stderr

_TOP = Path(paths.SHARED)
_NAME = "identity"


class Refused(Exception):
    """Why the folder cannot be used."""


def top_fault(about: os.stat_result) -> str:
    """What is wrong with the rights of the shared volume's top folder; empty if they are right."""
    if about.st_uid != 0 or about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and about.st_gid != 0):
        return (
            f"the top folder of storage.sharedRoot belongs to uid {about.st_uid} and gid {about.st_gid} with mode "
            f"{stat.S_IMODE(about.st_mode):04o}: users could put a folder of their own in place of `{_NAME}`, and be anyone. It has to be "
            "root's, and writable for nobody else (chown root:root, chmod 0755)."
        )
    return ""


def take(folder: int, name: str, uid: int) -> int:
    """Makes sure that a folder in another exists and `uid` owns it; returns its descriptor. Raises Refused and OSError."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        raise Refused(f"`{name}` on storage.sharedRoot is not a folder ({error.strerror}). Find out who made it, and remove it.") from None
    about = os.fstat(descriptor)
    if about.st_uid not in (0, uid):
        raise Refused(f"the folder `{name}` on storage.sharedRoot belongs to uid {about.st_uid}. Look who made it, and remove it.")
    if (about.st_uid, about.st_gid) != (uid, uid):
        try:
            os.fchown(descriptor, uid, uid)
        except OSError as error:
            raise Refused(
                f"the folder `{name}` on storage.sharedRoot cannot be given to uid {uid} ({error.strerror}): the volume has to keep "
                f"owners. Where root may not (NFS with root_squash), make `{_NAME}` and `{_NAME}/keys` yourself, owned by {uid}:{uid}."
            ) from None
    if stat.S_IMODE(about.st_mode) != 0o755:
        os.fchmod(descriptor, 0o755)
    return descriptor


def main() -> int:
    uid = int(sys.argv[1])
    try:
        top = os.open(_TOP, os.O_RDONLY | os.O_DIRECTORY)
        if fault := top_fault(os.fstat(top)):
            raise Refused(fault)
        take(take(top, _NAME, uid), "keys", uid)
    except (Refused, OSError) as error:
        teller("identity")(f"REFUSED: {error}")
        return 1
    return 0


if __name__ == "__main__":
    take_stderr("identity")
    sys.exit(main())
