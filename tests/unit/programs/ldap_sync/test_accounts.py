"""Users of config and LDAP together, and answers of LDAP that are not believed."""

import pytest

from programs.ldap_sync.accounts import Accounts, Configured, Group, User, merge, removal_fault
from tests.support.configs.stacks import KEY
from tests.unit.programs.ldap_sync.people import OTHER_KEY

CONFIGURED = Configured(
    "alice:x:10001:10001::/home/alice:/bin/bash\n",
    "alice:x:10001:\nlab:x:20001:alice\n",
    "alice:*:19000:0:99999:7:::\n",
    {"alice": f"{KEY}\n"},
)


def accounts(users: list[User], groups: list[Group] | None = None) -> Accounts:
    return Accounts({user.name: user for user in users}, {group.name: group for group in groups or []})


def crowd(count: int, keys: tuple[str, ...] = (KEY,)) -> list[User]:
    return [User(f"u{number}", 30000 + number, 30000 + number, keys=keys) for number in range(count)]


def test_users_of_both_are_in_one_file_each() -> None:
    bob = User("bob", 10002, 20002, "Bob B", "/bin/zsh", (OTHER_KEY,))
    merged = merge(CONFIGURED, accounts([bob], [Group("team", 20002, ("alice", "bob", "stranger"))]))
    assert merged.files == {
        "passwd": f"{CONFIGURED.passwd}bob:x:10002:20002:Bob B:/home/bob:/bin/zsh\n",
        "group": f"{CONFIGURED.group}team:x:20002:alice,bob\n",
        "shadow": f"{CONFIGURED.shadow}bob:*:19000:0:99999:7:::\n",
    }
    assert merged.keys == {"alice": f"{KEY}\n", "bob": f"{OTHER_KEY}\n"}
    assert merged.remarks == ()


@pytest.mark.parametrize(
    ("found", "remark"),
    [
        pytest.param(accounts([User("alice", 30001, 30001, keys=(OTHER_KEY,))]), "user alice: login.users", id="name-of-a-user"),
        pytest.param(accounts([User("eve", 10001, 30001, keys=(OTHER_KEY,))]), "user eve: the user alice", id="uid-of-a-user"),
        pytest.param(accounts([], [Group("lab", 30001)]), "group lab: login.groups", id="name-of-a-group"),
        pytest.param(accounts([], [Group("eve", 20001)]), "group eve: the group lab", id="gid-of-a-group"),
        pytest.param(accounts([], [Group("alice", 30001)]), "group alice: login.groups", id="own-group-of-a-user"),
    ],
)
def test_config_wins(found: Accounts, remark: str) -> None:
    merged = merge(CONFIGURED, found)
    assert merged.files == {"passwd": CONFIGURED.passwd, "group": CONFIGURED.group, "shadow": CONFIGURED.shadow}
    assert merged.keys == CONFIGURED.keys
    assert len(merged.remarks) == 1
    assert merged.remarks[0].startswith(remark)


@pytest.mark.parametrize(
    ("user", "groups", "has_own"),
    [
        pytest.param(User("bob", 30001, 30001), [], True, id="number-of-its-own-without-a-group"),
        pytest.param(User("bob", 30001, 30001), [Group("team", 30001)], False, id="group-of-ldap-has-the-number"),
        pytest.param(User("bob", 30001, 30001), [Group("bob", 30009)], False, id="group-of-ldap-has-the-name"),
        pytest.param(User("bob", 20001, 20001), [], False, id="group-of-the-config-has-the-number"),
        pytest.param(User("bob", 30001, 30002), [], False, id="number-of-another-kind"),
    ],
)
def test_user_has_a_group_of_its_own_only_where_there_is_none(user: User, groups: list[Group], has_own: bool) -> None:
    assert (f"\nbob:x:{user.gid}:\n" in merge(CONFIGURED, accounts([user], groups)).files["group"]) == has_own


@pytest.mark.parametrize(
    ("before", "now", "percent", "words"),
    [
        pytest.param(accounts(crowd(20)), accounts(crowd(10)), 50, "", id="half-of-many"),
        pytest.param(accounts(crowd(20)), accounts(crowd(9)), 50, "11 of 20 users", id="more-than-half-of-many"),
        pytest.param(accounts(crowd(10)), accounts(crowd(1)), 50, "", id="most-of-few"),
        pytest.param(accounts(crowd(11)), accounts(crowd(5)), 50, "6 of 11 users", id="most-of-just-more-than-few"),
        pytest.param(accounts(crowd(20)), accounts(crowd(18)), 5, "2 of 20 users", id="lower-limit"),
        pytest.param(accounts(crowd(20)), accounts(crowd(5)), 80, "", id="higher-limit"),
        pytest.param(accounts(crowd(20)), accounts([]), 99, "no user", id="emptied"),
        pytest.param(accounts(crowd(2)), accounts([]), 50, "no user", id="emptied-of-few"),
        pytest.param(accounts([]), accounts([]), 50, "no user", id="empty-from-the-start"),
        pytest.param(None, accounts([]), 50, "no user", id="empty-and-nothing-known"),
        pytest.param(None, accounts(crowd(1)), 50, "", id="nothing-known"),
        pytest.param(accounts(crowd(20)), accounts([]), 100, "", id="emptied-and-accepted"),
        pytest.param(accounts(crowd(20)), accounts(crowd(20, keys=())), 50, "20 of 20 users", id="keys-that-nobody-may-read-any-more"),
        pytest.param(accounts(crowd(20, keys=())), accounts(crowd(20, keys=())), 50, "", id="never-any-keys"),
        pytest.param(
            accounts(crowd(1), [Group(f"g{number}", 40000 + number) for number in range(20)]),
            accounts(crowd(1)),
            50,
            "20 of 20 groups",
            id="groups-gone",
        ),
        pytest.param(
            accounts(crowd(20), [Group("team", 40000, tuple(user.name for user in crowd(20)))]),
            accounts(crowd(20), [Group("team", 40000)]),
            50,
            "20 of 20 memberships",
            id="groups-emptied",
        ),
        pytest.param(
            accounts(crowd(20), [Group("team", 40000, tuple(user.name for user in crowd(20)))]),
            accounts(crowd(10), [Group("team", 40000, tuple(user.name for user in crowd(10)))]),
            50,
            "",
            id="members-gone-with-their-users",
        ),
    ],
)
def test_answer_that_removes_too_much_is_a_fault(before: Accounts | None, now: Accounts, percent: int, words: str) -> None:
    fault = removal_fault(before, now, percent)
    assert bool(fault) == bool(words)
    assert words in fault
    assert not fault or "login.ldap.maxRemovedPercent" in fault


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="list"),
        pytest.param('{"users": []}', id="no-groups"),
        pytest.param('{"users": [{"name": "a"}], "groups": []}', id="half-a-user"),
        pytest.param('{"users": [], "groups": [{"name": "a:b", "gid": 30001, "members": []}]}', id="name-that-breaks-a-line"),
        pytest.param('{"users": [], "groups": [{"name": "ab", "gid": "x", "members": []}]}', id="text-for-a-number"),
    ],
)
def test_damaged_record_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Accounts.from_json(text)
