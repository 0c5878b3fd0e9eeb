"""The plan of Slurm's accounts: whatever is wanted and whatever is there, ours becomes as wanted and others' stays as it is."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from programs.account_sync.plan import MARK, NORMAL, ROOT, Account, Association, Change, Member, Qos, State, Usage, plan_accounts
from programs.account_sync.run import RETRY_S, Reporter, converge
from tests.unit.programs.account_sync.fake import NOTHING, FakeSlurm, Killed

ACCOUNTS = ("a", "b", "c", "d", "e")
USERS = ("u", "v", "w", "x")
QOS_NAMES = ("high", "low", NORMAL)

LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "MaxJobs": st.sampled_from(["0", "3"]),
        "MaxSubmitJobs": st.sampled_from(["0", "9"]),
        "GrpTRES": st.sampled_from(["cpu=4", "cpu=4,gres/gpu=2", "mem=1024"]),
        "Fairshare": st.sampled_from(["parent", "7"]),
    },
)
QOS_LIMITS = st.fixed_dictionaries(
    {}, optional={"Priority": st.just("5"), "GrpSubmitJobs": st.just("0"), "MaxTRESPerUser": st.just("cpu=1")}
)


@st.composite
def states(draw: st.DrawFn, is_wanted: bool) -> State:
    """A tree of accounts with users and QOS; of a present one only some parts are ours."""
    ours = st.just(True) if is_wanted else st.booleans()
    qos = {
        name: Qos(draw(st.sampled_from([MARK, f"{MARK}: for tests"])) if draw(ours) else f"{name} of others", draw(QOS_LIMITS))
        for name in QOS_NAMES
        if draw(st.booleans())
    }
    listed = {"QosLevel": ",".join(sorted(qos))} if qos and draw(st.booleans()) else {}
    accounts: dict[str, Account] = {}
    for name in draw(st.permutations(ACCOUNTS)):
        if draw(st.booleans()):
            parent = draw(st.sampled_from([ROOT, *accounts]))
            words = draw(st.sampled_from(["", "Words"])) if is_wanted else name
            organization = "" if is_wanted else parent if parent != ROOT else name
            accounts[name] = Account(parent, words, organization, draw(LIMITS) | (listed if draw(st.booleans()) else {}), draw(ours))
    members: dict[Member, Association] = {
        (account, user): Association(draw(LIMITS), draw(ours)) for account in accounts for user in USERS if draw(st.booleans())
    }
    defaults: dict[str, str] = {}
    for user in USERS:
        if having := [account for account, other in members if other == user]:
            defaults[user] = draw(st.sampled_from(having))
    if is_wanted:
        return State(accounts, members, qos, defaults)
    return State({**NOTHING.accounts, **accounts}, {**NOTHING.members, **members}, {**NOTHING.qos, **qos}, {**NOTHING.defaults, **defaults})


def settle(wanted: State, slurm: FakeSlurm) -> list[str]:
    """Ticks until one changes nothing; gives what was said."""
    said: list[str] = []
    for _ in range(10):
        done = len(slurm.log)
        converge(wanted, slurm, Reporter(said.append))
        if len(slurm.log) == done:
            return said
    raise AssertionError(f"no end: {slurm.log[-5:]}")


def others(state: State) -> tuple[dict[str, Account], dict[Member, Association], dict[str, Qos]]:
    """What is not ours."""
    return (
        {name: each for name, each in state.accounts.items() if not each.is_ours},
        {member: each for member, each in state.members.items() if not each.is_ours},
        {name: each for name, each in state.qos.items() if not each.is_ours},
    )


def assert_as_wanted(wanted: State, before: State, after: State) -> None:
    for name, each in wanted.accounts.items():
        found = after.accounts[name]
        assert (found.parent, found.settings, found.is_ours) == (each.parent, each.settings, True)
        assert found.description == (each.description or name).lower()
    for member, one in wanted.members.items():
        assert after.members[member] == replace(one, is_ours=True)
    for name in {name for name, each in after.qos.items() if each.is_ours} - wanted.qos.keys():
        assert is_named(after, name)
    assert wanted.qos.items() <= after.qos.items()
    for user, account in wanted.defaults.items():
        assert after.defaults[user] == account
    # Nothing of others' has changed, but for what the config took over.
    accounts, members, qos = others(before)
    for name, old in accounts.items():
        assert name in wanted.accounts or after.accounts[name] == old
    for member, old in members.items():
        assert member in wanted.members or after.members[member] == old
    for name, old in qos.items():
        assert name in wanted.qos or after.qos[name] == old
    # What was ours and is not wanted is gone, unless others have put something into it.
    assert {member for member, each in after.members.items() if each.is_ours} == {*wanted.members}
    for name in {name for name, each in after.accounts.items() if each.is_ours} - wanted.accounts.keys():
        assert foreign_below(after, name)


def is_named(state: State, qos: str) -> bool:
    """True when an account or association names the QOS: of others, or an account of ours that cannot go."""
    return any(qos in each.settings.get("QosLevel", "").split(",") for each in (*state.accounts.values(), *state.members.values()))


def foreign_below(state: State, name: str) -> bool:
    if any(account == name and not each.is_ours for (account, _), each in state.members.items()):
        return True
    return any(each.parent == name and (not each.is_ours or foreign_below(state, child)) for child, each in state.accounts.items())


@given(states(is_wanted=True), states(is_wanted=False))
@settings(deadline=None, max_examples=200)
def test_ours_becomes_as_wanted_and_others_stay(wanted: State, present: State) -> None:
    slurm = FakeSlurm(present)
    settle(wanted, slurm)
    assert_as_wanted(wanted, present, slurm.state)
    assert plan_accounts(wanted, slurm.state, slurm.usage()).changes == ()


@given(states(is_wanted=True), states(is_wanted=False), st.integers(0, 12))
@settings(deadline=None, max_examples=150)
def test_run_that_is_killed_between_two_commands_is_finished_by_the_next(wanted: State, present: State, kill_at: int) -> None:
    slurm = FakeSlurm(present, kill_at=kill_at)
    try:
        settle(wanted, slurm)
    except Killed:
        slurm.kill_at = -1
        settle(wanted, slurm)
    assert_as_wanted(wanted, present, slurm.state)


@given(states(is_wanted=True), states(is_wanted=False), st.data())
@settings(deadline=None, max_examples=150)
def test_what_jobs_use_stays_until_they_have_ended(wanted: State, present: State, data: st.DataObject) -> None:
    members = [*present.members]
    jobs = data.draw(st.sets(st.tuples(st.sampled_from(members), st.sampled_from([*present.qos])), max_size=4))
    slurm = FakeSlurm(present, {(account, user, qos) for (account, user), qos in jobs})
    settle(wanted, slurm)  # the fake asserts that nothing in use is removed
    for (account, user), qos in jobs:
        assert (account, user) in slurm.state.members
        assert qos in slurm.state.qos
        going = present.members[account, user].is_ours and (account, user) not in wanted.members
        assert not going or slurm.state.members[account, user].settings["MaxSubmitJobs"] == "0"
    slurm.jobs.clear()
    settle(wanted, slurm)
    assert_as_wanted(wanted, present, slurm.state)


@given(states(is_wanted=True), states(is_wanted=False))
@settings(deadline=None, max_examples=100)
def test_nothing_goes_while_slurmctld_is_silent(wanted: State, present: State) -> None:
    slurm = FakeSlurm(present, is_controller_up=False)
    settle(wanted, slurm)
    assert {change.kind for change in slurm.log if change.verb == "delete"} <= {"account"}
    assert present.members.keys() <= slurm.state.members.keys()
    assert present.qos.keys() <= slurm.state.qos.keys()


def test_users_with_the_same_settings_share_a_command() -> None:
    users = [f"user{number}" for number in range(1200)]
    wanted = State({"a": Account()}, {("a", user): Association() for user in users}, {}, dict.fromkeys(users, "a"))
    changes = plan_accounts(wanted, NOTHING, None).changes
    assert [(change.verb, change.kind, len(change.names)) for change in changes] == [
        ("add", "account", 1),
        ("add", "user", 500),
        ("add", "user", 500),
        ("add", "user", 200),
    ]


def test_accounts_wait_for_slurmctld_to_register_but_qos_do_not() -> None:
    # A partition that names a QOS keeps slurmctld from starting until the QOS is there.
    wanted = State({"a": Account()}, {}, {"high": Qos()}, {})
    plan = plan_accounts(wanted, replace(NOTHING, accounts={}, members={}, is_registered=False), None)
    assert [change.kind for change in plan.changes] == ["qos"]
    assert plan.waiting == ("slurmctld has not made itself known to slurmdbd yet",)


def test_nobody_leaves_an_account_whose_group_is_unknown() -> None:
    present = replace(
        NOTHING, accounts={**NOTHING.accounts, "a": Account(description="a", organization="a")}, members={("a", "u"): Association()}
    )
    wanted = State({"a": Account()}, {}, {}, {}, unknown=frozenset("a"))
    assert plan_accounts(wanted, present, Usage(frozenset(), frozenset())).changes == ()


def test_closed_member_stays_while_a_nameless_user_has_a_job_there() -> None:
    """Who has left the directory is a number to squeue."""
    accounts = {**NOTHING.accounts, "a": Account(description="a", organization="a")}
    present = replace(NOTHING, accounts=accounts, members={("a", "u"): Association({"MaxSubmitJobs": "0"})})
    wanted = State({"a": Account(description="a", organization="a")}, {}, {}, {})
    strangers = plan_accounts(wanted, present, Usage(frozenset(), frozenset(), frozenset({"a"})))
    assert not any(change.verb == "delete" for change in strangers.changes)
    nobody = plan_accounts(wanted, present, Usage(frozenset(), frozenset()))
    assert any(change.verb == "delete" and change.names == ("u",) for change in nobody.changes)


@pytest.mark.parametrize(
    ("user", "is_ours"), [pytest.param("u", False, id="user-of-others"), pytest.param("", True, id="association-of-a-partition")]
)
def test_account_that_others_use_stays_and_says_why(user: str, is_ours: bool) -> None:
    present = replace(
        NOTHING,
        accounts={**NOTHING.accounts, "a": Account()},
        members={("a", user): Association({}, is_ours)} if user else {},
        foreign=frozenset() if user else frozenset("a"),
    )
    plan = plan_accounts(State({}, {}, {}, {}), present, None)
    assert plan.changes == ()
    assert "account a: stays, others have put into it" in plan.waiting[0]


def test_what_is_left_of_a_batch_is_done_when_one_name_is_refused() -> None:
    users = [f"u{number}" for number in range(9)]
    present = replace(
        NOTHING,
        accounts={**NOTHING.accounts, "a": Account(description="a", organization="a")},
        members={("a", user): Association({"MaxSubmitJobs": "0"}) for user in users},
    )
    slurm = FakeSlurm(present, stubborn=frozenset({"u4"}))
    said: list[str] = []
    assert converge(State({"a": Account()}, {}, {}, {}), slurm, Reporter(said.append)) == RETRY_S
    assert [*slurm.state.members] == [("a", "u4")]
    assert "REFUSED: delete user u4 in a: Job(s) active, cancel job(s) before remove" in said


def test_command_line_shows_a_few_names_and_a_count() -> None:
    assert (
        str(Change("add", "user", tuple("abcdefgh"), "acct", (("MaxJobs", "1"),))) == "add user a, b, c, d, e and 3 more in acct MaxJobs=1"
    )
