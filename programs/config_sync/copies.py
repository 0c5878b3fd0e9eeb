"""The copies of Slurm's files on slurmctld's claim, and the links to the copy that slurmctld runs with. Thin: it decides nothing."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from names import paths

from . import slurm
from .slurm import SlurmError

CLAIM = Path(paths.SLURMCTLD)
ACCEPTED = CLAIM / "conf"
"""A link to the copy, made by programs/slurmctld and swapped in one step."""
BEFORE = CLAIM / "conf.before"
"""A link to the previous copy, until slurmctld accepts the copy that `conf` names. While it is there, slurmctld starts with that one."""
BAD = CLAIM / "conf.bad"
"""The hash of files over which slurmds ended, and the name of the copy to run with instead."""


def take_over(version: Path, instead: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Has slurmctld read a copy of the files, with the texts of `instead` in place of some. If it refuses, the old copy is used again.
    Returns the old copy, which stays until `remove_other_copies`. Raises OSError, Refused, SlurmError.

    The link BEFORE is on the disk before the link `conf` names the copy. So if this program or slurmctld is killed in between, slurmctld
    starts with the old files. It may refuse the new ones, at each start.
    """
    old = str(ACCEPTED.readlink())
    copy = Path(tempfile.mkdtemp(prefix=f"{ACCEPTED.name}.", dir=CLAIM))
    try:
        copy.chmod(0o755)
        for file in sorted(version.iterdir()):
            if not file.name.startswith("..") and file.name not in instead:
                _flush(Path(shutil.copy(file, copy)))
        for name, text in instead.items():
            (copy / name).write_text(text)
            (copy / name).chmod(0o444)
            _flush(copy / name)
        _flush(copy)
        point(BEFORE, old)
        _flush(CLAIM)
        point(ACCEPTED, copy.name)
        slurm.reconfigure()
        BEFORE.unlink()  # not there any more: slurmctld has started in the meantime, with the files before
    except (OSError, SlurmError):
        go_back()
        if str(ACCEPTED.readlink()) == copy.name:  # slurmctld has gone back just before the copy was named
            point(ACCEPTED, old)
        shutil.rmtree(copy, ignore_errors=True)
        raise
    remove_other_copies(copy.name, old)
    return CLAIM / old


def remove_other_copies(*kept_names: str) -> None:
    """Removes the copies that are no longer needed."""
    for folder in CLAIM.glob(f"{ACCEPTED.name}.*"):
        if folder.is_dir() and not folder.is_symlink() and folder.name not in kept_names:
            shutil.rmtree(folder, ignore_errors=True)


def find_good(files: str) -> Path | None:
    """The copy to run with instead of files over which slurmds ended; None for all other files."""
    try:
        bad, _, good = BAD.read_text().strip().partition(" ")
    except OSError:
        return None
    return CLAIM / good if bad == files and good and (CLAIM / good).is_dir() else None


def note_bad(files: str, good: Path) -> None:
    """Notes on the claim, for later runs, that slurmds ended over these files. Raises OSError."""
    new_file = BAD.with_name(f"{BAD.name}.new")
    new_file.write_text(f"{files} {good.name}\n")
    _flush(new_file)
    new_file.replace(BAD)


def go_back() -> None:
    """Names the old copy again, in one step, unless slurmctld has taken the new one or has gone back itself. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        BEFORE.replace(ACCEPTED)


def point(link: Path, folder: str) -> None:
    """Points a link at a folder, in one step."""
    new_link = ACCEPTED.with_name(f"{ACCEPTED.name}.link")
    new_link.unlink(missing_ok=True)
    new_link.symlink_to(folder)
    new_link.replace(link)


def _flush(path: Path) -> None:
    """Flushes a file, or the entries of a folder, to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
