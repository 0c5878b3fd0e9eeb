"""Mistakes in `login.ldap`: one in a good stack file gives one fault, at its place, with what would do."""

# ruff: noqa: E501 - a table reads best with a row on a line

from typing import Any

import pytest

from configs.models.ldap import Ldap
from tests.support.configs.stacks import cluster
from tests.unit.configs.found_faults import faults

LDAP: dict[str, Any] = {
    "uris": ["ldaps://ldap.example.com"],
    "baseDn": "dc=example,dc=com",
    "bindDn": "cn=slurm,dc=example,dc=com",
    "bindSecret": "ldap-reader",
}
PATH = "cluster.login.ldap"


def ldap(**changes: Any) -> dict[str, Any]:
    """An edit of an example stack: a good `login.ldap` with changes; None takes a key away."""
    return {"login.ldap": {key: value for key, value in {**LDAP, **changes}.items() if value is not None}}


SHAPE = [
    pytest.param(ldap(uris=None), f"{PATH}.uris", "is missing. The servers", id="no-servers"),
    pytest.param(ldap(uris=[]), f"{PATH}.uris", "is empty; at least one is needed", id="empty-list-of-servers"),
    pytest.param(ldap(uris="ldaps://one"), f"{PATH}.uris", "a list is wanted", id="text-for-the-list"),
    pytest.param(ldap(uris=["ldap.example.com"]), f"{PATH}.uris[0]", 'not the URI of an LDAP server, such as "ldaps://', id="host-for-a-uri"),
    pytest.param(ldap(uris=["ldapi:///"]), f"{PATH}.uris[0]", "not the URI of an LDAP server", id="socket"),
    pytest.param(ldap(uris=["https://ldap.example.com"]), f"{PATH}.uris[0]", "not the URI of an LDAP server", id="other-scheme"),
    pytest.param(ldap(uris=["ldaps://user:secret@one"]), f"{PATH}.uris[0]", "not the URI of an LDAP server", id="password-in-the-uri"),
    pytest.param(ldap(uris=["ldaps://one/dc=example"]), f"{PATH}.uris[0]", "not the URI of an LDAP server", id="path-in-the-uri"),
    pytest.param(ldap(uris=["ldaps://one:70000"]), f"{PATH}.uris[0]", "not the URI of an LDAP server", id="port-too-large"),
    pytest.param(ldap(baseDn=None), f"{PATH}.baseDn", "is missing. Where users and groups are", id="no-base"),
    pytest.param(ldap(baseDn="example.com"), f"{PATH}.baseDn", "not a distinguished name", id="domain-for-a-dn"),
    pytest.param(ldap(userBaseDn=""), f"{PATH}.userBaseDn", "not a distinguished name", id="empty-dn"),
    pytest.param(ldap(bindDn="cn=a\ndc=b"), f"{PATH}.bindDn", "not a distinguished name", id="newline-in-a-dn"),
    pytest.param(ldap(userFilter="objectClass=posixAccount"), f"{PATH}.userFilter", "needs its own parentheses", id="filter-without-parentheses"),
    pytest.param(ldap(userFilter="(&(objectClass=posixAccount)(memberOf=cn=a)"), f"{PATH}.userFilter", "not an LDAP filter", id="filter-that-does-not-end"),
    pytest.param(ldap(groupFilter="(a=b)(c=d)"), f"{PATH}.groupFilter", "not an LDAP filter", id="two-filters"),
    pytest.param(ldap(groupFilter=""), f"{PATH}.groupFilter", "not an LDAP filter", id="empty-filter"),
    pytest.param(ldap(groupFilter="(a=(b=c))"), f"{PATH}.groupFilter", "not an LDAP filter", id="filter-in-a-value"),
    pytest.param(ldap(keyAttribute="ssh key"), f"{PATH}.keyAttribute", "not the name of an attribute", id="blank-in-an-attribute"),
    pytest.param(ldap(caSecret="LDAP_CA"), f"{PATH}.caSecret", "not a Kubernetes object name", id="bad-secret-name"),
    pytest.param(ldap(refreshS=1), f"{PATH}.refreshS", "1 is less than 5", id="asked-too-often"),
    pytest.param(ldap(refreshS=7200), f"{PATH}.refreshS", "7200 is more than 3600", id="asked-too-seldom"),
    pytest.param(ldap(minUid=100), f"{PATH}.minUid", "100 is less than 500", id="uids-that-extrausers-passes-over"),
    pytest.param(ldap(minGid=0), f"{PATH}.minGid", "0 is less than 500", id="gids-of-the-system"),
    pytest.param(ldap(maxRemovedPercent=101), f"{PATH}.maxRemovedPercent", "101 is more than 100", id="more-than-all"),
    pytest.param(ldap(bindPassword="secret"), f"{PATH}.bindPassword", "no such key", id="password-in-the-config"),
]  # fmt: skip

