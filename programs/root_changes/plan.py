"""Decides which changes of one root get into another that was filled from a newer image. Pure.

A change of the new image is never overwritten, and nothing is removed. A change that does not fit is reported as a conflict.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .accounts import Merged, merge_accounts, names_of
from .compare import Changes
from .picture import Entry, Picture, differences, shown


class Plan(NamedTuple):
    """What to copy, and what not."""

    paths: tuple[bytes, ...]
    """Paths to copy, folders before their contents."""
    packages: tuple[str, ...]
    """Packages whose dpkg record is copied."""
    accounts: Merged
    conflicts: tuple[tuple[str, str], ...]
    """What keeps the new image's state, and why."""
    not_removed: tuple[str, ...]
    """What was removed in the old root and exists in the new root."""


class _Roots(NamedTuple):
    """The old root as filled (`base`) and as it is (`now`), the new root as filled, and names by number in both roots."""

    base: Picture
    now: Picture
    new: Picture
    users: tuple[dict[int, str], dict[int, str]]
    groups: tuple[dict[int, str], dict[int, str]]


def plan_carry(base: Picture, now: Picture, changes: Changes, new: Picture) -> Plan:
    """Plans the copy. `changes` are those from `base` to `now`."""
    accounts = merge_accounts(changes.accounts, new)
    roots = _Roots(*(base, now, new), (names_of(now.passwd), names_of(accounts.passwd)), (names_of(now.group), names_of(accounts.group)))
    conflicts: list[tuple[str, str]] = [*accounts.conflicts]
    paths: set[bytes] = set()
    packages: list[str] = []
    not_removed = [f"package {name}" for name in changes.removed if name in new.packages]
    for name in (*changes.installed, *changes.upgraded):
        files = [path for path, entry in now.entries.items() if entry.package == name]
        if why := _why_not_package(roots, changes, name, files):
            conflicts.append((f"package {name} {now.packages[name]}", why))
        elif new.packages.get(name) != now.packages[name]:
            packages.append(name)
            paths.update(path for path in files if _is_missing(roots, path))
            not_removed += [shown(path) for path, entry in new.entries.items() if entry.package == name and path not in now.entries]
    conflicts += [(f"package {name}", f"it is {state}") for name, state in changes.unfinished.items()]
    for path in (*changes.added, *changes.changed):
        if why := _why_not(roots, path):
            conflicts.append((shown(path), why))
        elif _is_missing(roots, path):
            paths.add(path)
    not_removed += [shown(path) for path in changes.gone if path in new.entries]
    paths |= {parent for path in paths for parent in _parents(path) if parent not in new.entries}
    return Plan(tuple(sorted(paths)), tuple(sorted(packages)), accounts, tuple(sorted(conflicts)), tuple(sorted(not_removed)))


def _why_not_package(roots: _Roots, changes: Changes, name: str, files: Iterable[bytes]) -> str:
    """Why a package cannot be carried; empty if it can, or if this version is installed already."""
    here, wanted = roots.new.packages.get(name), roots.now.packages[name]
    if here == wanted:
        return ""
    if name in roots.new.unfinished:
        return f"it is {roots.new.unfinished[name]} here"
    if name in changes.installed and here is not None:
        return f"version {here} is here"
    if name in changes.upgraded and here is None:
        return "the new image does not have this package"
    if name in changes.upgraded and here != changes.upgraded[name][0]:
        return f"version {here} is here; the old image had {changes.upgraded[name][0]}"
    return next((f"{shown(path)}: {why}" for path in files if (why := _why_not(roots, path))), "")


def _why_not(roots: _Roots, path: bytes) -> str:
    """Why a path cannot be carried; empty if it can, or if it is there already."""
    entry, was, here = roots.now.entries[path], roots.base.entries.get(path), roots.new.entries.get(path)
    if entry.kind not in "fdl":
        return "only files, folders and links are carried"
    if here is not None and (_are_folders(entry, here) if was is None else not differences(entry, here)):
        return ""
    for parent in _parents(path):
        if (above := roots.new.entries.get(parent)) and above.kind != "d":
            return f"{shown(parent)} is no folder here"
        above = roots.now.entries.get(parent)
        if above is None or above.kind != "d":
            return f"{shown(parent)} was changed while it was looked at"
        if parent not in roots.new.entries and (why := _stranger(roots, above)):
            return f"{shown(parent)}: {why}"
    if here is None and was is not None:
        return "the new image no longer has it"
    if here is not None and was is None:
        return "" if not differences(entry, here) else "the new image has one of its own"
    if here is not None and was is not None:
        if differences(was, here):
            return "the new image changed it too"
        if "d" in (entry.kind, here.kind) and entry.kind != here.kind:
            return "one is a folder and the other is not"
    return _stranger(roots, entry)


def _stranger(roots: _Roots, entry: Entry) -> str:
    """Why an entry's owner is not the same in both roots; empty if it is."""
    for kind, number, (old, new) in (("user", entry.uid, roots.users), ("group", entry.gid, roots.groups)):
        if number and old.get(number) != new.get(number):  # 0 is always root
            return f"its {kind} {number} is {old.get(number, 'nobody')} in the old root and {new.get(number, 'nobody')} here"
    return ""


def _is_missing(roots: _Roots, path: bytes) -> bool:
    """True if the new root lacks what the old root has at a path. A folder that both added is not missing."""
    entry, here = roots.now.entries[path], roots.new.entries.get(path)
    if here is None:
        return True
    if path not in roots.base.entries and _are_folders(entry, here):
        return False
    return bool(differences(entry, here))


def _are_folders(entry: Entry, other: Entry) -> bool:
    return entry.kind == other.kind == "d"


def _parents(path: bytes) -> Iterator[bytes]:
    """The folders above a path, the topmost first."""
    parts = path.split(b"/")
    return (b"/".join(parts[:end]) for end in range(1, len(parts)))
