"""A Slurm in memory that takes the program's commands as the real one does, refusals included, and can be killed at any of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from programs.account_sync.fields import ASSOCIATION, QOS, Field, plain
from programs.account_sync.plan import MARK, NORMAL, ROOT, Account, Association, Change, Member, Qos, State, Usage
from programs.account_sync.slurm import Refused, Slurm, SlurmError

NOTHING = State(
    {ROOT: Account("", is_ours=False)}, {(ROOT, ROOT): Association({}, is_ours=False)}, {NORMAL: Qos("Normal QOS default")}, {ROOT: ROOT}
)


class Killed(BaseException):
    """The process ended here; like a real kill, no `except Exception` stops it."""


@dataclass
class FakeSlurm(Slurm):
    """Accounts, associations, QOS, and the jobs that use them."""

    state: State
    jobs: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    """Account, user and QOS of running and waiting jobs."""
    cluster: str = "t"
    is_controller_up: bool = True
    is_database_up: bool = True
    kill_at: int = -1
    """Number of the command before which the process is killed; negative: never."""
    log: list[Change] = field(default_factory=list[Change])
    stubborn: frozenset[str] = frozenset()
    """Users whose association Slurm does not remove, whatever squeue says."""

    def present(self) -> State:
        if not self.is_database_up:
            raise SlurmError("Connection refused")
        return self.state

    def usage(self) -> Usage:
        if not self.is_controller_up:
            raise SlurmError("Unable to contact slurm controller")
        return Usage(frozenset((account, user) for account, user, _ in self.jobs), frozenset(qos for _, _, qos in self.jobs))

    def apply(self, change: Change) -> None:
        if not self.is_database_up:
            raise SlurmError("Connection refused")
        if len(self.log) == self.kill_at:
            raise Killed
        self.log.append(change)
        options = dict(change.options)
        match change.kind, change.verb:
            case "qos", "delete":
                self._delete_qos(change.names)
            case "qos", _:
                self._make_qos(change, options)
            case "account", "delete":
                self._delete_accounts(change.names)
            case "account", _:
                self._make_accounts(change, options)
            case _, "delete":
                self._delete_members([(change.account, name) for name in change.names])
            case _:
                self._make_members(change, options)

    def _delete_qos(self, names: tuple[str, ...]) -> None:
        assert not {qos for _, _, qos in self.jobs} & {*names}, "a QOS that jobs have was to be removed"
        self.state = replace(self.state, qos={name: each for name, each in self.state.qos.items() if name not in names})

    def _make_qos(self, change: Change, options: dict[str, str]) -> None:
        qos = dict(self.state.qos)
        for name in change.names:
            if (name in qos) == (change.verb == "add"):
                raise Refused("Nothing new added")
            old = qos.get(name, Qos(name))
            qos[name] = Qos(options.pop("Description", old.description).lower(), _changed(QOS, old.settings, options))
            for preempted in filter(None, options.get("Preempt", "").split(",")):
                if preempted not in qos:
                    raise Refused(f"bad qos {preempted}")
        self.state = replace(self.state, qos=qos)

    def _delete_accounts(self, names: tuple[str, ...]) -> None:
        inside = [member for member in self.state.members if member[0] in names]
        below = [name for name, each in self.state.accounts.items() if each.parent in names and name not in names]
        assert (inside, below) == ([], []), f"Slurm would remove {inside} and {below} with {names}"
        assert ROOT not in names
        self.state = replace(self.state, accounts={name: each for name, each in self.state.accounts.items() if name not in names})

    def _make_accounts(self, change: Change, options: dict[str, str]) -> None:
        accounts = dict(self.state.accounts)
        self._know_qos(options)
        parent = options.pop("Parent", None)
        for name in change.names:
            if (name in accounts) == (change.verb == "add"):
                raise Refused("Nothing new added")
            if parent is not None and (parent not in accounts or name in self._above(parent)):
                raise Refused(f"No parent account {parent}")
            organization = name if parent in (None, ROOT) else str(parent)
            old = accounts.get(name, Account(parent or ROOT, name, organization, {}, is_ours=False))
            rest = {key: value for key, value in options.items() if key not in ("Description", "Organization", "Comment")}
            accounts[name] = Account(
                parent or old.parent,
                options.get("Description", old.description).lower(),
                options.get("Organization", old.organization).lower(),
                _changed(ASSOCIATION, old.settings, rest),
                options.get("Comment", MARK if old.is_ours else "") == MARK,
            )
        self.state = replace(self.state, accounts=accounts)

    def _above(self, name: str) -> list[str]:
        above: list[str] = []
        while name in self.state.accounts and name not in above:
            above.append(name)
            name = self.state.accounts[name].parent
        return above

    def _delete_members(self, members: list[Member]) -> None:
        assert not {(account, user) for account, user, _ in self.jobs} & {*members}, "an association that jobs have was to be removed"
        rest = {member: each for member, each in self.state.members.items() if member not in members}
        defaults = dict(self.state.defaults)
        for account, user in members:
            if user in self.stubborn:
                raise Refused("Job(s) active, cancel job(s) before remove")
            if not any(other == user for _, other in rest):
                defaults.pop(user, None)
            elif defaults.get(user) == account:
                raise Refused("You can not remove the default account of a user")
        self.state = replace(self.state, members=rest, defaults=defaults)

    def _make_members(self, change: Change, options: dict[str, str]) -> None:
        members, defaults = dict(self.state.members), dict(self.state.defaults)
        self._know_qos(options)
        default = options.pop("DefaultAccount", None)
        for user in change.names:
            if default is not None:
                if (default, user) not in members:
                    raise Refused("Can't modify because these users aren't associated with new default account")
                defaults[user] = default
                continue
            member = (change.account, user)
            if change.account not in self.state.accounts or (member in members) == (change.verb == "add"):
                raise Refused("Nothing added")
            old = members.get(member, Association({}, is_ours=False))
            rest = {key: value for key, value in options.items() if key != "Comment"}
            is_ours = options.get("Comment", MARK if old.is_ours else "") == MARK
            members[member] = Association(_changed(ASSOCIATION, old.settings, rest), is_ours)
            defaults.setdefault(user, change.account)
        self.state = replace(self.state, members=members, defaults=defaults)

    def _know_qos(self, options: Mapping[str, str]) -> None:
        named = {*options.get("QosLevel", "").split(","), options.get("DefaultQOS", "")} - {"", "-1"}
        if named - self.state.qos.keys():
            raise Refused(f"You gave a bad qos {named}")


def _changed(fields: tuple[Field, ...], old: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Settings with options laid over them as sacctmgr does: -1 clears, and so does each TRES of -1."""
    merged = dict(old)
    known = {each.option: each for each in fields}
    for option, value in options.items():
        each = known[option]
        if each.kind == "tres":
            pairs = dict(pair.split("=") for pair in f"{merged.get(option, '')},{value}".split(",") if pair)
            merged[option] = ",".join(f"{name}={amount}" for name, amount in pairs.items() if amount != "-1")
        elif value == each.cleared:
            merged.pop(option, None)
        else:
            merged[option] = value
    return plain(fields, merged)
