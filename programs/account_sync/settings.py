"""The file of the program account_sync: the wanted accounts, users and QOS. components/accounts.py writes it.

Values are in sacctmgr's spelling; unix groups are listed by name and looked up by the program.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

Options = Mapping[str, str]
"""Options of sacctmgr to their values."""
FILE = "accounts.json"


@dataclass(frozen=True)
class WantedAccount:
    """An account and its users."""

    parent: str = "root"
    description: str = ""
    organization: str = ""
    settings: Options = field(default_factory=dict[str, str])
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Unix groups whose members are in the account, too."""
    per_user: Mapping[str, Options] = field(default_factory=dict[str, Options])
    """Settings of single users in the account."""


@dataclass(frozen=True)
class WantedQos:
    """A QOS."""

    description: str = ""
    settings: Options = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Settings:
    """The accounts, users and QOS that Slurm's database should have."""

    cluster: str
    qos: Mapping[str, WantedQos]
    accounts: Mapping[str, WantedAccount]
    defaults: Mapping[str, str] = field(default_factory=dict[str, str])
    """The default account of users who are in several."""
    daemons: tuple[str, ...] = ()
    """Users of Slurm's own daemons that need an association."""
    default_account: str = ""
    """Account of all users who are in no other; empty: there is none."""
    people: tuple[str, ...] = ()
    """With a default account: the users of the config."""
    has_directory: bool = False
    """With a default account: True if users also come from a directory (LDAP). The program looks them up."""


def to_json(settings: Settings) -> str:
    """The file. Each account and QOS is one line, so that a preview shows a change where it is."""
    content: dict[str, Any] = {
        "cluster": settings.cluster,
        "qos": {name: _without_empty({"description": qos.description, "settings": qos.settings}) for name, qos in settings.qos.items()},
        "accounts": {name: _account(account) for name, account in settings.accounts.items()},
        "defaults": settings.defaults,
        "daemons": settings.daemons,
    }
    if settings.default_account:
        content |= {"defaultAccount": settings.default_account, "people": settings.people, "directory": settings.has_directory}
    return _lines(content)


def from_json(text: str) -> Settings:
    """Reads what `to_json` wrote. Raises ValueError, KeyError, TypeError and AttributeError for any other text."""
    values = json.loads(text)
    return Settings(
        cluster=values["cluster"],
        qos={name: WantedQos(qos.get("description", ""), qos.get("settings", {})) for name, qos in values["qos"].items()},
        accounts={
            name: WantedAccount(
                parent=account.get("parent", WantedAccount.parent),
                description=account.get("description", ""),
                organization=account.get("organization", ""),
                settings=account.get("settings", {}),
                users=tuple(account.get("users", ())),
                groups=tuple(account.get("groups", ())),
                per_user=account.get("perUser", {}),
            )
            for name, account in values["accounts"].items()
        },
        defaults=values.get("defaults", {}),
        daemons=tuple(values.get("daemons", ())),
        default_account=values.get("defaultAccount", ""),
        people=tuple(values.get("people", ())),
        has_directory=values.get("directory", False),
    )


def _account(account: WantedAccount) -> dict[str, Any]:
    return _without_empty(
        {
            "parent": account.parent,
            "description": account.description,
            "organization": account.organization,
            "settings": account.settings,
            "users": account.users,
            "groups": account.groups,
            "perUser": account.per_user,
        }
    )


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _lines(content: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of its mappings."""
    parts: list[str] = []
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            entries = [f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in cast(Mapping[str, Any], value).items()]
            parts.append(f"  {json.dumps(key)}: {{\n" + ",\n".join(entries) + "\n  }")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
