"""Finds changes in a root since its manifest: packages, accounts, and files that no changed package explains. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from .accounts import Added, added_accounts
from .picture import Entry, Picture, differences
from .rules import is_made


class Changes(NamedTuple):
    """All changes of one root."""

    installed: Mapping[str, str]
    """Package to version."""
    removed: Mapping[str, str]
    upgraded: Mapping[str, tuple[str, str]]
    """Package to its versions before and now. Downgrades are included."""
    unfinished: Mapping[str, str]
    """Half-installed packages, to their dpkg state."""
    accounts: Added
    added: Mapping[bytes, Entry]
    changed: Mapping[bytes, tuple[str, ...]]
    """Path to what differs: type, content, target, mode, owner."""
    gone: Mapping[bytes, Entry]
    """Removed paths, with their old entries."""

    @property
    def packages(self) -> frozenset[str]:
        """Every package that was changed."""
        return frozenset([*self.installed, *self.removed, *self.upgraded, *self.unfinished])


def compare(base: Picture, now: Picture) -> Changes:
    """The changes from `base`, the manifest, to `now`."""
    before, after = base.packages, now.packages
    unfinished = {name: state for name, state in now.unfinished.items() if base.unfinished.get(name) != state}
    installed = {name: version for name, version in after.items() if name not in before}
    removed = {name: version for name, version in before.items() if name not in after and name not in unfinished}
    upgraded = {name: (before[name], version) for name, version in after.items() if before.get(name, version) != version}
    touched = {*installed, *removed, *upgraded, *unfinished}
    added: dict[bytes, Entry] = {}
    changed: dict[bytes, tuple[str, ...]] = {}
    for path, entry in now.entries.items():
        was = base.entries.get(path)
        if entry.package in touched or (was and was.package in touched) or is_made(path):
            continue
        if was is None:
            added[path] = entry
        elif difference := differences(was, entry):
            changed[path] = difference
    missing = (item for item in base.entries.items() if item[0] not in now.entries and not is_made(item[0]))
    gone = {path: entry for path, entry in missing if entry.package not in touched}
    return Changes(installed, removed, upgraded, unfinished, added_accounts(base, now), added, changed, gone)
