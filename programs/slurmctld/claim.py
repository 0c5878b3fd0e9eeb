"""The claim of slurmctld beside its state: the accepted copy of the files, behind the link `conf`, and notes about the last start. Thin.

programs/config_sync swaps the link, too, and removes copies that nothing names. Killed between any two steps here, the next start finds a
whole copy, or none. Raises OSError.
"""

import shutil
from pathlib import Path

from .plan import Found

NAMES = ("conf.start", "conf.again")
"""A start writes its copy of the files under these names in turn, so that it never writes into the copy in use."""


class Claim:
    """What there is beside slurmctld's state."""

    def __init__(self, folder: Path, offered: Path) -> None:
        """`offered` is the folder with the ConfigMap's files."""
        self._folder = folder
        self._offered = offered
        self.accepted = folder / "conf"
        """A link to the copy, swapped in one step."""
        self._before = folder / "conf.before"

    def find(self) -> Found:
        """What there is of the copy."""
        try:
            (self.accepted / "slurm.conf").read_bytes()
        except FileNotFoundError:
            return Found.MISSING
        except OSError:
            return Found.UNREADABLE
        return Found.READABLE

    def has_before(self) -> bool:
        """True while slurmctld has not taken the copy that `conf` names."""
        return self._before.is_symlink()

    def go_back(self) -> tuple[str, str]:
        """Names the copy before again; gives the names of the copy that slurmctld had not taken, and of that one."""
        names = _target(self.accepted), _target(self._before)
        self._before.replace(self.accepted)
        return names

    def accept(self) -> None:
        """Takes the files of the ConfigMap, as they are now."""
        self._before.unlink(missing_ok=True)
        copy = self._folder / next(name for name in NAMES if name != _target(self.accepted))
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir(mode=0o755)
        for file in sorted(self._offered.iterdir()):
            if not file.name.startswith("."):
                shutil.copy(file, copy)
        link = self._folder / "conf.link"
        link.unlink(missing_ok=True)
        link.symlink_to(copy.name)
        link.replace(self.accepted)

    def note(self, name: str, text: str) -> None:
        """Leaves a note for the next start, in one step."""
        draft = self._folder / f"conf.{name}.new"
        draft.write_text(f"{text}\n")
        draft.replace(self.note_path(name))

    def noted(self, name: str) -> str:
        """The note of an earlier start; empty where there is none."""
        try:
            return self.note_path(name).read_text(errors="replace").strip()
        except FileNotFoundError:
            return ""

    def note_path(self, name: str) -> Path:
        """Where the note is."""
        return self._folder / f"conf.{name}"


def _target(link: Path) -> str:
    return str(link.readlink()) if link.is_symlink() else ""
