"""Rules of accounts, QOS and limits: every name exists, and Slurm accepts and enforces each setting."""

import re
from collections.abc import Iterable, Iterator

from configs.faults import Fault, did_you_mean, quoted, repeats
from configs.models.accounts import Account, UserInAccount
from configs.models.cluster import Cluster
from configs.models.users import User
from configs.render.accounts import settings_of
from configs.rules.names import Known, Names, check_distinct, check_references, check_unique
from configs.rules.preemption import preempt_type
from configs.rules.stated import stated
from slurm.people import is_name

ROOT = "root"
NORMAL = "normal"
"""Slurm's own account and QOS, which are always there."""
_NO_LIMITS = ("Fairshare", "QosLevel", "DefaultQOS", "Priority", "Preempt", "PreemptMode", "PreemptExemptTime", "GraceTime", "Flags")
_FACTORS = ("UsageFactor", "UsageThreshold", "LimitFactor")
_PATH = "cluster.accounting"


def check_accounts(cluster: Cluster, names: Names, has_directory: bool = False) -> list[Fault]:
    """Faults of accounts and QOS. With `has_directory`, users and groups may be in a directory that is not read here."""
    accounting = cluster.accounting
    faults = check_distinct(f"{_PATH}.enforce", accounting.enforce)
    for key in ("enforce", "accounts", "qos", "default_account"):
        if not accounting.enabled and getattr(accounting, key):
            name = {"default_account": "defaultAccount"}.get(key, key)
            faults.append(Fault(f"{_PATH}.{name}", "needs accounting, which enabled: false leaves out.", (f"{_PATH}.enabled",)))
    if accounting.default_account == ROOT:
        faults.append(Fault(f"{_PATH}.defaultAccount", '"root" is for administrators. Take another name; the account is made.'))
    qos = None if names.qos is None else names.qos | {NORMAL}
    faults += _check_qos(cluster, qos)
    faults += check_unique(f"{_PATH}.accounts", "account", [account.name for account in accounting.accounts])
    faults += _check_parents(accounting.accounts, names.accounts)
    faults += _check_default_for(accounting.accounts)
    users = None if has_directory else names.users
    groups = None if has_directory or names.groups is None or names.users is None else names.groups | names.users
    for at, account in enumerate(accounting.accounts):
        path = f"{_PATH}.accounts[{at}]"
        faults += check_references(f"{path}.users", "user of login.users", account.users, users)
        faults += check_references(f"{path}.groups", "group of login.groups", account.groups, groups)
        faults += _check_account_qos(path, account, account, qos)
        for key, references in (("users", account.users), ("groups", account.groups), ("defaultFor", account.default_for)):
            faults += _check_form(f"{path}.{key}", references) if has_directory else []
        for name, limited in account.per_user.items():
            faults += _check_account_qos(f"{path}.perUser.{name}", limited, account, qos)
            if not has_directory and name not in _members(account, cluster.login.users):
                message = f"{quoted(name)} is not a user of this account. Name it in users, or a group of it in groups."
                faults.append(Fault(f"{path}.perUser.{name}", message, (f"{path}.users", f"{path}.groups", "cluster.login")))
        for position, name in enumerate(account.default_for):
            if not has_directory and name not in _members(account, cluster.login.users):
                message = f"{quoted(name)} is not a user of this account. Name it in users, or a group of it in groups."
                about = (f"{path}.users", f"{path}.groups", "cluster.login")
                faults.append(Fault(f"{path}.defaultFor[{position}]", message, about))
    return [*faults, *_check_limits(cluster), *_check_partitions(cluster, names, qos)]


def _check_form(path: str, references: Iterable[str]) -> list[Fault]:
    """Faults of names that nobody in a directory can have here: the directory's reader leaves such names out."""
    message = "is not a name that a user or group can have here: lower-case letters, digits and any of _ . -, first a letter."
    return [Fault(f"{path}[{at}]", f"{quoted(name)} {message}") for at, name in enumerate(references) if not is_name(name)]


