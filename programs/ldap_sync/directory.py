"""Reads users and groups from LDAP with python-ldap: verified TLS, pages, a time-out on every call. `entries` judges them.

Tries the servers in their order. An incomplete answer is discarded.
"""

import importlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .accounts import as_plain
from .entries import Entry
from .settings import Settings

ldap: Any = importlib.import_module("ldap")  # in the image only, so that nothing that checks this code has to have it
_dn: Any = importlib.import_module("ldap.dn")
_controls: Any = importlib.import_module("ldap.controls.libldap")

_CONNECT_S = 5
_CALL_S = 20
_ALL_S = 60
"""Seconds for one server's complete answer."""
_PAGE = 500
_TLS_1_2 = 0x303
_SYSTEM_CA = "/etc/ssl/certs/ca-certificates.crt"
_MEMBERS = ("member", "uniquemember")


class DirectoryError(Exception):
    """No server gave a complete answer. The text has the error of each."""


def read_directory(where: Settings) -> tuple[list[Entry], list[Entry]]:
    """The entries of users and of groups. Raises DirectoryError."""
    faults: list[str] = []
    for uri in where.uris:
        try:
            return _read(where, uri)
        except ldap.LDAPError as error:
            faults.append(f"{uri}: {_sentence(error, where)}")
        except (OSError, ValueError) as error:
            faults.append(f"{uri}: {error}")
    raise DirectoryError("; ".join(faults))


def _read(where: Settings, uri: str) -> tuple[list[Entry], list[Entry]]:
    connection = _connect(where, uri)
    try:
        deadline = time.monotonic() + _ALL_S
        users = ("uid", "uidNumber", "gidNumber", "cn", "loginShell", where.key_attribute)
        groups = ("cn", "gidNumber", "memberUid", "member", "uniqueMember")
        return (
            [*_search(connection, where.user_base, where.user_filter, users, deadline)],
            [*_search(connection, where.group_base, where.group_filter, groups, deadline)],
        )
    finally:
        connection.unbind_ext_s()


def _connect(where: Settings, uri: str) -> Any:
    connection = ldap.initialize(uri)
    for option, value in (
        (ldap.OPT_PROTOCOL_VERSION, 3),
        (ldap.OPT_NETWORK_TIMEOUT, float(_CONNECT_S)),
        (ldap.OPT_TIMEOUT, float(_CALL_S)),
        (ldap.OPT_REFERRALS, 0),  # another server, which nobody named, is not asked
        (ldap.OPT_X_TLS_REQUIRE_CERT, ldap.OPT_X_TLS_DEMAND),
        (ldap.OPT_X_TLS_CACERTFILE, where.ca_file or _SYSTEM_CA),
        (ldap.OPT_X_TLS_PROTOCOL_MIN, _TLS_1_2),
    ):
        connection.set_option(option, value)
    try:
        connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)  # takes over the options of TLS, and reads the file
    except (ldap.LDAPError, ValueError):
        raise ValueError("ca.crt in login.ldap.caSecret holds no certificate that can be read (PEM is wanted)") from None
    if where.start_tls:
        connection.start_tls_s()
    if where.bind_dn is not None:
        password = Path(where.password_file or "").read_text(encoding="utf-8").rstrip("\n")
        if not password:
            # Servers accept a name without a password as an anonymous bind.
            raise ValueError("the password in login.ldap.bindSecret is empty")
        connection.simple_bind_s(where.bind_dn, password)
    return connection


def _search(connection: Any, base: str, search: str, attributes: tuple[str, ...], deadline: float) -> Iterator[Entry]:
    page = _controls.SimplePagedResultsControl(False, size=_PAGE, cookie="")
    while True:
        if time.monotonic() > deadline:
            raise ValueError(f"the whole answer took more than {_ALL_S} s")
        message = connection.search_ext(base, ldap.SCOPE_SUBTREE, search, [*attributes], serverctrls=[page], timeout=_CALL_S)
        _, data, _, controls = connection.result3(message, timeout=_CALL_S)
        for dn, values in data:
            if dn is not None:  # else it is a referral
                yield Entry(plain_dn(dn), _plain(values))
        page.cookie = next((control.cookie for control in controls if control.controlType == page.controlType), "")
        if not page.cookie:
            return


def _plain(values: Mapping[str, list[bytes]]) -> dict[str, list[bytes]]:
    by_name = {name.lower(): value for name, value in values.items()}
    return {name: [_plain_member(member) for member in value] if name in _MEMBERS else value for name, value in by_name.items()}


def _plain_member(value: bytes) -> bytes:
    return plain_dn(value.decode(errors="replace")).encode()


def plain_dn(dn: str) -> str:
    """A DN in one spelling, so that an entry's DN and the same DN in a group compare equal. Other text is unchanged."""
    try:
        parts = _dn.str2dn(dn)
    except ldap.LDAPError:
        return dn
    return _dn.dn2str([sorted((name.lower(), " ".join(value.lower().split()), flags) for name, value, flags in part) for part in parts])


def _sentence(error: Exception, where: Settings) -> str:
    answer: Any = error.args[0] if error.args else {}
    detail = ", ".join(str(answer[key]) for key in ("desc", "info", "matched") if answer.get(key)) if hasattr(answer, "get") else ""
    hints: tuple[tuple[Any, str], ...] = (
        (ldap.INVALID_CREDENTIALS, "the server refused login.ldap.bindDn or the password in bindSecret"),
        (ldap.NO_SUCH_OBJECT, f"there is no {as_plain(where.user_base)} or no {as_plain(where.group_base)}, or bindDn may not see it"),
        (ldap.INSUFFICIENT_ACCESS, "the server does not let login.ldap.bindDn look there (or, without one, a stranger)"),
        (ldap.FILTER_ERROR, "the server does not understand userFilter or groupFilter"),
        (ldap.SIZELIMIT_EXCEEDED, "the server gives no whole answer to this bindDn (its size limit)"),
        (ldap.ADMINLIMIT_EXCEEDED, "the server gives no whole answer to this bindDn (its limits)"),
        (ldap.TIMEOUT, f"no answer within {_CALL_S} s"),
        (ldap.CONFIDENTIALITY_REQUIRED, "the server wants TLS"),
    )
    hint = next((text for kind, text in hints if isinstance(error, kind)), "")
    return f"{hint} ({detail})" if hint and detail else hint or detail or str(error) or type(error).__name__
