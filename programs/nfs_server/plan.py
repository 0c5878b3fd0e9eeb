"""Which folders and homes the NFS server still has to make. Pure: a folder or a home that is there stays as it is."""

from collections.abc import Collection, Iterable

from slurm.records import record

from .settings import Folder


@record
class Home:
    """A user's home that is missing."""

    name: str
    uid: int
    gid: int


def missing_folders(declared: Iterable[Folder], present: Collection[str]) -> list[Folder]:
    """Declared folders without one on the disk."""
    return [folder for folder in declared if folder.name not in present]


def missing_homes(passwd: str, present: Collection[str]) -> list[Home]:
    """Users of a passwd file without a home. A line without a user and two numbers does not count."""
    homes: list[Home] = []
    for line in passwd.splitlines():
        name, _, uid, gid, *_ = [*line.split(":"), "", "", "", ""]
        if name and name not in present and uid.isdecimal() and gid.isdecimal():
            homes.append(Home(name, int(uid), int(gid)))
    return homes
