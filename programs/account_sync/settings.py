"""The file of the program that keeps Slurm's accounts; components/accounts.py writes it. Values are in sacctmgr's own words, and members of
unix groups are not looked up yet."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

Options = Mapping[str, str]
"""Options of sacctmgr to their values."""
FILE = "accounts.json"


@dataclass(frozen=True)
class WantedAccount:
    """An account, and who is in it."""

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
    """What is wanted in Slurm's database."""

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
    directory: bool = False
    """With a default account: there are users beside those, whom the program finds by itself."""


def to_json(settings: Settings) -> str:
    """The file. Each account and QOS is one line, so that a preview shows a change where it is."""
    made: dict[str, Any] = {
        "cluster": settings.cluster,
        "qos": {name: _given({"description": qos.description, "settings": qos.settings}) for name, qos in settings.qos.items()},
        "accounts": {name: _account(account) for name, account in settings.accounts.items()},
        "defaults": settings.defaults,
        "daemons": settings.daemons,
    }
    if settings.default_account:
        made |= {"defaultAccount": settings.default_account, "people": settings.people, "directory": settings.directory}
    return _lines(made)


def from_json(text: str) -> Settings:
    """What `to_json` has written. Raises ValueError, KeyError, TypeError and AttributeError for a text that is none of ours."""
    given = json.loads(text)
    return Settings(
        cluster=given["cluster"],
        qos={name: WantedQos(each.get("description", ""), each.get("settings", {})) for name, each in given["qos"].items()},
        accounts={
            name: WantedAccount(
                *(each.get("parent", "root"), each.get("description", ""), each.get("organization", ""), each.get("settings", {})),
                users=tuple(each.get("users", ())),
                groups=tuple(each.get("groups", ())),
                per_user=each.get("perUser", {}),
            )
            for name, each in given["accounts"].items()
        },
        defaults=given.get("defaults", {}),
        daemons=tuple(given.get("daemons", ())),
        default_account=given.get("defaultAccount", ""),
        people=tuple(given.get("people", ())),
        directory=given.get("directory", False),
    )


def _account(account: WantedAccount) -> dict[str, Any]:
    return _given(
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


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _lines(made: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of its mappings."""
    parts: list[str] = []
    for key, value in made.items():
        if isinstance(value, Mapping) and value:
            entries = [f"    {json.dumps(name)}: {json.dumps(each)}" for name, each in cast(Mapping[str, Any], value).items()]
            parts.append(f"  {json.dumps(key)}: {{\n" + ",\n".join(entries) + "\n  }")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
