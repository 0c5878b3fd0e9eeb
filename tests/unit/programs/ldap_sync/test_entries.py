"""Which entries of LDAP become users and groups, what they become, and what is said of the others."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from programs.ldap_sync.accounts import Accounts, Configured, Group, User, is_name, merge
from programs.ldap_sync.entries import Entry, Found, Rules, read_accounts
from slurm.people import MOST_ID, RESERVED
from slurm.public_keys import key_fault
from tests.support.configs.stacks import KEY
from tests.unit.programs.ldap_sync.people import GROUPS, OTHER_KEY, PEOPLE, person, team

RULES = Rules(
    taken_names=RESERVED | {"imaged"}, taken_uids={65534, 64030}, taken_gids={65534, 64030}, has_shell=lambda path: path != "/bin/none"
)
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----"
WEAK = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQD/"


def read(users: Sequence[Entry], groups: Sequence[Entry] = (), before: Accounts | None = None) -> Found:
    return read_accounts(users, groups, RULES, before)


def test_posix_attributes_become_a_user() -> None:
    found = read([person("ada", 20001, gidnumber="30001", cn="Ada Lovelace", loginshell="/bin/zsh")])
    assert found.accounts.users == {"ada": User("ada", 20001, 30001, "Ada Lovelace", "/bin/zsh", (KEY,))}
    assert found.remarks == ()


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        pytest.param(person("root"), "root is a name of the system", id="root"),
        pytest.param(person("slurm"), "slurm is a name of the system", id="slurm"),
        pytest.param(person("imaged"), "imaged is a name of the system", id="user-of-the-image"),
        pytest.param(person("bob", 999), "uidnumber 999 is below 1000 (login.ldap.minUid)", id="uid-of-the-system"),
        pytest.param(person("bob", 0), "uidnumber 0 is below 1000", id="uid-of-root"),
        pytest.param(person("bob", gidnumber="0"), "gidnumber 0 is below 1000 (login.ldap.minGid)", id="gid-of-root"),
        pytest.param(person("bob", 64030), "uidnumber 64030 is the system's", id="uid-of-slurm"),
        pytest.param(person("bob", 65534), "uidnumber 65534 is the system's", id="uid-of-nobody"),
        pytest.param(person("bob", gidnumber="64030"), "gidnumber 64030 is the system's", id="gid-of-slurm"),
        pytest.param(person("bob", MOST_ID + 1), "is the system's", id="uid-too-large"),
        pytest.param(person("bob", uidnumber="9" * 5000), "uidnumber is not one number", id="uid-of-thousands-of-digits"),
        pytest.param(person("bob", uidnumber="-1"), "uidnumber is not one number", id="negative-uid"),
        pytest.param(person("bob", uidnumber="0x4e21"), "uidnumber is not one number", id="hexadecimal-uid"),
        pytest.param(person("bob", uidnumber="२०००१"), "uidnumber is not one number", id="digits-of-another-script"),
        pytest.param(person("bob", uidnumber=None), "uidnumber is not one number", id="no-uid"),
        pytest.param(person("bob", uidnumber=["20001", "20002"]), "uidnumber is not one number", id="two-uids"),
        pytest.param(person("bob", uid=None), "it has no uid", id="no-name"),
        pytest.param(person("x", uid=["bob", "eve"]), "2 values of uid", id="two-names-and-neither-in-the-dn"),
        pytest.param(person("bob:x:0:0::/root:/bin/sh"), "is not a valid name here", id="colon-in-the-name"),
        pytest.param(person("bob\nroot"), "is not a valid name here", id="newline-in-the-name"),
        pytest.param(person("../root"), "is not a valid name here", id="path-as-a-name"),
        pytest.param(person(".."), "is not a valid name here", id="folder-above-as-a-name"),
        pytest.param(person("a/b"), "is not a valid name here", id="slash-in-the-name"),
        pytest.param(person("a..b"), "is not a valid name here", id="two-dots-in-the-name"),
        pytest.param(person("Bob"), "is not a valid name here", id="capital-in-the-name"),
        pytest.param(person("böb"), "is not a valid name here", id="letter-outside-ascii"),
        pytest.param(person("pc1$"), "is not a valid name here", id="machine-account"),
        pytest.param(person("1234"), "is not a valid name here", id="number-as-a-name"),
        pytest.param(person("b" * 33), "is not a valid name here", id="name-too-long"),
        pytest.param(person(""), "is not a valid name here", id="empty-name"),
    ],
)
def test_bad_user_is_left_out_and_named_and_costs_nobody_else(entry: Entry, why: str) -> None:
    found = read([entry, person("ada", 21000)])
    assert [*found.accounts.users] == ["ada"]
    assert len(found.remarks) == 1
    assert why in found.remarks[0]
    assert found.remarks[0].isascii()
    assert found.remarks[0].isprintable()


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        pytest.param(person("ada.lovelace"), "ada.lovelace", id="dot"),
        pytest.param(person("a-b_c1"), "a-b_c1", id="dash-and-underscore"),
        pytest.param(person("bob", uid=["robert", "bob"]), "bob", id="of-two-names-the-one-in-the-dn"),
        pytest.param(person("bob", gidnumber="100"), "bob", id="own-group-users"),
        pytest.param(person("bob", 1000), "bob", id="least-uid"),
    ],
)
def test_unusual_user_is_taken(entry: Entry, name: str) -> None:
    found = read([entry])
    assert ([*found.accounts.users], found.remarks) == ([name], ())


@pytest.mark.parametrize(
    ("value", "keys", "remark"),
    [
        pytest.param([KEY, OTHER_KEY], {KEY, OTHER_KEY}, "", id="two-keys"),
        pytest.param(f"{KEY}\n{OTHER_KEY}\n", {KEY, OTHER_KEY}, "", id="two-keys-in-one-value"),
        pytest.param([KEY, KEY], {KEY}, "", id="one-key-twice"),
        pytest.param(f"# work\n{KEY}\r\n", {KEY}, "", id="comment-and-carriage-return"),
        pytest.param(None, set[str](), "", id="no-key"),
        pytest.param([KEY, PRIVATE], {KEY}, "user ada: a key is a private key", id="private-key"),
        pytest.param([KEY, KEY[:60]], {KEY}, "user ada: a key is cut short", id="broken-key"),
        pytest.param([KEY, WEAK], {KEY}, "user ada: a key is", id="weak-key"),
        pytest.param([KEY, "hello"], {KEY}, "user ada: a key is not one line of a public key", id="no-key-at-all"),
        pytest.param([KEY, f'command="sh" {OTHER_KEY}'], {KEY}, "user ada: a key is not one line", id="options-of-sshd"),
        pytest.param([KEY, f"cert-authority {OTHER_KEY}"], {KEY}, "user ada: a key is not one line", id="authority"),
        pytest.param([KEY, f"{OTHER_KEY}\x1b[2J"], {KEY}, "user ada: a key is not one line", id="control-character-in-the-comment"),
    ],
)
def test_keys_are_judged_one_by_one(value: str | list[str] | None, keys: set[str], remark: str) -> None:
    found = read([person("ada", sshpublickey=value)])
    assert {*found.accounts.users["ada"].keys} == keys
    assert len(found.remarks) == (1 if remark else 0)
    assert "".join(found.remarks).startswith(remark)
    assert "b3BlbnNzaC1rZXktdjEAAAAA" not in "".join(found.remarks)


@pytest.mark.parametrize(
    ("shell", "taken"),
    [
        pytest.param("/usr/sbin/nologin", "/usr/sbin/nologin", id="of-the-image"),
        pytest.param("/bin/none", "/bin/bash", id="not-in-the-image"),
        pytest.param("bash", "/bin/bash", id="relative"),
        pytest.param("/bin/bash:x", "/bin/bash", id="colon"),
        pytest.param("/bin/../bin/sh", "/bin/bash", id="way-back"),
        pytest.param("/bin/sh\nroot::0:0:::", "/bin/bash", id="newline"),
        pytest.param(None, "/bin/bash", id="none"),
    ],
)
def test_shell_is_one_of_the_image(shell: str | None, taken: str) -> None:
    found = read([person("ada", loginshell=shell)])
    assert found.accounts.users["ada"].shell == taken
    assert bool(found.remarks) == (taken == "/bin/bash" and shell is not None)


@pytest.mark.parametrize(
    ("cn", "gecos"),
    [
        pytest.param("Ada Lovelace", "Ada Lovelace", id="plain"),
        pytest.param("Ада", "Ада", id="other-script"),
        pytest.param("a:b,c\nd", "a b c d", id="what-passwd-cannot-carry"),
        pytest.param("x" * 500, "x" * 100, id="long"),
        pytest.param(None, "", id="none"),
    ],
)
def test_full_name_is_what_passwd_can_carry(cn: str | None, gecos: str) -> None:
    assert read([person("ada", cn=cn)]).accounts.users["ada"].gecos == gecos


ADA_BEFORE = Accounts({"ada": User("ada", 20001, 20001)})


@pytest.mark.parametrize(
    ("users", "before", "kept"),
    [
        pytest.param([person("ada"), person("eve")], None, [], id="one-uid-for-two-and-no-past"),
        pytest.param([person("ada"), person("eve")], ADA_BEFORE, ["ada"], id="one-uid-for-two-and-one-had-it"),
        pytest.param([person("ada"), person("ada", 20002, dn=f"uid=ada,ou=b,{PEOPLE}")], ADA_BEFORE, ["ada"], id="one-name-for-two"),
        pytest.param([person("ada"), person("ada", dn=f"uid=ada,ou=b,{PEOPLE}")], ADA_BEFORE, [], id="two-entries-that-are-alike"),
        pytest.param([person("eve")], ADA_BEFORE, ["eve"], id="uid-that-became-free"),
        pytest.param([person("ada", 20009)], ADA_BEFORE, ["ada"], id="uid-that-changed"),
    ],
)
def test_who_had_a_name_and_a_number_keeps_them(users: list[Entry], before: Accounts | None, kept: list[str]) -> None:
    found = read(users, before=before)
    assert [*found.accounts.users] == kept
    assert len(found.remarks) == len(users) - len(kept)
    if "ada" in kept and len(users) > 1:
        assert found.accounts.users["ada"].uid == 20001


ADA_DN, BOB_DN = f"uid=ada,{PEOPLE}", f"uid=bob,{PEOPLE}"


@pytest.mark.parametrize(
    ("groups", "members"),
    [
        pytest.param([team("lab", memberuid=["bob", "ada"])], ("ada", "bob"), id="rfc2307"),
        pytest.param([team("lab", member=[ADA_DN])], ("ada",), id="rfc2307bis"),
        pytest.param([team("lab", uniquemember=[BOB_DN])], ("bob",), id="unique-member"),
        pytest.param([team("lab", member=[ADA_DN], memberuid="bob")], ("ada", "bob"), id="both"),
        pytest.param([team("lab", member=[f"uid=gone,{PEOPLE}"])], (), id="member-that-is-no-user"),
        pytest.param([team("lab", memberuid=["a:b", "c\nd", "x,y"])], (), id="names-that-break-a-line"),
        pytest.param([team("lab", member=[f"cn=sub,{GROUPS}"]), team("sub", 30002, member=[ADA_DN])], ("ada",), id="group-in-a-group"),
        pytest.param(
            [team("lab", member=[f"cn=sub,{GROUPS}"]), team("sub", 30002, member=[f"cn=lab,{GROUPS}", BOB_DN])], ("bob",), id="a-circle"
        ),
    ],
)
def test_members_of_a_group(groups: list[Entry], members: tuple[str, ...]) -> None:
    found = read([person("ada"), person("bob", 20002)], groups)
    assert found.accounts.groups["lab"] == Group("lab", 30001, members)
    assert found.remarks == ()


@pytest.mark.parametrize(
    ("group", "why"),
    [
        pytest.param(team("sudo"), "sudo is a name of the system", id="group-of-the-system"),
        pytest.param(team("lab", 27), "gidnumber 27 is below 1000", id="gid-of-the-system"),
        pytest.param(team("lab", 100), "the gid 100 is the group users", id="group-users"),
        pytest.param(team("Domain Users"), "is not a valid name here", id="blank-in-the-name"),
        pytest.param(team("lab", 64030), "is the system's", id="gid-of-slurm"),
    ],
)
def test_bad_group_is_left_out_and_named(group: Entry, why: str) -> None:
    found = read([person("ada")], [group, team("good", 30009)])
    assert [*found.accounts.groups] == ["good"]
    assert len(found.remarks) == 1
    assert why in found.remarks[0]


NASTY = st.sampled_from(
    ["ada", "root", "a:b", "a\nb", "../x", "..", "/", ",", "\x00", "20001", "20002", "0", "-1", KEY, f"{KEY}\n{KEY}", PRIVATE, "", "\u2028"]
)
TEXT = NASTY | st.text(max_size=12) | st.binary(max_size=12).map(lambda data: data.decode("latin-1"))
VALUES = st.lists(TEXT.map(str.encode) | st.binary(max_size=20), max_size=3)
NAMES = ("uid", "uidnumber", "gidnumber", "cn", "loginshell", "sshpublickey", "memberuid", "member", "uniquemember")
DNS = st.sampled_from([ADA_DN, BOB_DN, f"cn=lab,{GROUPS}"]) | TEXT
ENTRIES = st.builds(Entry, DNS, st.dictionaries(st.sampled_from(NAMES), VALUES))


def likely(name: str, uid: int, gid: int, cn: str, keys: list[bytes], shell: str) -> Entry:
    """An entry that may well be taken."""
    texts = {"uid": name, "uidnumber": str(uid), "gidnumber": str(gid), "cn": cn, "loginshell": shell}
    return Entry(f"uid={name},{PEOPLE}", {**{key: [text.encode()] for key, text in texts.items()}, "sshpublickey": keys})


IDS = st.integers(998, 1003) | st.integers()
LIKELY = st.builds(likely, st.sampled_from(["ada", "bob", "eve", "alice", "root"]) | TEXT, IDS, IDS, TEXT, VALUES, TEXT)
CONFIGURED = Configured(
    "alice:x:1001:1001::/home/alice:/bin/bash\n", "alice:x:1001:\nlab:x:1002:alice\n", "alice:*:::::::\n", {"alice": KEY}
)


@given(st.lists(ENTRIES | LIKELY, max_size=6), st.lists(ENTRIES | LIKELY, max_size=4))
@settings(max_examples=200, deadline=None)
def test_no_entry_makes_a_line_that_the_formats_do_not_allow(users: list[Entry], groups: list[Entry]) -> None:
    found = read(users, groups)
    assert Accounts.from_json(found.accounts.to_json()) == found.accounts
    assert all(remark.isprintable() for remark in found.remarks)
    merged = merge(CONFIGURED, found.accounts)
    assert all(merged.files[name].startswith(text) for name, text in (("passwd", CONFIGURED.passwd), ("group", CONFIGURED.group)))
    passwd = rows(merged.files["passwd"], 7)
    assert len({row[0] for row in passwd}) == len({row[2] for row in passwd}) == len(passwd)
    for name, password, uid, gid, _, home, shell in passwd:
        assert (is_name(name), name in RESERVED, password, home) == (True, False, "x", f"/home/{name}")
        assert 1000 <= int(uid) <= MOST_ID
        assert 1000 <= int(gid) <= MOST_ID or gid == "100"
        assert shell.startswith("/")
    group_rows = rows(merged.files["group"], 4)
    assert len({row[0] for row in group_rows}) == len({row[2] for row in group_rows}) == len(group_rows)
    known = {row[0] for row in passwd}
    for name, _, gid, members in group_rows:
        assert (is_name(name), name in RESERVED) == (True, False)
        assert 1000 <= int(gid) <= MOST_ID
        assert {each for each in members.split(",") if each} <= known
    assert [row[0] for row in rows(merged.files["shadow"], 9)] == [row[0] for row in passwd]
    for name, text in merged.keys.items():
        assert name in known
        assert [key_fault(line) for line in text.split("\n")[:-1]] == [None] * text.count("\n") if name != "alice" else text == KEY


def rows(text: str, fields: int) -> list[list[str]]:
    """The lines of a file, each of so many fields; every line ends, and none is hidden in another."""
    assert text.endswith("\n")
    lines = text.removesuffix("\n").split("\n")
    assert all(line.isprintable() for line in lines)
    made = [line.split(":") for line in lines]
    assert {len(row) for row in made} == {fields}
    return made
