"""The program around the plan: outages are told once, a bad file changes nothing, commands are what sacctmgr takes."""

import json
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from programs.account_sync import run
from programs.account_sync.plan import Account, Association, Change, State
from programs.account_sync.run import EARLY_S, PERIOD_S, RETRY_S, Reporter, converge, tick
from programs.account_sync.slurm import SlurmError, command
from tests.unit.programs.account_sync.fake import NOTHING, FakeSlurm

WANTED = State({"a": Account()}, {("a", "u"): Association()}, {}, {"u": "a"})


def test_state_is_told_when_it_begins_and_again_only_after_it_ended() -> None:
    said: list[str] = []
    reporter = Reporter(said.append)
    for lines in (["down"], ["down"], [], ["down"]):
        reporter.states("slurmdbd", lines)
    assert said == ["down", "down"]


@pytest.mark.parametrize(
    "text", [pytest.param("{", id="half-a-file"), pytest.param('{"accounts": {}}', id="key-missing"), pytest.param("", id="empty")]
)
def test_file_that_cannot_be_read_changes_nothing_and_is_told_once(text: str, tmp_path: Path) -> None:
    file, said = tmp_path / "accounts.json", list[str]()
    file.write_text(text)
    reporter = Reporter(said.append)
    assert [tick(file, reporter), tick(file, reporter)] == [RETRY_S, RETRY_S]
    assert len(said) == 1
    assert "cannot be read, nothing is changed" in said[0]


def test_outage_of_slurmdbd_is_told_once_and_ends_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, said = tmp_path / "accounts.json", list[str]()
    file.write_text(json.dumps({"cluster": "t", "qos": {}, "accounts": {"a": {"users": ["u"]}}}))
    slurm = FakeSlurm(NOTHING, is_database_up=False)

    def found(cluster: str) -> FakeSlurm:
        return slurm

    monkeypatch.setattr(run, "Slurm", found)
    reporter = Reporter(said.append)
    assert [tick(file, reporter), tick(file, reporter)] == [EARLY_S, EARLY_S]
    assert said == ["slurmdbd does not answer, trying every 1 s: Connection refused"]
    slurm.is_database_up = True
    assert [tick(file, reporter), tick(file, reporter)] == [PERIOD_S, PERIOD_S]
    assert ("a", "u") in slurm.state.members


def test_outage_between_two_commands_ends_the_tick() -> None:
    class Failing(FakeSlurm):
        def apply(self, change: Change) -> None:
            self.is_database_up = not self.log
            super().apply(change)

    slurm = Failing(NOTHING)
    with pytest.raises(SlurmError):
        converge(WANTED, slurm, Reporter(lambda _: None))
    assert len(slurm.log) == 1


def test_slurmctld_is_asked_only_when_something_is_to_go() -> None:
    class Asked(FakeSlurm):
        asked = 0

        def usage(self):  # type: ignore[no-untyped-def]
            Asked.asked += 1
            return super().usage()

    slurm = Asked(NOTHING)
    assert converge(WANTED, slurm, Reporter(lambda _: None)) == PERIOD_S
    assert Asked.asked == 0
    assert converge(State({}, {}, {}, {}), slurm, Reporter(lambda _: None)) == PERIOD_S
    assert Asked.asked > 0


def test_users_have_accounts_seconds_after_slurmctld_is_there() -> None:
    slurm = FakeSlurm(replace(NOTHING, accounts={}, members={}, is_registered=False))
    assert converge(WANTED, slurm, Reporter(lambda _: None)) == EARLY_S
    assert EARLY_S <= 2
    slurm.state = NOTHING
    assert converge(WANTED, slurm, Reporter(lambda _: None)) == PERIOD_S
    assert ("a", "u") in slurm.state.members


def test_removal_waits_for_jobs_and_done_is_said_once_all_is_removed() -> None:
    said: list[str] = []
    reporter = Reporter(said.append)
    slurm = FakeSlurm(NOTHING)
    converge(WANTED, slurm, reporter)
    slurm.jobs.add(("a", "u", "normal"))
    del said[:]
    assert converge(State({}, {}, {}, {}), slurm, reporter) == RETRY_S
    assert said == [
        "modify user u in a MaxSubmitJobs=0",
        "u in account a: not removed yet, they have jobs, which run on; no new ones start",
    ]
    slurm.jobs.clear()
    assert converge(State({}, {}, {}, {}), slurm, reporter) == PERIOD_S
    assert said[2:] == ["delete user u in a", "delete account a", "all accounts, users and QOS are as the config has them"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            Change("add", "user", ("u", "v"), "a", (("MaxJobs", "1"),)), "add user u,v cluster=t account=a MaxJobs=1", id="add-users"
        ),
        pytest.param(
            Change("modify", "user", ("u",), "", (("DefaultAccount", "a"),)),
            "modify user where name=u cluster=t set DefaultAccount=a",
            id="default-account",
        ),
        pytest.param(Change("delete", "user", ("u",), "a"), "delete user where name=u cluster=t account=a", id="delete-user"),
        pytest.param(Change("delete", "account", ("a", "b")), "delete account where name=a,b", id="delete-accounts-and-their-records"),
        pytest.param(Change("modify", "qos", ("q",), "", (("Priority", "1"),)), "modify qos where name=q set Priority=1", id="modify-qos"),
    ],
)
def test_change_as_sacctmgr_takes_it(change: Change, words: str) -> None:
    assert command(change, "t") == ["sacctmgr", "-i", *words.split()]


@pytest.mark.parametrize("said", [{"accounts": {"a": {"groups": ["root"]}}}, {"accounts": {}, "defaultAccount": "a", "directory": True}])
def test_file_of_users_that_cannot_be_read_is_not_an_empty_one(
    said: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The C library says nothing of it: everybody would leave the account."""
    file, lines = tmp_path / "accounts.json", list[str]()
    file.write_text(json.dumps({"cluster": "t", "qos": {}, **said}))
    monkeypatch.setattr(run, "_PASSWD", tmp_path / "passwd")
    tick(file, Reporter(lines.append))
    assert len(lines) == 1
    assert "cannot be read, nothing is changed: FileNotFoundError" in lines[0]


def test_people_are_all_above_the_systems_ids_but_the_images_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [("root", 0), ("slurm", 64030), ("ada", 1000), ("grace", 70_000), ("www-data", 33)]
    users = [pwd.struct_passwd((name, "x", uid, uid, "", "/", "/bin/sh")) for name, uid in entries]
    (tmp_path / "system").write_text("root:x:0:0::/:/bin/sh\nslurm:x:64030:64030::/:/bin/sh\n")
    monkeypatch.setattr(run, "_SYSTEM", tmp_path / "system")
    monkeypatch.setattr(run.pwd, "getpwall", lambda: users)
    assert run.Directory().people() == ["ada", "grace"]
