"""Renders the accounts, users and QOS of a config as the file that programs/account_sync applies to Slurm's database.

Values are in sacctmgr's format, one line for each account and QOS, so that a preview shows which of them changes.
"""

import json
from collections.abc import Mapping
from typing import Any

from configs.models.accounts import Account, Qos, UserInAccount
from configs.models.cluster import Cluster
from configs.models.fields import seconds

FILE = "accounts.json"
SLURM_USER = "slurm"


def render(cluster: Cluster, has_directory: bool = False) -> str:
    """The wanted state as JSON. With `has_directory` there are further users, whom the program finds in a directory."""
    accounting = cluster.accounting
    wanted: dict[str, Any] = {
        "cluster": cluster.name,
        "qos": {qos.name: _qos(qos) for qos in accounting.qos},
        "accounts": {account.name: _account(account) for account in accounting.accounts},
        "defaults": {user: account.name for account in accounting.accounts for user in account.default_for},
        # Where associations are enforced, Slurm's own user needs an association, too: its jobs are the health checks.
        "daemons": [SLURM_USER] if accounting.enforce else [],
    }
    if accounting.default_account:
        wanted["defaultAccount"] = accounting.default_account
        wanted["people"] = [user.name for user in cluster.login.users]
        wanted["directory"] = has_directory
    return _lines(wanted)


def settings_of(limited: Account | UserInAccount | Qos) -> dict[str, str]:
    """Limits and the like, as options of sacctmgr to their values; only those that are set."""
    limits = {option(key): _value(key, value) for key, value in limited.limits if value is not None}
    if isinstance(limited, Qos):
        return {**_qos_settings(limited), **{key: value for key, value in limits.items() if value}}
    more = {
        "Fairshare": "" if limited.fairshare is None else str(limited.fairshare),
        "QosLevel": ",".join(limited.qos),
        "DefaultQOS": limited.default_qos or "",
    }
    return {key: value for key, value in {**more, **limits}.items() if value}


def option(key: str) -> str:
    """sacctmgr's name of a limit: `grp_tres_run_mins` is GrpTRESRunMins."""
    return "".join("TRES" if part == "tres" else part.capitalize() for part in key.split("_"))


def _account(account: Account) -> dict[str, Any]:
    entries: dict[str, Any] = {
        "parent": account.parent,
        "description": account.description,
        "organization": account.organization,
        "settings": settings_of(account),
        "users": list(account.users),
        "groups": list(account.groups),
        "perUser": {name: settings_of(limited) for name, limited in account.per_user.items()},
    }
    return {key: value for key, value in entries.items() if value}


def _qos(qos: Qos) -> dict[str, Any]:
    return {key: value for key, value in (("description", qos.description), ("settings", settings_of(qos))) if value}


def _qos_settings(qos: Qos) -> dict[str, str]:
    settings = {
        "Priority": str(qos.priority or ""),
        "Preempt": ",".join(qos.preempt),
        "PreemptMode": qos.preempt_mode or "",
        "PreemptExemptTime": _clock(qos.preempt_exempt_time) if qos.preempt_exempt_time else "",
        "GraceTime": str(qos.grace_time_s or ""),
        "Flags": ",".join(qos.flags),
        **{
            option(key): "" if value is None else f"{value:g}"
            for key, value in (
                ("usage_factor", qos.usage_factor),
                ("usage_threshold", qos.usage_threshold),
                ("limit_factor", qos.limit_factor),
            )
        },
    }
    return {key: value for key, value in settings.items() if value}


def _value(key: str, value: str | int) -> str:
    """Times in minutes, rounded up as Slurm does; empty for no limit."""
    if key not in ("max_wall", "grp_wall"):
        return str(value)
    total = seconds(str(value))
    return "" if total == float("inf") else str(-(-int(total) // 60))


def _clock(time: str) -> str:
    total = seconds(time)
    return "" if total == float("inf") else f"{int(total) // 3600:02}:{int(total) // 60 % 60:02}:{int(total) % 60:02}"


def _lines(wanted: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of its mappings."""
    parts: list[str] = []
    for key, value in wanted.items():
        if isinstance(value, dict) and value:
            entries = [f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items()]  # pyright: ignore[reportUnknownVariableType]
            parts.append(f"  {json.dumps(key)}: {{\n" + ",\n".join(entries) + "\n  }")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
