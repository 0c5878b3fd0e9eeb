"""A version's changes as text and as JSON data. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from .compare import Changes
from .picture import Entry, Picture, shown

MOST_LINES = 50
"""Most lines per kind of change. The JSON has all."""


def as_data(changes: Changes, now: Picture) -> dict[str, Any]:
    """All changes, for programs."""
    return {
        "packages": {
            "installed": [{"name": name, "version": version} for name, version in sorted(changes.installed.items())],
            "removed": [{"name": name, "version": version} for name, version in sorted(changes.removed.items())],
            "upgraded": [{"name": name, "from": old, "to": new} for name, (old, new) in sorted(changes.upgraded.items())],
            "unfinished": [{"name": name, "state": state} for name, state in sorted(changes.unfinished.items())],
        },
        "accounts": {
            "users": sorted(changes.accounts.users),
            "groups": sorted(changes.accounts.groups),
            "members": [{"group": group, "user": user} for group, user in sorted(changes.accounts.members)],
        },
        "files": {
            "added": [{"path": shown(path), "type": entry.kind, "bytes": entry.size} for path, entry in sorted(changes.added.items())],
            "changed": [
                {"path": shown(path), "what": list(what), "bytes": now.entries[path].size} for path, what in sorted(changes.changed.items())
            ],
            "removed": [{"path": shown(path), "type": entry.kind, "bytes": entry.size} for path, entry in sorted(changes.gone.items())],
        },
    }


def as_text(changes: Changes, now: Picture) -> list[str]:
    """Lines for people: packages, accounts, then files. A new folder is one line."""
    packages = [
        *(f"+ {name} {version}" for name, version in sorted(changes.installed.items())),
        *(f"^ {name} {old} -> {new}" for name, (old, new) in sorted(changes.upgraded.items())),
        *(f"- {name} {version}" for name, version in sorted(changes.removed.items())),
        *(f"! {name} is {state}" for name, state in sorted(changes.unfinished.items())),
    ]
    accounts = [
        *(f"+ user {name}" for name in sorted(changes.accounts.users)),
        *(f"+ group {name}" for name in sorted(changes.accounts.groups)),
        *(f"+ {user} in group {group}" for group, user in sorted(changes.accounts.members)),
    ]
    changed = [
        f"~ {shown(path)} ({', '.join(what)}; {human(now.entries[path].size)})"
        if now.entries[path].kind == "f"
        else f"~ {shown(path)} ({', '.join(what)})"
        for path, what in sorted(changes.changed.items())
    ]
    parts = [
        (f"packages: {_counts(installed=changes.installed, upgraded=changes.upgraded, removed=changes.removed)}", packages),
        ("accounts:", accounts),
        (f"files of no package added: {_total(changes.added)}", [f"+ {line}" for line in grouped(changes.added)]),
        (f"files changed: {len(changed)}", changed),
        (f"files removed: {_total(changes.gone)}", [f"- {line}" for line in grouped(changes.gone)]),
    ]
    told = [f"  {line}" for title, lines in parts if lines for line in (title, *(f"  {change}" for change in shortened(lines)))]
    return told or ["  nothing was changed"]


def grouped(entries: Mapping[bytes, Entry]) -> list[str]:
    """A line per path. A whole folder is one line, with the number and size of its files."""
    tops: dict[bytes, list[Entry]] = {}
    for path, entry in sorted(entries.items(), key=lambda item: item[0].split(b"/")):
        above = _topmost(path, entries)
        tops.setdefault(above, []).append(entry)
    lines: list[str] = []
    for top, below in tops.items():
        if entries[top].kind == "d":
            files = [entry for entry in below if entry.kind != "d"]
            count = f"{len(files)} file{'' if len(files) == 1 else 's'}" if files else "empty"
            lines.append(f"{shown(top)}/ ({count}{', ' if files else ''}{human(_bytes(files)) if files else ''})")
        elif entries[top].kind == "l":
            lines.append(f"{shown(top)} -> {shown(entries[top].target).removeprefix('/')}")
        else:
            lines.append(f"{shown(top)} ({human(entries[top].size)})")
    return lines


def human(count: int) -> str:
    """A number of bytes in a fitting unit."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def shortened(lines: list[str]) -> list[str]:
    """The first lines and the number of the others."""
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"... and {len(lines) - MOST_LINES} more"]


def _topmost(path: bytes, entries: Mapping[bytes, Entry]) -> bytes:
    """The highest folder that is in `entries` together with all folders down to the path."""
    top = path
    while (above := top.rpartition(b"/")[0]) in entries and entries[above].kind == "d":
        top = above
    return top


def _counts(**kinds: Mapping[str, object]) -> str:
    return ", ".join(f"{len(what)} {word}" for word, what in kinds.items() if what) or "none changed"


def _total(entries: Mapping[bytes, Entry]) -> str:
    files = [entry for entry in entries.values() if entry.kind != "d"]
    return f"{len(files)}, {human(_bytes(files))}"


def _bytes(entries: Iterable[Entry]) -> int:
    return sum(entry.size for entry in entries)
