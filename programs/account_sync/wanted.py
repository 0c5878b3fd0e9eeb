"""From the file that the config rendered to what is wanted now: the members of unix groups are looked up here, by the functions given.

A group that cannot be found is not an empty one: a directory that does not answer looks the same, so nobody leaves its account then.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from .fields import ASSOCIATION, QOS, plain
from .plan import MARK, ROOT, Account, Association, Member, Qos, State

_USER = re.compile(r"[a-z_][a-z0-9_.-]*\$?")


def read_wanted(
    spec: Mapping[str, Any], members_of: Callable[[str], Collection[str] | None], directory: Callable[[], Collection[str]]
) -> tuple[State, list[str]]:
    """What is wanted, and lines about what could not be looked up. `members_of` gives None for a group that it cannot find; `directory`
    all people, for a config that says they are not all in it.

    Raises KeyError, TypeError, ValueError for a file that configs/render/accounts.py did not write.
    """
    notes: list[str] = []
    unknown: set[str] = set()
    accounts: dict[str, Account] = {}
    members: dict[Member, Association] = {}
    for name, said in spec["accounts"].items():
        accounts[name] = _account(said)
        users = list(said.get("users", ()))
        for group in said.get("groups", ()):
            found = members_of(group)
            if found is None:
                unknown.add(name)
                notes.append(f"group {group} of account {name} cannot be found; nobody leaves the account until it can")
            users += sorted(found or ())
        for user in dict.fromkeys(users):
            if _USER.fullmatch(user) is None:
                notes.append(f"user {user!r} of account {name} is left out: Slurm keeps user names in lower case")
            elif user != ROOT:
                members[name, user] = Association(plain(ASSOCIATION, said.get("perUser", {}).get(user, {})))
    defaults = dict(spec.get("defaults", {}))
    if not unknown:
        defaults = {**{user: account for account, user in reversed(members)}, **defaults}
    if default := spec.get("defaultAccount"):
        accounts.setdefault(default, Account())
        people = [*spec.get("people", ()), *(sorted(directory()) if spec.get("directory") else ())]
        if unknown or spec.get("directory"):
            unknown.add(default)
        placed = {user for _, user in members}
        # While a group is unknown, who seems to be in no account may be in that one.
        for user in people if unknown <= {default} else ():
            if user not in placed and _USER.fullmatch(user) and user != ROOT:
                members[default, user] = Association()
                defaults.setdefault(user, default)
    for daemon in spec.get("daemons", ()):
        members[ROOT, daemon] = Association()
        defaults[daemon] = ROOT
    qos = {name: _qos(said) for name, said in spec["qos"].items()}
    return State(accounts, members, qos, defaults, unknown=frozenset(unknown)), notes


def _account(said: Mapping[str, Any]) -> Account:
    return Account(
        said.get("parent", ROOT), said.get("description", ""), said.get("organization", ""), plain(ASSOCIATION, said.get("settings", {}))
    )


def _qos(said: Mapping[str, Any]) -> Qos:
    text = said.get("description", "")
    return Qos(f"{MARK}: {text}" if text else MARK, plain(QOS, said.get("settings", {})))
