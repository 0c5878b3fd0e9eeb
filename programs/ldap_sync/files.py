"""The folder that every pod mounts: passwd, group, shadow and keys/, and the last answer of LDAP.

Pods mount the folder and keys/ themselves, so both stay and each file is replaced in one step. A killed run can be resumed at any point.
Keys are removed first and added last.
"""

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slurm.people import is_name

from .accounts import Accounts, Merged

KEYS = "keys"
_STATE = "accepted.json"
_WORK = ".work"
_ORDER = ("group", "shadow", "passwd")
"""A user in passwd is in the other files, too: a user without a line in shadow is refused."""


@dataclass
class Folder:
    """The folder as it was last written. It is read once, as nobody else writes there."""

    path: Path
    before_step: Callable[[str], None] = lambda _: None
    """Called with a description before each change on the disk."""
    _known: dict[str, str] = field(default_factory=dict[str, str])

    def open(self) -> None:
        """Reads the folder, and removes drafts of a killed writer. Raises OSError."""
        for name in (KEYS, _WORK):
            (self.path / name).mkdir(mode=0o755 if name == KEYS else 0o700, exist_ok=True)
        for left in (self.path / _WORK).iterdir():
            left.unlink(missing_ok=True)
        files = [self.path / name for name in (*_ORDER, _STATE)]
        keys = [self.path / KEYS / name for name in os.listdir(self.path / KEYS)]  # noqa: PTH208 - names
        self._known = {self._name(file): text for file in (*files, *keys) if (text := _text(file)) is not None}

    def accepted(self) -> Accounts | None:
        """The last answer of LDAP; None if it never answered or the file is damaged."""
        try:
            return Accounts.from_json(self._known[_STATE])
        except (KeyError, ValueError):
            return None

    def has_users(self) -> bool:
        """True when files were written before."""
        return "passwd" in self._known

    def write(self, merged: Merged, accepted: Accounts) -> int:
        """Writes the files; returns the number of changed files. Raises OSError; then some files are replaced, each completely."""
        wanted = {f"{KEYS}/{name}": text for name, text in merged.keys.items() if is_name(name)}
        # Removing needs no space, so it works on a full disk.
        changes = sum(self._remove(name) for name in [*self._known] if name.startswith(f"{KEYS}/") and name not in wanted)
        self._sync(changes)
        # Before the other files, so that removed users stay removed if LDAP is away at the next start.
        self._sync(self._replace(_STATE, accepted.to_json()))
        narrowed = {name: text for name, text in wanted.items() if name in self._known}
        changes += sum(self._replace(name, text) for name, text in narrowed.items())
        changes += sum(self._replace(name, merged.files[name]) for name in _ORDER)
        changes += sum(self._replace(name, text) for name, text in wanted.items() if name not in narrowed)
        self._sync(changes)
        return changes

    def _sync(self, changes: int) -> None:
        """Syncs the folders' own entries if something changed. Each file is synced before it gets its name."""
        for folder in (self.path / KEYS, self.path) if changes else ():
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _name(self, file: Path) -> str:
        return str(file.relative_to(self.path))

    def _remove(self, name: str) -> int:
        self.before_step(f"remove {name}")
        (self.path / name).unlink(missing_ok=True)
        del self._known[name]
        return 1

    def _replace(self, name: str, text: str) -> int:
        if self._known.get(name) == text:
            return 0
        target = self.path / name
        self.before_step(f"write {name}")
        # A unique name: if two writers run for a moment (a lost machine that comes back), neither renames the other's draft.
        descriptor, draft = tempfile.mkstemp(dir=self.path / _WORK)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), 0o600 if name == _STATE else 0o644)
                os.fsync(file.fileno())
            self.before_step(f"rename {name}")
            Path(draft).replace(target)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise
        self._known[name] = text
        return 1


def read_folder(folder: Path) -> Mapping[str, str]:
    """File name to text of a mounted ConfigMap. Raises OSError."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir()) if not file.name.startswith(".")}


def _text(file: Path) -> str | None:
    """None if there is no file. A damaged file has other text, so it is replaced."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
