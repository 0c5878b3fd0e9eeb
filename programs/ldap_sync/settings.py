"""The argument of the program `identity`; components/ldap.py writes it. The password is in a separate file."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Keys of `login.ldap` with defaults filled in."""

    uris: tuple[str, ...]
    """The servers, in their order."""
    start_tls: bool
    user_base: str
    user_filter: str
    group_base: str
    group_filter: str
    key_attribute: str
    """Attribute of the public keys."""
    refresh_s: int
    """Seconds between two searches."""
    min_uid: int
    min_gid: int
    max_removed_percent: int
    """If more users vanish at once, the answer is a fault."""
    ca_file: str | None = None
    """None: the authorities of the image."""
    bind_dn: str | None = None
    """None: an anonymous bind."""
    password_file: str | None = None


def to_json(settings: Settings) -> str:
    """The argument. Files that are None are left out."""
    always: dict[str, Any] = {
        "uris": settings.uris,
        "startTls": settings.start_tls,
        "userBaseDn": settings.user_base,
        "userFilter": settings.user_filter,
        "groupBaseDn": settings.group_base,
        "groupFilter": settings.group_filter,
        "keyAttribute": settings.key_attribute,
        "refreshS": settings.refresh_s,
        "minUid": settings.min_uid,
        "minGid": settings.min_gid,
        "maxRemovedPercent": settings.max_removed_percent,
    }
    files = {"caFile": settings.ca_file, "bindDn": settings.bind_dn, "passwordFile": settings.password_file}
    return json.dumps({**always, **{key: value for key, value in files.items() if value is not None}}, sort_keys=True)


def from_json(text: str) -> Settings:
    """Reads what `to_json` wrote."""
    values = json.loads(text)
    return Settings(
        uris=tuple(values["uris"]),
        start_tls=values["startTls"],
        user_base=values["userBaseDn"],
        user_filter=values["userFilter"],
        group_base=values["groupBaseDn"],
        group_filter=values["groupFilter"],
        key_attribute=values["keyAttribute"],
        refresh_s=values["refreshS"],
        min_uid=values["minUid"],
        min_gid=values["minGid"],
        max_removed_percent=values["maxRemovedPercent"],
        ca_file=values.get("caFile"),
        bind_dn=values.get("bindDn"),
        password_file=values.get("passwordFile"),
    )
