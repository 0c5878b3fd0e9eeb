"""Turns LDAP entries into accounts: judges each entry alone, then all together. Pure.

A bad entry is left out and reported. It never affects another entry.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from slurm.people import LONGEST_NAME, MOST_ID, RESERVED, TAKEN, is_name
from slurm.public_keys import key_fault

from .accounts import LONGEST_GECOS, SHELL, Accounts, Group, User, as_plain, is_gecos

USERS_GID = 100
"""Debian's group `users`, which many directories give to everybody."""
_SHELL = "/bin/bash"


@dataclass(frozen=True)
class Entry:
    """One entry as LDAP gave it."""

    dn: str
    """Its name in one spelling (see `directory.plain_dn`)."""
    attributes: Mapping[str, Sequence[bytes]]
    """Values by attribute; names are in lower case."""


@dataclass(frozen=True)
class Rules:
    """Which names, numbers and shells people may have."""

    min_uid: int = 1000
    min_gid: int = 1000
    key_attribute: str = "sshpublickey"
    """In lower case."""
    taken_names: Collection[str] = RESERVED
    """Users and groups of the system."""
    taken_uids: Collection[int] = TAKEN
    taken_gids: Collection[int] = TAKEN
    has_shell: Callable[[str], bool] = field(default=lambda _: True)


@dataclass(frozen=True)
class Found:
    """The accounts, and what to report of entries that were left out."""

    accounts: Accounts
    remarks: tuple[str, ...]


class _LeftOut(Exception):
    """Why an entry is left out."""


def read_accounts(users: Iterable[Entry], groups: Iterable[Entry], rules: Rules, before: Accounts | None = None) -> Found:
    """The accounts in two lists of entries. If entries share a name or number, the one that had it `before` keeps it; if none had it, all
    are left out."""
    remarks: list[str] = []
    read_users: list[tuple[Entry, User]] = []
    for entry in users:
        try:
            read_users.append((entry, _user(entry, rules, remarks)))
        except _LeftOut as left_out:
            remarks.append(f"user {as_plain(entry.dn)} is left out: {left_out}")
    old = before or Accounts()
    distinct_users = _without_rivals(
        read_users, lambda user: user.name, lambda user: user.uid, _pairs(old.users.values(), "uid"), "user", remarks
    )
    by_dn = {entry.dn: user.name for entry, user in distinct_users}
    groups = list(groups)
    people = _members(groups, by_dn)
    read_groups: list[tuple[Entry, Group]] = []
    for entry in groups:
        try:
            read_groups.append((entry, _group(entry, rules, people.get(entry.dn, set()))))
        except _LeftOut as left_out:
            remarks.append(f"group {as_plain(entry.dn)} is left out: {left_out}")
    distinct_groups = _without_rivals(
        read_groups, lambda group: group.name, lambda group: group.gid, _pairs(old.groups.values(), "gid"), "group", remarks
    )
    accounts = Accounts(
        {user.name: user for _, user in sorted(distinct_users, key=lambda pair: pair[1].name)},
        {group.name: group for _, group in sorted(distinct_groups, key=lambda pair: pair[1].name)},
    )
    return Found(accounts, tuple(sorted(remarks)))


def _user(entry: Entry, rules: Rules, remarks: list[str]) -> User:
    name = _name(entry, "uid", rules)
    uid = _number(entry, "uidnumber", rules.min_uid, rules.taken_uids, "minUid")
    gid = _number(entry, "gidnumber", rules.min_gid, rules.taken_gids, "minGid")
    shell = _first(entry, "loginshell") or _SHELL
    if not SHELL.fullmatch(shell) or {".", ".."} & set(shell.split("/")) or not rules.has_shell(shell):
        remarks.append(f"user {name}: the shell {as_plain(shell)} is not in the image, so it is {_SHELL}")
        shell = _SHELL
    return User(name, uid, gid, _gecos(entry), shell, _keys(name, entry, rules.key_attribute, remarks))


def _group(entry: Entry, rules: Rules, members: Collection[str]) -> Group:
    gid = _number(entry, "gidnumber", rules.min_gid, rules.taken_gids, "minGid")
    if gid == USERS_GID:
        raise _LeftOut(f"the gid {USERS_GID} is the group users of the system")
    return Group(_name(entry, "cn", rules), gid, tuple(sorted(members)))


def _name(entry: Entry, attribute: str, rules: Rules) -> str:
    values = _texts(entry, attribute)
    # An attribute has no order: of several names, the one in the DN counts.
    called = [value for value in values if entry.dn.lower().startswith((f"{attribute}={value.lower()},", f"{attribute}={value.lower()}+"))]
    if len(values) > 1 and len(called) == 1:
        values = called
    if not values:
        raise _LeftOut(f"it has no {attribute}")
    if len(values) > 1:
        raise _LeftOut(f"it has {len(values)} values of {attribute}, and none of them is in its DN")
    name = values[0]
    if not is_name(name):
        raise _LeftOut(
            f"{as_plain(name)} is not a valid name here: lower-case letters, digits, dashes, underscores and single dots, first a letter, "
            f"at most {LONGEST_NAME}"
        )
    if name in rules.taken_names:
        raise _LeftOut(f"{name} is a name of the system")
    return name


