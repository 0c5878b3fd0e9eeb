"""From the program's file to what is wanted now: the members of unix groups are looked up here, by the functions given.

A group that cannot be found is not an empty one: a directory that does not answer looks the same, so nobody leaves its account then.
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
    """What is wanted, and lines about what could not be looked up. `members_of` gives None for a group that it cannot find; `directory`
    all people, for a config that says they are not all in it. Raises ValueError for settings that are none of sacctmgr's.
    """
    notes: list[str] = []
    unknown: set[str] = set()
    accounts: dict[str, Account] = {}
    members: dict[Member, Association] = {}
    for name, account in settings.accounts.items():
        accounts[name] = Account(account.parent, account.description, account.organization, plain(ASSOCIATION, account.settings))
        users = list(account.users)
        for group in account.groups:
            found = members_of(group)
            if found is None:
                unknown.add(name)
                notes.append(f"group {group} of account {name} cannot be found; nobody leaves the account until it can")
            users += sorted(found or ())
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
        people = [*settings.people, *(sorted(directory()) if settings.directory else ())]
        if unknown or settings.directory:
            unknown.add(default)
        placed = {user for _, user in members}
        # While a group is unknown, who seems to be in no account may be in that one.
        for user in people if unknown <= {default} else ():
            if user not in placed and _USER.fullmatch(user) and user != ROOT:
                members[default, user] = Association()
                defaults.setdefault(user, default)
    for daemon in settings.daemons:
        members[ROOT, daemon] = Association()
        defaults[daemon] = ROOT
    qos = {name: _qos(each) for name, each in settings.qos.items()}
    return State(accounts, members, qos, defaults, unknown=frozenset(unknown)), notes


def _qos(wanted: WantedQos) -> Qos:
    return Qos(f"{MARK}: {wanted.description}" if wanted.description else MARK, plain(QOS, wanted.settings))
