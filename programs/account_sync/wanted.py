"""Turns the rendered file into the wanted state, and looks up the members of unix groups.

A missing group does not count as empty, as it looks the same as a directory that does not answer: nobody leaves its account.
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
    """The wanted state, and a line for each failed lookup. `members_of` returns None for a group that it cannot find, `directory` all
    people, for a config that does not list them all.

    Raises KeyError, TypeError, ValueError for a file that configs/render/accounts.py did not write.
    """
    notes: list[str] = []
    unknown: set[str] = set()
    accounts: dict[str, Account] = {}
    members: dict[Member, Association] = {}
    for name, account_spec in spec["accounts"].items():
        accounts[name] = _account(account_spec)
        users = list(account_spec.get("users", ()))
        for group in account_spec.get("groups", ()):
            group_members = members_of(group)
            if group_members is None:
                unknown.add(name)
                notes.append(f"group {group} of account {name} cannot be found; nobody leaves the account until it can")
            users += sorted(group_members or ())
        for user in dict.fromkeys(users):
            if _USER.fullmatch(user) is None:
                notes.append(f"user {user!r} of account {name} is left out: Slurm keeps user names in lower case")
            elif user != ROOT:
                members[name, user] = Association(plain(ASSOCIATION, account_spec.get("perUser", {}).get(user, {})))
    defaults = dict(spec.get("defaults", {}))
    if not unknown:
        defaults = {**{user: account for account, user in reversed(members)}, **defaults}
    if default := spec.get("defaultAccount"):
        accounts.setdefault(default, Account())
        people = [*spec.get("people", ()), *(sorted(directory()) if spec.get("directory") else ())]
        if unknown or spec.get("directory"):
            unknown.add(default)
        placed = {user for _, user in members}
        # While a group is unknown, a user without an account may belong to that group's account.
        for user in people if unknown <= {default} else ():
            if user not in placed and _USER.fullmatch(user) and user != ROOT:
                members[default, user] = Association()
                defaults.setdefault(user, default)
    for daemon in spec.get("daemons", ()):
        members[ROOT, daemon] = Association()
        defaults[daemon] = ROOT
    qos = {name: _qos(qos_spec) for name, qos_spec in spec["qos"].items()}
    return State(accounts, members, qos, defaults, unknown=frozenset(unknown)), notes


def _account(spec: Mapping[str, Any]) -> Account:
    return Account(
        spec.get("parent", ROOT), spec.get("description", ""), spec.get("organization", ""), plain(ASSOCIATION, spec.get("settings", {}))
    )


def _qos(spec: Mapping[str, Any]) -> Qos:
    text = spec.get("description", "")
    return Qos(f"{MARK}: {text}" if text else MARK, plain(QOS, spec.get("settings", {})))