def _number(entry: Entry, attribute: str, least: int, taken: Collection[int], key: str) -> int:
    values = _texts(entry, attribute)
    if len(values) != 1 or not values[0].isascii() or not values[0].isdecimal() or len(values[0]) > len(str(MOST_ID)):
        raise _LeftOut(f"{attribute} is not one number, but {as_plain(', '.join(values))}")
    number = int(values[0])
    if number == USERS_GID and attribute == "gidnumber":
        return number
    if number < least:
        raise _LeftOut(f"{attribute} {number} is below {least} (login.ldap.{key})")
    if number > MOST_ID or number in taken:
        raise _LeftOut(f"{attribute} {number} is the system's")
    return number


def _gecos(entry: Entry) -> str:
    """The full name, without what passwd cannot carry."""
    text = "".join(letter if letter.isprintable() and letter not in ":," else " " for letter in _first(entry, "cn"))
    text = " ".join(text.split())[:LONGEST_GECOS].strip()
    return text if is_gecos(text) else ""


def _keys(name: str, entry: Entry, attribute: str, remarks: list[str]) -> tuple[str, ...]:
    keys: list[str] = []
    for value in _texts(entry, attribute):
        if "PRIVATE KEY" in value:  # of several lines, of which none is to be shown
            remarks.append(f"user {name}: a key is a private key, which no one else may see; it is left out, and should be replaced")
            continue
        for line in (line.strip() for line in value.splitlines()):
            if not line or line.startswith("#"):
                continue
            if fault := key_fault(line):
                remarks.append(f"user {name}: a key {fault.value}; it is left out: {as_plain(line[:40])}")
            else:
                keys.append(line)
    return tuple(sorted(set(keys)))


def _texts(entry: Entry, attribute: str) -> list[str]:
    """Values as text. Bytes that are not UTF-8 become characters that no name or key has."""
    return [value.decode(errors="replace") for value in entry.attributes.get(attribute, ())]


def _first(entry: Entry, attribute: str) -> str:
    values = sorted(_texts(entry, attribute))
    return values[0] if values else ""


def _members(groups: Sequence[Entry], users: Mapping[str, str]) -> dict[str, set[str]]:
    """Group DN to names of members: memberUid (rfc2307), member and uniqueMember (rfc2307bis), and members of nested groups."""
    names: dict[str, set[str]] = {}
    inside: dict[str, set[str]] = {}
    for group in groups:
        dns = {*_texts(group, "member"), *_texts(group, "uniquemember")}
        names.setdefault(group.dn, set()).update(name for name in _texts(group, "memberuid") if is_name(name))
        names[group.dn] |= {users[dn] for dn in dns if dn in users}
        inside.setdefault(group.dn, set()).update(dns)
    return {dn: {name for group_dn in _below(dn, inside) for name in names[group_dn]} for dn in names}


def _below(dn: str, inside: Mapping[str, set[str]]) -> set[str]:
    """The group and all nested groups. A cycle is harmless."""
    seen: set[str] = set()
    waiting = [dn]
    while waiting:
        group_dn = waiting.pop()
        if group_dn in inside and group_dn not in seen:
            seen.add(group_dn)
            waiting += inside[group_dn]
    return seen


_Account = TypeVar("_Account", User, Group)


def _pairs(accounts: Iterable[_Account], number: str) -> set[tuple[str, int]]:
    return {(account.name, getattr(account, number)) for account in accounts}


def _without_rivals(
    read: Sequence[tuple[Entry, _Account]],
    name: Callable[[_Account], str],
    number: Callable[[_Account], int],
    before: Collection[tuple[str, int]],
    what: str,
    remarks: list[str],
) -> list[tuple[Entry, _Account]]:
    """Leaves out accounts that share a name or number, except the one that had both before, if it is the only one."""
    rivals: dict[str | int, list[int]] = {}
    for at, (_, account) in enumerate(read):
        rivals.setdefault(name(account), []).append(at)
        rivals.setdefault(number(account), []).append(at)
    out: dict[int, str] = {}
    for wanted, several in rivals.items():
        old = [at for at in several if (name(read[at][1]), number(read[at][1])) in before]
        for at in several:
            if len(several) > 1 and old != [at]:
                rival_dns = ", ".join(as_plain(read[rival][0].dn) for rival in several if rival != at)
                out.setdefault(at, f"{wanted} is also that of {rival_dns}")
    remarks += [f"{what} {as_plain(read[at][0].dn)} is left out: {why}" for at, why in out.items()]
    return [pair for at, pair in enumerate(read) if at not in out]
