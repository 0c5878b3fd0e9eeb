"""Users and groups that were added to a root, and which of them fit into another root. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from .picture import Picture


class Added(NamedTuple):
    """Accounts that only one of two roots has: lines of /etc/passwd and /etc/group by name, and new members of groups."""

    users: Mapping[str, str]
    groups: Mapping[str, str]
    members: frozenset[tuple[str, str]]
    """Group and user."""

    def __bool__(self) -> bool:
        return bool(self.users or self.groups or self.members)


class Merged(NamedTuple):
    """/etc/passwd and /etc/group of a root with the added accounts."""

    passwd: str
    group: str
    users: tuple[str, ...]
    groups: tuple[str, ...]
    conflicts: tuple[tuple[str, str], ...]
    """What does not fit, and why."""


def added_accounts(base: Picture, now: Picture) -> Added:
    """The accounts in `now` that `base` does not have."""
    users = {name: line for name, line in _lines(now.passwd).items() if name not in _lines(base.passwd)}
    groups = {name: line for name, line in _lines(now.group).items() if name not in _lines(base.group)}
    return Added(users, groups, frozenset(_members(now.group) - _members(base.group)))


def merge_accounts(added: Added, new: Picture) -> Merged:
    """The new root's files with the added accounts whose name and number are free."""
    conflicts: list[tuple[str, str]] = []
    groups = _fitting("group", added.groups, new.group, conflicts)
    users = _fitting("user", added.users, new.passwd, conflicts)
    passwd = _appended(new.passwd, [added.users[name] for name in users])
    group = _appended(new.group, [added.groups[name].rpartition(":")[0] + ":" for name in groups])
    known = set(_lines(passwd))
    lines = group.split("\n")
    for name, member in sorted(added.members):
        at = next((at for at, line in enumerate(lines) if line.split(":")[0] == name), None)
        if at is None or member not in known:
            conflicts.append((f"member {member} of group {name}", "one of the two is not there"))
        elif member not in lines[at].rpartition(":")[2].split(","):
            lines[at] += member if lines[at].endswith(":") else f",{member}"
    return Merged(passwd, "\n".join(lines), tuple(users), tuple(groups), tuple(conflicts))


def names_of(text: str) -> dict[int, str]:
    """Number to name, from the text of /etc/passwd or /etc/group."""
    return {int(line.split(":")[2]): name for name, line in reversed(_lines(text).items())}


def with_lines_of(new: str, old: str, names: tuple[str, ...]) -> str:
    """The text of /etc/shadow or gshadow with the old root's lines for these accounts."""
    old_lines, known = _lines(old, fields=2), _lines(new, fields=2)
    return _appended(new, [old_lines[name] for name in names if name in old_lines and name not in known])


def _fitting(kind: str, added: Mapping[str, str], text: str, conflicts: list[tuple[str, str]]) -> list[str]:
    """Names in `added` whose name and number are free. An existing name with the same number is not a conflict."""
    lines, numbers = _lines(text), names_of(text)
    fitting: list[str] = []
    for name, line in sorted(added.items()):
        number = int(line.split(":")[2])
        if name in lines:
            if int(lines[name].split(":")[2]) != number:
                conflicts.append((f"{kind} {name}", f"has the number {lines[name].split(':')[2]} here, not {number}"))
        elif number in numbers:
            conflicts.append((f"{kind} {name}", f"its number {number} is {numbers[number]}'s here"))
        else:
            numbers[number] = name
            fitting.append(name)
    return fitting


def _lines(text: str, fields: int = 4) -> dict[str, str]:
    """Lines of accounts, by name."""
    by_name: dict[str, str] = {}
    for line in text.split("\n"):
        parts = line.split(":")
        if len(parts) >= fields and parts[0] and parts[0][0] not in "+-#" and (fields < 4 or parts[2].isdecimal()):
            by_name.setdefault(parts[0], line)
    return by_name


def _members(text: str) -> set[tuple[str, str]]:
    return {(name, member) for name, line in _lines(text).items() for member in line.rpartition(":")[2].split(",") if member}


def _appended(text: str, lines: list[str]) -> str:
    ended = text if not text or text.endswith("\n") else f"{text}\n"
    return ended + "".join(f"{line}\n" for line in lines)
