"""Rules of users from LDAP: that what is read is what was meant, by whom, and that nobody can answer in LDAP's place."""

from configs.faults import Fault, quoted, repeats
from configs.models.ldap import Ldap

_PATH = "cluster.login.ldap"


def check_ldap(ldap: Ldap) -> list[Fault]:
    """Faults of `login.ldap`."""
    faults = [
        Fault(f"{_PATH}.uris[{at}]", f"{quoted(ldap.uris[at])} is listed twice.") for at, _ in repeats([_server(uri) for uri in ldap.uris])
    ]
    return faults + _check_ports(ldap) + _check_tls(ldap) + _check_bind(ldap)


def _server(uri: str) -> tuple[str, str]:
    scheme, _, address = uri.lower().partition("://")
    host, colon, port = address.rpartition(":")
    if not colon or "]" in port:
        return address, _PORTS[scheme]
    return host, port


_PORTS = {"ldap": "389", "ldaps": "636"}


def _check_ports(ldap: Ldap) -> list[Fault]:
    """Faults of a scheme on the other scheme's port: one side would wait for TLS, and the other for a greeting."""
    faults: list[Fault] = []
    for at, uri in enumerate(ldap.uris):
        scheme = uri.partition("://")[0]
        other_scheme = "ldap" if scheme == "ldaps" else "ldaps"
        if _server(uri)[1] == _PORTS[other_scheme]:
            faults.append(
                Fault(f"{_PATH}.uris[{at}]", f"{quoted(uri)} has the port of {other_scheme}://. Take that, or leave the port out.")
            )
    return faults


def _check_tls(ldap: Ldap) -> list[Fault]:
    faults: list[Fault] = []
    plain = [at for at, uri in enumerate(ldap.uris) if uri.startswith("ldap://")]
    if ldap.start_tls:
        for at, uri in enumerate(ldap.uris):
            if at not in plain:
                message = f"{quoted(uri)} is TLS from the start, and startTls is for ldap://. Keep one of the two."
                faults.append(Fault(f"{_PATH}.uris[{at}]", message, (f"{_PATH}.startTls",)))
        if ldap.allow_plaintext:
            message = "is for connections without TLS, and startTls is for TLS. Keep one."
            faults.append(Fault(f"{_PATH}.allowPlaintext", message, (f"{_PATH}.startTls",)))
    elif not ldap.allow_plaintext:
        bind = ", and the password of bindDn would cross the network readable" if ldap.bind_dn else ""
        for at in plain:
            message = (
                f"{quoted(ldap.uris[at])} is not encrypted: whoever can answer in its place could log in as anyone{bind}. Take ldaps:// "
                "or say startTls: true; where the network itself is trusted, allowPlaintext: true."
            )
            faults.append(Fault(f"{_PATH}.uris[{at}]", message, (f"{_PATH}.startTls", f"{_PATH}.allowPlaintext", f"{_PATH}.bindDn")))
    elif not plain:
        message = "has no server to be for: all of uris are ldaps://. Leave it out."
        faults.append(Fault(f"{_PATH}.allowPlaintext", message, (f"{_PATH}.uris",)))
    if ldap.ca_secret is not None and len(plain) == len(ldap.uris) and not ldap.start_tls and ldap.allow_plaintext:
        message = "has nothing to verify: there is no TLS. Leave it out, or take ldaps:// or startTls."
        faults.append(Fault(f"{_PATH}.caSecret", message, (f"{_PATH}.uris", f"{_PATH}.startTls", f"{_PATH}.allowPlaintext")))
    return faults


def _check_bind(ldap: Ldap) -> list[Fault]:
    if ldap.bind_dn is not None and ldap.bind_secret is None:
        message = "is missing: bindDn needs its password. Name a Secret of the namespace that has it under the key password."
        return [Fault(f"{_PATH}.bindSecret", message, (f"{_PATH}.bindDn",))]
    if ldap.bind_dn is None and ldap.bind_secret is not None:
        return [
            Fault(f"{_PATH}.bindDn", "is missing: bindSecret is somebody's password. Say whose, or leave it out.", (f"{_PATH}.bindSecret",))
        ]
    return []
