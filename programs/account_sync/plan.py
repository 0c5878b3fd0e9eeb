"""Decides which commands bring Slurm's accounts, users and QOS to what the config wants. Pure.

Our mark in Slurm (an association's comment, the start of a QOS's description) tells our entries from those of others, which stay. An entry
that leaves the config is closed for new jobs first. A later reading that shows it closed and without jobs removes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .fields import ASSOCIATION, QOS, Settings, changes

MARK = "slipway"
ROOT = "root"
NORMAL = "normal"
_BATCH = 500
"""Names in one command."""
_MOST_SHOWN = 5


@dataclass(frozen=True)
class Account:
    """One account. sacctmgr lower-cases its texts, and those of a QOS."""

    parent: str = ROOT
    description: str = ""
    organization: str = ""
    settings: Settings = field(default_factory=dict[str, str])
    is_ours: bool = True


@dataclass(frozen=True)
class Association:
    """One user in one account."""

    settings: Settings = field(default_factory=dict[str, str])
    is_ours: bool = True


@dataclass(frozen=True)
class Qos:
    """One QOS."""

    description: str = MARK
    settings: Settings = field(default_factory=dict[str, str])

    @property
    def is_ours(self) -> bool:
        return self.description == MARK or self.description.startswith(f"{MARK}: ")


Member = tuple[str, str]
"""Account and user."""


@dataclass(frozen=True)
class State:
    """Accounts, associations and QOS by name, as the config wants them or as Slurm has them."""

    accounts: Mapping[str, Account]
    members: Mapping[Member, Association]
    qos: Mapping[str, Qos]
    defaults: Mapping[str, str]
    """User to default account."""
    foreign: frozenset[str] = frozenset()
    """In Slurm: accounts with associations that we never make, such as one of a partition or of another cluster."""
    is_registered: bool = True
    """In Slurm: False until slurmctld has registered with slurmdbd. Before that, no account can be added."""
    unknown: frozenset[str] = frozenset()
    """Wanted: accounts whose users are not all known. No user is removed from these."""


@dataclass(frozen=True)
class Usage:
    """What is in use, from a fresh reading of slurmctld."""

    members: frozenset[Member]
    """Account and user of running and waiting jobs."""
    qos: frozenset[str]
    """QOS of running and waiting jobs, and of partitions."""
    of_strangers: frozenset[str] = frozenset()
    """Accounts of jobs whose user has no name any more, such as a user who left the directory. It can be any user of the account."""

    def has(self, account: str, user: str) -> bool:
        """True when a job of the user may use the account."""
        return (account, user) in self.members or account in self.of_strangers


@dataclass(frozen=True)
class Change:
    """One command, for names that get the same options."""

    verb: str
    """`add`, `modify` or `delete`."""
    kind: str
    """`qos`, `account` or `user`; a user together with `account` is an association."""
    names: tuple[str, ...]
    account: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        inside = f" in {self.account}" if self.account else ""
        options = "".join(f" {option}={value}" for option, value in self.options)
        return f"{self.verb} {self.kind} {some(self.names)}{inside}{options}"


@dataclass(frozen=True)
class Plan:
    """What to do now, in order, and what has to wait."""

    changes: tuple[Change, ...]
    waiting: tuple[str, ...]
    """A line for each removal that has to wait."""
    is_busy: bool = False
    """True when a closed entry is removed as soon as it is known to be unused."""
    is_early: bool = False
    """True while slurmctld has not registered with slurmdbd."""


def plan_accounts(wanted: State, present: State, usage: Usage | None) -> Plan:
    """The commands of one round. Without `usage` (slurmctld was not asked, or is silent) everything counts as in use.

    A round may leave work for the next one: the work is done when a plan has no changes.
    """
    wanted = _with_kept(wanted, present)
    commands = _make_qos(wanted, present)
    if not present.is_registered:
        return Plan(tuple(commands), ("slurmctld has not made itself known to slurmdbd yet",), is_early=True)
    commands += [*_make_accounts(wanted, present), *_make_members(wanted, present)]
    members = _go_members(wanted, present, usage)
    accounts = _go_accounts(wanted, present)
    qos = _go_qos(wanted, present, usage)
    leaving = {(change.account, name) for change in members.changes if change.verb == "delete" for name in change.names}
    commands += _set_defaults(wanted, present, leaving)
    removals = (members, accounts, qos)
    return Plan(
        (*commands, *(change for removal in removals for change in removal.changes)),
        tuple(line for removal in removals for line in removal.waiting),
        any(removal.is_busy for removal in removals),
    )


def some(names: Sequence[str]) -> str:
    """The first few names and the number of the others."""
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return f"{', '.join(names[:_MOST_SHOWN])}{more}"


def _with_kept(wanted: State, present: State) -> State:
    """Adds users who may still be in their account, and the QOS `normal`, which is never removed."""
    unsure = {
        member: association
        for member, association in present.members.items()
        if association.is_ours and member[0] in wanted.unknown and member not in wanted.members
    }
    normal = present.qos.get(NORMAL)
    released = {NORMAL: Qos("Normal QOS default")} if normal and normal.is_ours and NORMAL not in wanted.qos else {}
    return replace(wanted, members={**wanted.members, **unsure}, qos={**wanted.qos, **released})


def _make_qos(wanted: State, present: State) -> list[Change]:
    """Adds new QOS without Preempt first, as they may preempt each other."""
    new = [
        (name, (("Description", qos.description), *changes(QOS, _without(qos.settings, "Preempt"), {})))
        for name, qos in wanted.qos.items()
        if name not in present.qos
    ]
    changed: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for name, qos in wanted.qos.items():
        if name in present.qos:
            old = present.qos[name]
            marked = () if old.description.lower() == qos.description.lower() else (("Description", qos.description),)
            changed.append((name, (*marked, *changes(QOS, qos.settings, old.settings))))
    return [*_batches("add", "qos", new), *_batches("modify", "qos", changed)]


def _make_accounts(wanted: State, present: State) -> list[Change]:
    """Parents before children: an account is only added or moved below a parent that is in place."""
    commands: list[Change] = []
    by_depth: dict[int, list[str]] = {}
    for name in wanted.accounts:
        by_depth.setdefault(_depth(wanted, name), []).append(name)
    for depth in sorted(by_depth):
        new = [(name, _account_options(name, wanted.accounts[name], None)) for name in by_depth[depth] if name not in present.accounts]
        old = [
            (name, _account_options(name, wanted.accounts[name], present.accounts[name]))
            for name in by_depth[depth]
            if name in present.accounts
        ]
        commands += [*_batches("add", "account", new), *_batches("modify", "account", old)]
    return commands


def _account_options(name: str, wanted: Account, present: Account | None) -> tuple[tuple[str, str], ...]:
    """The options that differ. By default Slurm uses the account's name as its description, and the parent's name as its organization."""
    own_name, own_parent = name, name if wanted.parent == ROOT else wanted.parent
    old = present or Account("", own_name, own_parent, {}, is_ours=False)
    pairs = (
        ("Parent", wanted.parent, old.parent),
        ("Description", (wanted.description or own_name).lower(), old.description.lower()),
        ("Organization", (wanted.organization or own_parent).lower(), old.organization.lower()),
    )
    marked = () if old.is_ours else (("Comment", MARK),)
    return (
        *((option, new) for option, new, before in pairs if new != before),
        *marked,
        *changes(ASSOCIATION, wanted.settings, old.settings),
    )


def _make_members(wanted: State, present: State) -> list[Change]:
    commands: list[Change] = []
    accounts: dict[str, list[str]] = {account: [] for account in wanted.accounts}
    for account, user in wanted.members:
        accounts.setdefault(account, []).append(user)
    for account, users in accounts.items():
        new = [
            (user, (("Comment", MARK), *changes(ASSOCIATION, wanted.members[account, user].settings, {})))
            for user in users
            if (account, user) not in present.members
        ]
        changed: list[tuple[str, tuple[tuple[str, str], ...]]] = []
        for user in users:
            if old := present.members.get((account, user)):
                marked = () if old.is_ours else (("Comment", MARK),)
                changed.append((user, (*marked, *changes(ASSOCIATION, wanted.members[account, user].settings, old.settings))))
        commands += [*_batches("add", "user", new, account), *_batches("modify", "user", changed, account)]
    return commands


def _set_defaults(wanted: State, present: State, leaving: set[Member]) -> list[Change]:
    """Sets users' default accounts. A user who leaves the default gets another first: Slurm removes no default association.

    A new user's default is the first account until the next round.
    """
    having: dict[str, set[str]] = {}
    for account, user in {*present.members, *wanted.members} - leaving:
        having.setdefault(user, set()).add(account)
    chosen: dict[str, list[str]] = {}
    for user, old in present.defaults.items():
        new = wanted.defaults.get(user, old)
        if (new, user) in leaving and user in having:
            new = min(having[user], key=lambda account: ((account, user) not in wanted.members, account))
        if new != old and new in having.get(user, ()):
            chosen.setdefault(new, []).append(user)
    return [
        change
        for account, users in sorted(chosen.items())
        for change in _batches("modify", "user", [(user, (("DefaultAccount", account),)) for user in sorted(users)])
    ]


def _go_members(wanted: State, present: State, usage: Usage | None) -> Plan:
    """Removes our users from accounts where the config no longer lists them."""
    closing: dict[str, list[str]] = {}
    removing: dict[str, list[str]] = {}
    busy: dict[str, list[str]] = {}
    for (account, user), association in sorted(present.members.items()):
        if association.is_ours and (account, user) not in wanted.members:
            if association.settings.get("MaxSubmitJobs") != "0":
                closing.setdefault(account, []).append(user)
            elif usage is None or usage.has(account, user):
                busy.setdefault(account, []).append(user)
            else:
                removing.setdefault(account, []).append(user)
    closed = [
        change
        for account, users in closing.items()
        for change in _batches("modify", "user", [(user, (("MaxSubmitJobs", "0"),)) for user in users], account)
    ]
    removed = [
        change for account, users in removing.items() for change in _batches("delete", "user", [(user, ()) for user in users], account)
    ]
    why = "slurmctld does not say that they have no job" if usage is None else "they have jobs, which run on; no new ones start"
    waiting = [f"{some(users)} in account {account}: not removed yet, {why}" for account, users in busy.items()]
    return Plan((*closed, *removed), tuple(waiting), bool(busy))


def _go_accounts(wanted: State, present: State) -> Plan:
    """Removes our accounts once they are empty: Slurm would remove everything below them, too."""
    going = {name for name, old in present.accounts.items() if old.is_ours and name not in wanted.accounts and name != ROOT}
    inside: dict[str, set[str]] = {name: set() for name in going}
    foreign: dict[str, set[str]] = {name: set() for name in going}
    for (account, user), association in present.members.items():
        if account in going:
            (inside if association.is_ours else foreign)[account].add(f"user {user}")
    for name, child in present.accounts.items():
        if child.parent in going:
            (inside if child.is_ours else foreign)[child.parent].add(f"account {name}")
    for name in going & present.foreign:
        foreign[name].add("associations of a partition or of another cluster")
    empty = [(name, ()) for name in sorted(going) if not inside[name] and not foreign[name]]
    waiting = [f"account {name}: stays, others have put into it: {some(sorted(foreign[name]))}" for name in sorted(going) if foreign[name]]
    return Plan(tuple(_batches("delete", "account", empty)), tuple(waiting))


def _go_qos(wanted: State, present: State, usage: Usage | None) -> Plan:
    """Removes our QOS once no association, job or partition uses them."""
    closing: list[str] = []
    removing: list[str] = []
    waiting: list[str] = []
    is_busy = False
    used = _used_qos(present)
    for name, qos in sorted(present.qos.items()):
        if not qos.is_ours or name in wanted.qos or name == NORMAL:
            continue
        if users := used.get(name):
            waiting.append(f"QOS {name}: stays, it is used by {some(sorted(users))}")
        elif qos.settings.get("GrpSubmitJobs") != "0":
            closing.append(name)
        elif usage is None or name in usage.qos:
            is_busy = True
            why = "slurmctld does not say that no job has it" if usage is None else "jobs or partitions have it; no new jobs start"
            waiting.append(f"QOS {name}: not removed yet, {why}")
        else:
            removing.append(name)
    closed = _batches("modify", "qos", [(name, (("GrpSubmitJobs", "0"),)) for name in closing])
    return Plan((*closed, *_batches("delete", "qos", [(name, ()) for name in removing])), tuple(waiting), is_busy)


def _used_qos(present: State) -> dict[str, set[str]]:
    """QOS to its users. Our own entries drop it in this round, so the next round can remove it."""
    used: dict[str, set[str]] = {}
    named: Iterable[tuple[str, Settings]] = [
        *((f"account {name}", account.settings) for name, account in present.accounts.items()),
        *((f"user {user} in {account}", association.settings) for (account, user), association in present.members.items()),
        *((f"QOS {name}", {"QosLevel": qos.settings.get("Preempt", "")}) for name, qos in present.qos.items()),
    ]
    for who, settings in named:
        for name in {*settings.get("QosLevel", "").split(","), settings.get("DefaultQOS", "")} - {""}:
            used.setdefault(name, set()).add(who)
    return used


def _depth(state: State, name: str) -> int:
    depth = 0
    while name in state.accounts:
        name, depth = state.accounts[name].parent, depth + 1
    return depth


def _without(settings: Settings, option: str) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key != option}


def _batches(verb: str, kind: str, wanted: Iterable[tuple[str, tuple[tuple[str, str], ...]]], account: str = "") -> list[Change]:
    """One command for all names with the same options; none for a name without changes."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, options in wanted:
        if options or verb == "delete":
            groups.setdefault(options, []).append(name)
    return [
        Change(verb, kind, tuple(names[at : at + _BATCH]), account, options)
        for options, names in groups.items()
        for at in range(0, len(names), _BATCH)
    ]