RULES = [
    pytest.param(ldap(uris=["ldaps://one", "ldaps://one"]), f"{PATH}.uris[1]", "is listed twice", id="server-twice"),
    pytest.param(ldap(uris=["ldap://one"]), f"{PATH}.uris[0]", "the password of bindDn would cross the network readable. Take ldaps:// or say startTls: true", id="password-in-plain-text"),
    pytest.param(ldap(uris=["ldaps://two", "ldap://one"], bindDn=None, bindSecret=None), f"{PATH}.uris[1]", "whoever can answer in its place could log in as anyone. Take", id="keys-from-anybody"),
    pytest.param(ldap(startTls=True), f"{PATH}.uris[0]", "TLS from the start, and startTls is for ldap://", id="tls-twice"),
    pytest.param(ldap(uris=["ldap://one"], startTls=True, allowPlaintext=True), f"{PATH}.allowPlaintext", "is for connections without TLS, and startTls is for TLS", id="tls-and-none"),
    pytest.param(ldap(allowPlaintext=True), f"{PATH}.allowPlaintext", "has no server to be for", id="plain-text-for-nobody"),
    pytest.param(ldap(uris=["ldap://one"], allowPlaintext=True, caSecret="ca"), f"{PATH}.caSecret", "has nothing to verify", id="authority-without-tls"),
    pytest.param(ldap(bindSecret=None), f"{PATH}.bindSecret", "is missing: bindDn needs its password", id="name-without-a-password"),
    pytest.param(ldap(bindDn=None), f"{PATH}.bindDn", "is missing: bindSecret is somebody's password", id="password-of-nobody"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "path", "part"), [*SHAPE, *RULES])
def test_mistake_is_one_fault_at_its_place(edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("dev", edits)
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]


def test_all_mistakes_are_told_at_once() -> None:
    found = faults("dev", ldap(uris=["ldap://one"], bindSecret=None, minUid=1, userFilter="x"))
    assert {each for each, _ in found} == {f"{PATH}.{key}" for key in ("uris[0]", "bindSecret", "minUid", "userFilter")}


GOOD = [
    pytest.param(ldap(), id="ldaps-with-a-password"),
    pytest.param(ldap(bindDn=None, bindSecret=None), id="anonymous"),
    pytest.param(ldap(uris=["ldap://one:1389", "ldap://[2001:db8::1]"], startTls=True, caSecret="ca"), id="start-tls-and-an-ipv6-address"),
    pytest.param(ldap(uris=["ldap://one"], allowPlaintext=True), id="plain-text-that-was-allowed"),
    pytest.param(ldap(uris=["ldap://one", "ldaps://two"], allowPlaintext=True, caSecret="ca"), id="plain-text-beside-tls"),
    pytest.param(ldap(userFilter="(&(objectClass=posixAccount)(|(memberOf=cn=hpc,dc=x)(uid=a*))(!(nsAccountLock=TRUE)))"), id="filter-of-parts"),
    pytest.param(ldap(userFilter="(memberOf:1.2.840.113556.1.4.1941:=cn=a\\28b\\29,dc=x)"), id="filter-with-a-rule-and-escapes"),
    pytest.param(ldap(bindDn="cn=Slurm\\, Reader,ou=service accounts,dc=example,dc=com"), id="comma-in-a-dn"),
]  # fmt: skip


@pytest.mark.parametrize("edits", GOOD)
def test_good_directory_is_taken(edits: dict[str, Any]) -> None:
    said = cluster("dev", edits).login.ldap
    assert isinstance(said, Ldap)
    assert list(said.uris) == edits["login.ldap"]["uris"]


def test_without_the_key_there_is_no_directory() -> None:
    assert cluster("dev").login.ldap is None
