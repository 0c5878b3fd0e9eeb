"""From the rendered file and the system's groups to what is wanted."""

import json
from typing import Any

import pytest

from programs.account_sync.plan import ROOT, Account, Association, State, Usage, plan_accounts
from programs.account_sync.settings import from_json
from programs.account_sync.wanted import read_wanted

GROUPS = {"vision": {"ada", "bob"}, "empty": set[str](), "odd": {"Ada", "root", "al,ice"}}


def read(accounts: dict[str, Any], **more: Any) -> Any:
    settings = from_json(json.dumps({"cluster": "t", "accounts": accounts, "qos": {}, **more}))
    wanted, notes = read_wanted(settings, GROUPS.get, lambda: {"dan", "ada"})
    return wanted, notes


def test_members_of_groups_and_named_users_are_in_the_account() -> None:
    wanted, notes = read({"a": {"users": ["carol"], "groups": ["vision"], "perUser": {"ada": {"MaxJobs": "2"}}}})
    assert wanted.members == {("a", "carol"): Association(), ("a", "ada"): Association({"MaxJobs": "2"}), ("a", "bob"): Association()}
    assert notes == []


def test_group_without_members_is_not_an_unknown_group() -> None:
    assert read({"a": {"groups": ["empty"]}})[0].unknown == frozenset()
    wanted, notes = read({"a": {"groups": ["gone"]}})
    assert wanted.unknown == {"a"}
    assert notes == ["group gone of account a cannot be found; nobody leaves the account until it can"]


def test_first_account_is_the_default_unless_another_says_so() -> None:
    accounts = {"a": {"users": ["ada", "bob"]}, "b": {"users": ["ada", "bob"]}}
    assert read(accounts, defaults={"bob": "b"})[0].defaults == {"ada": "a", "bob": "b"}


def test_defaults_do_not_move_while_a_group_is_unknown() -> None:
    accounts = {"a": {"groups": ["gone"]}, "b": {"users": ["ada", "bob"]}}
    assert read(accounts, defaults={"bob": "b"})[0].defaults == {"bob": "b"}


def test_people_in_no_account_are_in_the_default_account() -> None:
    wanted, _ = read({"a": {"groups": ["vision"]}}, defaultAccount="guests", people=["ada", "carol"])
    assert wanted.accounts == {"a": Account(), "guests": Account()}
    assert [user for account, user in wanted.members if account == "guests"] == ["carol"]
    assert wanted.defaults["carol"] == "guests"


def test_people_of_a_directory_are_found_and_never_taken_for_gone() -> None:
    wanted, _ = read({"a": {"groups": ["vision"]}}, defaultAccount="guests", people=["carol"], directory=True)
    assert [user for account, user in wanted.members if account == "guests"] == ["carol", "dan"]
    assert wanted.unknown == {"guests"}


@pytest.mark.parametrize(
    ("spec", "leave"),
    [
        pytest.param({"defaultAccount": "guests", "people": ["carol"], "directory": True}, "", id="not-while-there-is-a-directory"),
        pytest.param({"defaultAccount": "others", "people": ["carol"], "directory": True}, "carol, dan, gone", id="with-the-account"),
        pytest.param({"defaultAccount": "guests", "people": ["carol"], "directory": False}, "dan, gone", id="with-the-directory"),
    ],
)
def test_people_leave_the_default_account_with_it_or_with_the_directory(spec: dict[str, Any], leave: str) -> None:
    people = ("carol", "dan", "gone")
    members = {("guests", user): Association() for user in people}
    present = State({"guests": Account()}, members, {}, dict.fromkeys(people, "guests"))
    changes = plan_accounts(read({}, **spec)[0], present, Usage(frozenset(), frozenset())).changes
    closed = [str(change) for change in changes if "MaxSubmitJobs=0" in str(change)]
    assert closed == ([f"modify user {leave} in guests MaxSubmitJobs=0"] if leave else [])


def test_nobody_comes_to_the_default_account_while_a_group_is_unknown() -> None:
    wanted, _ = read({"a": {"groups": ["gone"]}}, defaultAccount="guests", people=["carol"])
    assert wanted.members == {}
    assert wanted.unknown == {"a", "guests"}


def test_slurms_own_user_has_an_association_where_they_are_enforced() -> None:
    assert read({}, daemons=["slurm"])[0].members == {(ROOT, "slurm"): Association()}


def test_names_that_slurm_would_alter_are_left_out_and_told() -> None:
    wanted, notes = read({"a": {"groups": ["odd"]}})
    assert wanted.members == {}
    assert notes == [f"user {name!r} of account a is left out: Slurm keeps user names in lower case" for name in ("Ada", "al,ice")]


@pytest.mark.parametrize("limit", [pytest.param({"MaxJobs": "x"}, id="value"), pytest.param(7, id="kind")])
def test_file_that_nobody_rendered_is_refused(limit: Any) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)):
        read({"a": {"settings": limit}})
