"""slurmctld's claim, beside its state: the accepted copy of the files, behind the link `conf`, and notes about the last start. Thin.

programs/config_sync swaps the link, too, and removes unused copies. After an interrupted step, the next start finds a complete copy, or
none. Raises OSError.
"""

import shutil
from pathlib import Path

from .plan import Found

NAMES = ("conf.start", "conf.again")
"""Names for copies, used in turn, so that a start never writes into the copy in use."""


class Claim:
    """The copies and notes beside slurmctld's state."""

    def __init__(self, folder: Path, offered: Path) -> None:
        """`offered` is the folder with the ConfigMap's files."""
        self._folder = folder
        self._offered = offered
        self.accepted = folder / "conf"
        """A link to the copy, swapped in one step."""
        self._before = folder / "conf.before"

    def find(self) -> Found:
        """Whether the accepted copy exists and can be read."""
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
        """Accepts the previous copy again; returns the names of the copy that slurmctld had not taken, and of the previous one."""
        names = _target(self.accepted), _target(self._before)
        self._before.replace(self.accepted)
        return names

    def accept(self) -> None:
        """Copies the ConfigMap's files and accepts the copy."""
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
        """Writes a note for the next start, in one step."""
        draft = self._folder / f"conf.{name}.new"
        draft.write_text(f"{text}\n")
        draft.replace(self.note_path(name))

    def noted(self, name: str) -> str:
        """The note of an earlier start; empty if there is none."""
        try:
            return self.note_path(name).read_text(errors="replace").strip()
        except FileNotFoundError:
            return ""

    def note_path(self, name: str) -> Path:
        """The file of a note."""
        return self._folder / f"conf.{name}"


def _target(link: Path) -> str:
    return str(link.readlink()) if link.is_symlink() else ""
