"""Calls Slurm's commands: sacctmgr for what slurmdbd has, squeue and scontrol for what is in use. Thin: it decides nothing."""

from slurm.commands import SlurmError, call

from .fields import ASSOCIATION, QOS, read
from .plan import MARK, Account, Association, Change, Member, Qos, State, Usage

_CALL_S = 60
_ASSOCIATION_COLUMNS = ("cluster", "account", "user", "partition", "parentname", *(field.column for field in ASSOCIATION), "comment")
_QOS_COLUMNS = ("name", *(field.column for field in QOS), "description")


class Refused(Exception):
    """Slurm refused this change. The text is Slurm's own."""


class Slurm:
    """One cluster. Run it as SlurmUser: others may not change accounts."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster

    def present(self) -> State:
        """All accounts, associations and QOS. Limits inherited from parents are left out."""
        texts = {row[0]: row[1:] for row in _show("account", ("account", "organization", "description"))}
        rows = _show("association", _ASSOCIATION_COLUMNS, "WOPLimits")
        accounts: dict[str, Account] = {}
        members: dict[Member, Association] = {}
        foreign: set[str] = set()
        for cluster, account, user, partition, parent, *columns, comment in rows:
            settings = read(ASSOCIATION, columns)
            if cluster != self.cluster or partition:
                foreign.add(account)
            elif user:
                members[account, user] = Association(settings, comment == MARK)
            else:
                organization, description = texts.get(account, ("", ""))
                accounts[account] = Account(parent, description, organization, settings, comment == MARK)
        defaults = dict(_show("user", ("user", "defaultaccount")))
        qos = {name: Qos(description, read(QOS, columns)) for name, *columns, description in _show("qos", _QOS_COLUMNS)}
        return State(accounts, members, qos, defaults, frozenset(foreign), is_registered=bool(accounts))

    def usage(self) -> Usage:
        """What jobs and partitions use, from slurmctld."""
        jobs = [line.split("|") for line in _call("squeue", "--all", "--noheader", "--format=%a|%u|%U|%q").splitlines()]
        partitions = _call("scontrol", "--all", "--oneliner", "show", "partitions").splitlines()
        if not partitions:
            raise SlurmError("slurmctld names no partition")
        of_partitions = {word.removeprefix("QoS=") for line in partitions for word in line.split() if word.startswith("QoS=")}
        try:
            return Usage(
                frozenset((account, user) for account, user, _, _ in jobs),
                frozenset(qos for *_, qos in jobs) | of_partitions,
                frozenset(account for account, user, uid, _ in jobs if user == uid),
            )
        except ValueError:
            raise SlurmError("squeue said something else than accounts, users and QOS of jobs") from None

    def apply(self, change: Change) -> None:
        """Makes one change. Raises Refused, or SlurmError if slurmdbd does not answer."""
        try:
            _call(*command(change, self.cluster))
        except SlurmError as error:
            _show("cluster", ("cluster",))
            raise Refused(str(error)) from None


def command(change: Change, cluster: str) -> list[str]:
    """The command of a change. It names no cluster to delete an account, so that sacctmgr removes the account's record, too."""
    names = ",".join(change.names)
    inside = [f"account={change.account}"] if change.account else []
    options = [f"{option}={value}" for option, value in change.options]
    here = [] if change.kind == "qos" else [f"cluster={cluster}"]
    if change.verb == "add":
        return ["sacctmgr", "-i", "add", change.kind, names, *here, *inside, *options]
    if change.verb == "modify":
        return ["sacctmgr", "-i", "modify", change.kind, "where", f"name={names}", *here, *inside, "set", *options]
    return ["sacctmgr", "-i", "delete", change.kind, "where", f"name={names}", *(here if change.account else []), *inside]


def _show(entity: str, columns: tuple[str, ...], *more: str) -> list[list[str]]:
    """Rows of columns. The last column may contain the separator."""
    text = _call("sacctmgr", "-nP", "show", entity, *more, f"format={','.join(columns)}")
    rows = [line.split("|", len(columns) - 1) for line in text.splitlines() if line]
    if any(len(row) != len(columns) for row in rows):
        raise SlurmError(f"sacctmgr show {entity} gave something else than {len(columns)} columns")
    return rows


def _call(*arguments: str) -> str:
    return call(*arguments, timeout_s=_CALL_S)