def _check_parents(accounts: tuple[Account, ...], known: Known) -> list[Fault]:
    faults: list[Fault] = []
    parents = {account.name: account.parent for account in reversed(accounts)}
    for at, account in enumerate(accounts):
        path = f"{_PATH}.accounts[{at}]"
        if account.name == ROOT:
            faults.append(Fault(f"{path}.name", '"root" is the account that all others are below. Take another name.'))
        if known is not None and account.parent not in known | {ROOT}:
            message = f"no account is called {quoted(account.parent)}. {did_you_mean(account.parent, known | {ROOT})}"
            faults.append(Fault(f"{path}.parent", message))
        above = _above(account.name, parents)
        # One fault per circle, at its first account.
        if account.name in above and not {earlier.name for earlier in accounts[:at]} & {*above}:
            message = f"{quoted(account.parent)} is below {quoted(account.name)} itself. One of them has to be below root."
            faults.append(Fault(f"{path}.parent", message, (f"{_PATH}.accounts",)))
    return faults


def _above(name: str, parents: dict[str, str]) -> list[str]:
    """The accounts above an account; in a circle they include the account itself."""
    above: list[str] = []
    at = parents.get(name, ROOT)
    while at in parents and at != ROOT and at not in above:
        above.append(at)
        at = parents[at]
    return above


def _check_default_for(accounts: tuple[Account, ...]) -> list[Fault]:
    users = [(at, position, name) for at, account in enumerate(accounts) for position, name in enumerate(account.default_for)]
    return [
        Fault(
            f"{_PATH}.accounts[{users[at][0]}].defaultFor[{users[at][1]}]",
            f"{quoted(users[at][2])} is already listed in {_PATH}.accounts[{users[first][0]}].defaultFor. A user has one default account.",
        )
        for at, first in repeats([name for _, _, name in users])
    ]


def _members(account: Account, users: Iterable[User]) -> set[str]:
    """The users of an account that the config knows of."""
    return {*account.users, *(user.name for user in users if set(account.groups) & {*user.groups, user.name})}


def _check_account_qos(path: str, limited: Account | UserInAccount, account: Account, known: Known) -> list[Fault]:
    faults = check_references(f"{path}.qos", "QOS of accounting.qos", limited.qos, known)
    if limited.default_qos is None:
        return faults
    if known is not None and limited.default_qos not in known:
        hint = did_you_mean(limited.default_qos, known)
        return [*faults, Fault(f"{path}.defaultQos", f"no QOS of accounting.qos is called {quoted(limited.default_qos)}. {hint}")]
    allowed = limited.qos or account.qos
    if allowed and limited.default_qos not in allowed:
        message = f"{quoted(limited.default_qos)} is not among the QOS of the account ({', '.join(allowed)}). Add it to qos."
        return [*faults, Fault(f"{path}.defaultQos", message, (f"{path}.qos",))]
    return faults


def _check_qos(cluster: Cluster, known: Known) -> list[Fault]:
    path = f"{_PATH}.qos"
    faults = check_unique(path, "QOS", [qos.name for qos in cluster.accounting.qos])
    kind = preempt_type(cluster)
    for at, qos in enumerate(cluster.accounting.qos):
        faults += check_references(f"{path}[{at}].preempt", "QOS of accounting.qos", qos.preempt, known)
        if qos.name in qos.preempt:
            faults.append(Fault(f"{path}[{at}].preempt[{qos.preempt.index(qos.name)}]", "is this QOS itself. Leave it out."))
        if qos.preempt and kind != "preempt/qos":
            message = f"does nothing with PreemptType={kind}. Say PreemptType: preempt/qos in slurm.settings, and PreemptMode."
            faults.append(Fault(f"{path}[{at}].preempt", message, ("cluster.slurm.settings",)))
        faults += check_distinct(f"{path}[{at}].flags", qos.flags)
    return faults


def _limited(cluster: Cluster) -> Iterator[tuple[str, dict[str, str]]]:
    """The path and the settings of each account, user in an account, and QOS."""
    for at, account in enumerate(cluster.accounting.accounts):
        yield f"{_PATH}.accounts[{at}]", settings_of(account)
        for name, limited in account.per_user.items():
            yield f"{_PATH}.accounts[{at}].perUser.{name}", settings_of(limited)
    for at, qos in enumerate(cluster.accounting.qos):
        yield f"{_PATH}.qos[{at}]", settings_of(qos)


