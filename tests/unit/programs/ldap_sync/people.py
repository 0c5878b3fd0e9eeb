"""Entries as a directory gives them, for tests."""

from programs.ldap_sync.entries import Entry
from tests.support.configs.stacks import KEY

PEOPLE = "ou=people,dc=example,dc=test"
GROUPS = "ou=groups,dc=example,dc=test"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEq8R3oWoR7k8pR1nP3dUoD0yT6sC2vW5xY8zA1bCdEf other@example.com"


def person(name: str, number: int = 20001, dn: str = "", **changes: str | list[str] | None) -> Entry:
    """A user with one key; `changes` by attribute in lower case, None takes it away."""
    usual: dict[str, str | list[str] | None] = {
        "uid": name,
        "uidnumber": str(number),
        "gidnumber": str(number),
        "cn": name.title(),
        "loginshell": "/bin/bash",
        "sshpublickey": KEY,
    }
    return Entry(dn or f"uid={name},{PEOPLE}", values({**usual, **changes}))


def team(name: str, gid: int = 30001, dn: str = "", **changes: str | list[str] | None) -> Entry:
    """A group without members."""
    return Entry(dn or f"cn={name},{GROUPS}", values({"cn": name, "gidnumber": str(gid), **changes}))


def values(given: dict[str, str | list[str] | None]) -> dict[str, list[bytes]]:
    """Attributes as LDAP has them: lists of bytes."""
    return {
        key: [each.encode() for each in ([value] if isinstance(value, str) else value)] for key, value in given.items() if value is not None
    }
