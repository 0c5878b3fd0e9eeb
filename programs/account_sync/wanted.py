"""Turns the rendered file into the wanted state, and looks up the members of unix groups.

A missing group does not count as empty, as it looks the same as a directory that does not answer: nobody leaves its account.
"""

import re
from collections.abc import Callable, Collection

from .fields import ASSOCIATION, QOS, plain
from .plan import MARK, ROOT, Account, Association, Member, Qos, State
from .settings import Settings, WantedQos

_USER = re.compile(r"[a-z_][a-z0-9_.-]*\$?")


def read_wanted(
    settings: Settings, members_of: Callable[[str], Collection[str] | None], directory: Callable[[], Collection[str]]
) -> tuple[State, list[str]]:
    """Returns the wanted state and a line for each failed lookup.

    `members_of` returns None for an unknown group. `directory` returns all people; it is called only with `has_directory`. Raises
    ValueError for a setting that sacctmgr does not have.
    """
    notes: list[str] = []
    unknown: set[str] = set()
    accounts: dict[str, Account] = {}
    members: dict[Member, Association] = {}
    for name, account in settings.accounts.items():
        accounts[name] = Account(account.parent, account.description, account.organization, plain(ASSOCIATION, account.settings))
        users = list(account.users)
        for group in account.groups:
            group_members = members_of(group)
            if group_members is None:
                unknown.add(name)
                notes.append(f"group {group} of account {name} cannot be found; nobody leaves the account until it can")
            users += sorted(group_members or ())
        for user in dict.fromkeys(users):
            if _USER.fullmatch(user) is None:
                notes.append(f"user {user!r} of account {name} is left out: Slurm keeps user names in lower case")
            elif user != ROOT:
                members[name, user] = Association(plain(ASSOCIATION, account.per_user.get(user, {})))
    defaults = dict(settings.defaults)
    if not unknown:
        defaults = {**{user: account for account, user in reversed(members)}, **defaults}
    if default := settings.default_account:
        accounts.setdefault(default, Account())
        people = [*settings.people, *(sorted(directory()) if settings.has_directory else ())]
        if unknown or settings.has_directory:
            unknown.add(default)
        placed = {user for _, user in members}
        # While a group is unknown, a user without an account may belong to that group's account.
        for user in people if unknown <= {default} else ():
            if user not in placed and _USER.fullmatch(user) and user != ROOT:
                members[default, user] = Association()
                defaults.setdefault(user, default)
    for daemon in settings.daemons:
        members[ROOT, daemon] = Association()
        defaults[daemon] = ROOT
    qos = {name: _qos(wanted) for name, wanted in settings.qos.items()}
    return State(accounts, members, qos, defaults, unknown=frozenset(unknown)), notes


def _qos(wanted: WantedQos) -> Qos:
    return Qos(f"{MARK}: {wanted.description}" if wanted.description else MARK, plain(QOS, wanted.settings))