def _check_limits(cluster: Cluster) -> list[Fault]:
    """Faults of limits that Slurm would not enforce, and of GPUs that it does not count."""
    enforced = set(cluster.accounting.enforce)
    models = {kind for node_set in cluster.node_sets if node_set.gpus for kind in node_set.gpus.types}
    about = ("cluster.nodeSets",)
    weight = stated(cluster).get("PriorityWeightAssoc")
    faults: list[Fault] = []
    for path, settings in _limited(cluster):
        limits = {key: value for key, value in settings.items() if key not in (*_NO_LIMITS, *_FACTORS)}
        if limits and not enforced & {"limits", "safe"}:
            message = f"Slurm would not keep {', '.join(sorted(limits))}. Say enforce: [limits] or enforce: [safe] in accounting."
            faults.append(Fault(f"{path}.limits", message, (f"{_PATH}.enforce",)))
        if "Priority" in settings and ".qos[" not in path and (weight is None or weight.value == "0"):
            message = f"{settings['Priority']} counts for nothing without a weight. Say PriorityWeightAssoc in slurm.settings."
            faults.append(Fault(f"{path}.limits.priority", message, ("cluster.slurm.settings",)))
        if {"QosLevel", "DefaultQOS"} & settings.keys() and "qos" not in enforced:
            message = "says which QOS may be used, which Slurm does not keep. Say enforce: [qos] in accounting."
            faults.append(Fault(f"{path}.qos", message, (f"{_PATH}.enforce",)))
        for key, value in limits.items():
            if "TRES" not in key:
                continue
            limited_models = [match[1] or "" for match in re.finditer(r"gres/gpu(?::([^=,]+))?=", value)]
            if limited_models and not models:
                faults.append(
                    Fault(f"{path}.limits.{_spelled(key)}", "no node set has GPUs, so Slurm does not count them. Leave them out.", about)
                )
            for model in limited_models if models else ():
                if model and model not in models:
                    message = f"no node set has GPUs of model {quoted(model)}. {did_you_mean(model, models)}"
                    faults.append(Fault(f"{path}.limits.{_spelled(key)}", message, about))
    return faults


def _spelled(option: str) -> str:
    """sacctmgr's name of a limit as users write it: `GrpTRESMins` is grpTresMins."""
    text = option.replace("TRES", "Tres")
    return text[0].lower() + text[1:]


def _check_partitions(cluster: Cluster, names: Names, qos: Known) -> list[Fault]:
    faults: list[Fault] = []
    enforced = set(cluster.accounting.enforce)
    default_accounts = {cluster.accounting.default_account} - {None}
    accounts = None if names.accounts is None else names.accounts | {ROOT} | {str(name) for name in default_accounts}
    about = (f"{_PATH}.enforce",)
    for at, partition in enumerate(cluster.partitions):
        path = f"cluster.partitions[{at}]"
        faults += check_references(f"{path}.allowAccounts", "account of accounting.accounts", partition.allow_accounts, accounts)
        faults += check_references(f"{path}.allowQos", "QOS of accounting.qos", partition.allow_qos, qos)
        if partition.qos is not None and qos is not None and partition.qos not in qos:
            message = f"no QOS of accounting.qos is called {quoted(partition.qos)}. {did_you_mean(partition.qos, qos)}"
            faults.append(Fault(f"{path}.qos", message))
        if partition.allow_accounts and not enforced:
            faults.append(Fault(f"{path}.allowAccounts", "Slurm would not keep it. Say enforce: [associations] in accounting.", about))
        if partition.allow_qos and "qos" not in enforced:
            faults.append(Fault(f"{path}.allowQos", "Slurm would not keep it. Say enforce: [qos] in accounting.", about))
        if partition.qos and not enforced & {"limits", "safe"}:
            faults.append(Fault(f"{path}.qos", "Slurm would not keep its limits. Say enforce: [limits] in accounting.", about))
        typed_keys = {"allowaccounts": "allowAccounts", "allowqos": "allowQos", "qos": "qos"}
        typed = {"allowaccounts": partition.allow_accounts, "allowqos": partition.allow_qos, "qos": partition.qos}
        for key in partition.settings:
            if typed.get(key.lower()):
                message = f"repeats {typed_keys[key.lower()]}. Remove one of the two."
                faults.append(Fault(f"{path}.settings.{key}", message, (f"{path}.{typed_keys[key.lower()]}",)))
    return faults
