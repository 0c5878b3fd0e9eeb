"""Config of users from LDAP. What is read there, and what of it is taken, is in programs/ldap_sync."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StrictStr

from configs.faults import quoted
from configs.models.fields import Flag, Model, ObjectName, Shown, Whole, is_one_line, refuse

_URI = re.compile(r"ldaps?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-f:.]+\])(:[1-9]\d{0,4})?/?", re.ASCII)
_DN = re.compile(r"[A-Za-z][A-Za-z0-9.-]*=[^,]+(,\s*[A-Za-z][A-Za-z0-9.-]*=[^,]+)*")
_FILTER_PART = re.compile(r"\((?:[&|!]|[A-Za-z0-9.;:_-]+(?:[~<>:]?=)(?:[^()\\\x00]|\\[0-9A-Fa-f]{2})*)|\)")


def _uri(value: str) -> str:
    match = _URI.fullmatch(value)
    if match is None or int((match[3] or ":0")[1:]) > 65_535:
        raise refuse(
            f'{quoted(value)} is not the URI of an LDAP server, such as "ldaps://ldap.example.com" (with :port where it is another).'
        )
    return value.rstrip("/")


def _dn(value: str) -> str:
    if not is_one_line(value) or len(value) > 500 or _DN.fullmatch(value.replace("\\,", "")) is None:
        raise refuse(f'{quoted(value)} is not a distinguished name, such as "ou=people,dc=example,dc=com".')
    return value


def _filter(value: str) -> str:
    depth, at = 0, 0
    for part in _FILTER_PART.finditer(value):
        depth += 1 if part[0][0] == "(" else -1
        is_comparison = part[0][0] == "(" and part[0][1] not in "&|!"
        if part.start() != at or depth < 0 or (is_comparison and value[part.end() : part.end() + 1] != ")"):
            break
        at = part.end()
        if depth == 0:
            break
    if depth != 0 or at != len(value) or not value or not is_one_line(value) or len(value) > 2000:
        raise refuse(f'{quoted(value)} is not an LDAP filter, such as "(objectClass=posixAccount)": each part needs its own parentheses.')
    return value


def _attribute(value: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,63}", value, re.ASCII) is None:
        raise refuse(f'{quoted(value)} is not the name of an attribute, such as "sshPublicKey".')
    return value


LdapUri = Annotated[
    StrictStr, AfterValidator(_uri), Shown("the URI of an LDAP server", "ldaps://ldap.example.com", {"pattern": f"^({_URI.pattern})$"})
]
Dn = Annotated[StrictStr, AfterValidator(_dn), Shown("a distinguished name", "ou=people,dc=example,dc=com", {"maxLength": 500})]
Filter = Annotated[
    StrictStr, AfterValidator(_filter), Shown("an LDAP filter", "(objectClass=posixAccount)", {"maxLength": 2000, "pattern": r"^\(.*\)$"})
]
Attribute = Annotated[
    StrictStr, AfterValidator(_attribute), Shown("the name of an attribute", "sshPublicKey", {"pattern": r"^[A-Za-z][A-Za-z0-9-]{0,63}$"})
]
LeastId = Annotated[Whole, Field(ge=500, le=1_999_999_999)]
"""Not below 500: libnss-extrausers passes such users over."""


class Ldap(Model):
    """Users and groups of an LDAP directory, with the attributes of rfc2307 or rfc2307bis, in addition to `login.users`, which win."""

    uris: tuple[LdapUri, ...] = Field(min_length=1)
    """The servers, in the order in which they are tried."""
    start_tls: Flag = False
    """True: TLS is started on an ldap:// connection. ldaps:// is TLS from the start."""
    allow_plaintext: Flag = False
    """True: ldap:// without TLS is allowed, for networks that are trusted themselves."""
    ca_secret: ObjectName | None = None
    """Name of a Secret in the cluster's namespace whose key `ca.crt` has the CA of the servers' certificates. Default: the public CAs of
    the image."""
    base_dn: Dn
    """Where users and groups are, at any depth."""
    user_base_dn: Dn | None = None
    """Where users are, at any depth. Default: `baseDn`."""
    group_base_dn: Dn | None = Field(default=None, examples=["ou=groups,dc=example,dc=com"])
    """Where groups are, at any depth. Default: `baseDn`."""
    user_filter: Filter = "(objectClass=posixAccount)"
    """Which entries are users."""
    group_filter: Filter = Field(default="(objectClass=posixGroup)", examples=["(objectClass=groupOfNames)"])
    """Which entries are groups."""
    bind_dn: Dn | None = None
    """DN to bind as. Default: an anonymous bind."""
    bind_secret: ObjectName | None = None
    """Name of a Secret in the cluster's namespace whose key `password` has the password of `bindDn`."""
    key_attribute: Attribute = "sshPublicKey"
    """Attribute with the public keys, one key a value."""
    refresh_s: Annotated[Whole, Field(ge=5, le=3600)] = Field(default=20, examples=[60])
    """Time between two queries, in seconds. A removed user cannot log in after this time and that of the answer."""
    min_uid: LeastId = Field(default=1000, examples=[5000])
    """Users with a lower uid are left out."""
    min_gid: LeastId = Field(default=1000, examples=[5000])
    """Groups with a lower gid are left out, as are users whose own group has one. Debian's group users (100) is allowed as a user's own."""
    max_removed_percent: Annotated[Whole, Field(ge=0, le=100)] = Field(default=50, examples=[20])
    """If more than this share of more than 10 users (or groups) disappears at once, LDAP counts as faulty and none is removed. An
    answer without any user counts as a fault, too. 100: every answer is believed."""
