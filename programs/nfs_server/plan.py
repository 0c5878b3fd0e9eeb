"""Which folders and homes the NFS server still has to make. Pure: a folder or a home that is there stays as it is."""

from collections.abc import Collection

from slurm.records import record


@record
class Folder:
    """An exported folder that is missing."""

    name: str
    mode: int
    """Its permission bits."""


@record
class Home:
    """A user's home that is missing."""

    name: str
    uid: int
    gid: int


def missing_folders(declared: str, present: Collection[str]) -> list[Folder]:
    """Declared folders without one on the disk. `declared` has them as `name:mode`, the mode in octal, with blanks between."""
    folders = [each.rpartition(":") for each in declared.split()]
    return [Folder(name, int(mode, 8)) for name, _, mode in folders if name not in present]


def missing_homes(passwd: str, present: Collection[str]) -> list[Home]:
    """Users of a passwd file without a home. A line without a user and two numbers is no user."""
    homes: list[Home] = []
    for line in passwd.splitlines():
        name, _, uid, gid, *_ = [*line.split(":"), "", "", "", ""]
        if name and name not in present and uid.isdecimal() and gid.isdecimal():
            homes.append(Home(name, int(uid), int(gid)))
    return homes
