"""The argument of the program that keeps users from LDAP; components/ldap.py writes it. The password is in a file of its own."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """The directory, and what is taken from it: keys of `login.ldap`, with their defaults worked out."""

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
    """Seconds between two questions."""
    min_uid: int
    min_gid: int
    max_removed_percent: int
    """More users gone at once is a fault of LDAP."""
    ca_file: str | None = None
    """None: the authorities of the image."""
    bind_dn: str | None = None
    """None: an anonymous bind."""
    password_file: str | None = None


def to_json(settings: Settings) -> str:
    """The argument. Files that are not there are left out."""
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
    """What `to_json` has written."""
    given = json.loads(text)
    return Settings(
        uris=tuple(given["uris"]),
        start_tls=given["startTls"],
        user_base=given["userBaseDn"],
        user_filter=given["userFilter"],
        group_base=given["groupBaseDn"],
        group_filter=given["groupFilter"],
        key_attribute=given["keyAttribute"],
        refresh_s=given["refreshS"],
        min_uid=given["minUid"],
        min_gid=given["minGid"],
        max_removed_percent=given["maxRemovedPercent"],
        ca_file=given.get("caFile"),
        bind_dn=given.get("bindDn"),
        password_file=given.get("passwordFile"),
    )
