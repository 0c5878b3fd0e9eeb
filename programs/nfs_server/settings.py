"""The folders that the NFS server exports, as its variable SLIPWAY_FOLDERS has them; components/nfs_server.py writes it."""

from collections.abc import Iterable

from slurm.records import record


@record
class Folder:
    """An exported folder, which the server makes where it is missing."""

    name: str
    """Its name on the disk, and its path for clients."""
    mode: int
    """Its permission bits when it is made."""


def to_text(folders: Iterable[Folder]) -> str:
    """The variable's value: `name:mode` for each folder, the mode in octal, with blanks between."""
    return " ".join(f"{folder.name}:{folder.mode:04o}" for folder in folders)


def from_text(text: str) -> list[Folder]:
    """Reads what `to_text` wrote."""
    parts = [item.rpartition(":") for item in text.split()]
    return [Folder(name, int(mode, 8)) for name, _, mode in parts]
