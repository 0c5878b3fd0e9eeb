"""Checked users and groups of LDAP, and the files that pods read, which merge them with those of the config.

An account that could break a line of these files raises ValueError.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from names import paths
from slurm.people import MOST_ID, is_name
from slurm.public_keys import key_fault

SHELL = re.compile(r"(/[A-Za-z0-9._@+-]+)+", re.ASCII)
LONGEST_GECOS = 100


def is_gecos(text: str) -> bool:
    """True for a full name that passwd can carry."""
    return len(text) <= LONGEST_GECOS and text.isprintable() and not set(":,") & set(text)


@dataclass(frozen=True)
class User:
    """One user of LDAP."""

    name: str
    uid: int
    gid: int
    gecos: str = ""
    """The person's full name."""
    shell: str = "/bin/bash"
    keys: tuple[str, ...] = ()
    """Public keys, one line each."""

    def __post_init__(self) -> None:
        fits = is_name(self.name) and 0 < self.uid <= MOST_ID and 0 < self.gid <= MOST_ID and is_gecos(self.gecos)
        if not fits or not SHELL.fullmatch(self.shell) or any(key_fault(key) for key in self.keys):
            raise ValueError("not a user that the files can carry")


@dataclass(frozen=True)
class Group:
    """One group of LDAP."""

    name: str
    gid: int
    members: tuple[str, ...] = ()
    """Names of users, of LDAP or of the config."""

    def __post_init__(self) -> None:
        if not is_name(self.name) or not 0 < self.gid <= MOST_ID or not all(is_name(member) for member in self.members):
            raise ValueError("not a group that the files can carry")


@dataclass(frozen=True)
class Accounts:
    """Users and groups of LDAP, by name."""

    users: Mapping[str, User] = field(default_factory=dict[str, User])
    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])

    def to_json(self) -> str:
        """The text that `from_json` reads."""
        parts = {"users": [asdict(user) for user in self.users.values()], "groups": [asdict(group) for group in self.groups.values()]}
        return json.dumps(parts, indent=0) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Accounts":
        """Raises ValueError for any text that `to_json` did not write."""
        try:
            raw = json.loads(text)
            users = [_user(entry) for entry in raw["users"]]
            groups = [Group(entry["name"], entry["gid"], tuple(entry["members"])) for entry in raw["groups"]]
        except (KeyError, TypeError) as error:
            raise ValueError(f"not the accounts that were written: {error}") from None
        return cls({user.name: user for user in users}, {group.name: group for group in groups})


def _user(entry: Any) -> User:
    return User(entry["name"], entry["uid"], entry["gid"], entry["gecos"], entry["shell"], tuple(entry["keys"]))


@dataclass(frozen=True)
class Configured:
    """The users of the config, as components/users.py renders them."""

    passwd: str = ""
    group: str = ""
    shadow: str = ""
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """User name to key lines."""


@dataclass(frozen=True)
class Merged:
    """All files that pods read."""

    files: Mapping[str, str]
    """`passwd`, `group` and `shadow`: whole files."""
    keys: Mapping[str, str]
    """User name to key lines; no file for a user without keys."""
    remarks: tuple[str, ...]
    """Accounts that were left out, with the reason."""


def merge(configured: Configured, directory: Accounts) -> Merged:
    """The files for users of the config and of LDAP. If a name or number clashes, the config wins."""
    own_users, own_groups = _numbers(configured.passwd), _numbers(configured.group)
    uids, gids = ({number: name for name, number in numbers.items()} for numbers in (own_users, own_groups))
    remarks: list[str] = []
    users: list[User] = []
    for user in directory.users.values():
        if clash := _clash(user.name, own_users, uids.get(user.uid), "user"):
            remarks.append(f"user {user.name}: {clash}")
        else:
            users.append(user)
    groups: list[Group] = []
    for group in directory.groups.values():
        if clash := _clash(group.name, own_groups, gids.get(group.gid), "group"):
            remarks.append(f"group {group.name}: {clash}")
        else:
            groups.append(group)
    names = {*own_users, *(user.name for user in users)}
    groups += _own_groups(users, {*own_groups, *(group.name for group in groups)}, {*own_groups.values(), *(group.gid for group in groups)})
    lines = {
        "passwd": [f"{user.name}:x:{user.uid}:{user.gid}:{user.gecos}:{paths.HOMES}/{user.name}:{user.shell}" for user in users],
        "group": [f"{group.name}:x:{group.gid}:{','.join(name for name in group.members if name in names)}" for group in groups],
        # `*` is neither a password nor a lock: sshd refuses the keys of a locked account ("!").
        "shadow": [f"{user.name}:*:19000:0:99999:7:::" for user in users],
    }
    heads = {"passwd": configured.passwd, "group": configured.group, "shadow": configured.shadow}
    return Merged(
        files={name: heads[name] + "".join(f"{line}\n" for line in sorted(lines[name])) for name in lines},
        keys={**{user.name: "".join(f"{key}\n" for key in user.keys) for user in users if user.keys}, **configured.keys},
        remarks=tuple(remarks),
    )


def _numbers(text: str) -> dict[str, int]:
    """Name to number, from passwd or group."""
    rows = (line.split(":") for line in text.splitlines())
    return {row[0]: int(row[2]) for row in rows}


def _clash(name: str, taken_names: Collection[str], owner: str | None, what: str) -> str:
    if name in taken_names:
        return f"login.{what}s of the config has a {what} of this name, which wins"
    return f"the {what} {owner} of the config has its number" if owner else ""


def _own_groups(users: list[User], names: Collection[str], gids: Collection[int]) -> list[Group]:
    """Groups with the name and number of their user, where none has that number: else `id` and `ls` show a bare number."""
    return [Group(user.name, user.gid) for user in users if user.gid == user.uid and user.gid not in gids and user.name not in names]


def removal_fault(before: Accounts | None, answer: Accounts, most_percent: int) -> str:
    """Why this answer of LDAP cannot be trusted; empty if it can. Too many removals at once are a fault until an admin accepts them. A
    user who lost all keys counts as removed: that is what narrowed rights look like."""
    if most_percent >= 100:
        return ""
    accept = "If that is right, set login.ldap.maxRemovedPercent to 100 until it is done."
    if not answer.users:
        return f"LDAP answered, but with no user that can be taken. Look at userBaseDn, userFilter and the rights of bindDn. {accept}"
    if before is None:
        return ""
    gone = [name for name, user in before.users.items() if name not in answer.users or (user.keys and not answer.users[name].keys)]
    lost = [name for name in before.groups if name not in answer.groups]
    # Only of groups and users that still exist. Members vanish when rights were narrowed, or users got other names.
    held = {
        (name, member)
        for name, group in before.groups.items()
        for member in group.members
        if name in answer.groups and member in answer.users
    }
    left = {pair for pair in held if pair[1] not in answer.groups[pair[0]].members}
    for what, count, of in (
        ("users", len(gone), len(before.users)),
        ("groups", len(lost), len(before.groups)),
        ("memberships of groups", len(left), len(held)),
    ):
        if of > _FEW and count * 100 > of * most_percent:
            return (
                f"{count} of {of} {what} are gone from LDAP, or have lost all their keys, at once: more than {most_percent} percent, so "
                f"none is removed. {accept}"
            )
    return ""


_FEW = 10
"""Of so few, any number may go, except the last."""


def as_plain(value: Any) -> str:
    """Untrusted text for a log: one line, quoted, only ASCII, at most 80 characters."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return json.dumps(text if len(text) <= 80 else f"{text[:77]}...").replace("\x7f", "\\u007f")
