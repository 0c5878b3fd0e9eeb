"""Rounds of the program: what an outage, a doubtful answer and a full disk do to the files and to the log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from configs.models.ldap import Ldap
from programs.ldap_sync.accounts import Configured
from programs.ldap_sync.entries import Entry, Rules
from programs.ldap_sync.files import Folder
from programs.ldap_sync.run import Keeper, pause_s
from tests.support.configs.stacks import KEY
from tests.unit.programs.ldap_sync.people import person, team

ALICE = Configured(
    "alice:x:10001:10001::/home/alice:/bin/bash\n", "alice:x:10001:\n", "alice:*:19000:0:99999:7:::\n", {"alice": f"{KEY}\n"}
)


@dataclass
class Site:
    """A folder, what LDAP says, and what the program says. Its clock moves by 20 s a round."""

    path: Path
    answer: Sequence[Entry] | Exception = ()
    groups: Sequence[Entry] = ()
    configured: Configured = ALICE
    said: list[str] = field(default_factory=list[str])
    now: float = 0
    percent: int = 50
    before_step: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """The program begins anew, knowing only what is on the disk."""
        folder = Folder(self.path, before_step=lambda step: self.before_step(step))
        self.keeper = Keeper(folder, self.read, lambda: self.configured, Rules(), self.percent, say=self.said.append)

    def read(self) -> tuple[list[Entry], list[Entry]]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return [*self.answer], [*self.groups]

    def round(self, answer: Sequence[Entry] | Exception | None = None) -> bool:
        self.answer = self.answer if answer is None else answer
        self.now += 20
        self.said.clear()
        return self.keeper.round(self.now)

    @property
    def users(self) -> list[str]:
        return [line.split(":")[0] for line in (self.path / "passwd").read_text().splitlines()]

    @property
    def with_keys(self) -> list[str]:
        return sorted(file.name for file in (self.path / "keys").iterdir())


ADA, BOB = person("ada"), person("bob", 20002)
DOWN = OSError("ldaps://one: no answer")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_users_come_and_go_with_ldap(site: Site) -> None:
    assert site.round([ADA, BOB])
    assert (site.users, site.with_keys) == (["alice", "ada", "bob"], ["ada", "alice", "bob"])
    assert site.round([ADA])
    assert (site.users, site.with_keys) == (["alice", "ada"], ["ada", "alice"])


def test_without_any_answer_users_of_the_config_are_there(site: Site) -> None:
    assert not site.round(DOWN)
    assert site.users == ["alice"]
    site.configured = Configured("carol:x:10003:10003::/home/carol:/bin/bash\n", "carol:x:10003:\n", "carol:*:::::::\n", {})
    assert not site.round()
    assert site.users == ["carol"]


def test_outage_keeps_users_is_said_once_and_its_end_too(site: Site) -> None:
    site.round([ADA])
    assert not site.round(DOWN)
    assert [line for line in site.said if "no answer" in line]
    assert not site.round()
    assert site.said == []
    assert site.users == ["alice", "ada"]
    assert site.round([ADA])
    assert site.said == ["LDAP answers again"]


def test_outage_that_changes_is_said_again(site: Site) -> None:
    site.round(DOWN)
    site.round(OSError("ldaps://one: wrong password"))
    assert len(site.said) == 1
    assert "wrong password" in site.said[0]


def test_config_changes_while_ldap_is_away(site: Site) -> None:
    site.round([ADA])
    site.configured = Configured()
    site.round(DOWN)
    assert (site.users, site.with_keys) == (["ada"], ["ada"])


def test_start_while_ldap_is_away_keeps_users_and_takes_the_config(site: Site) -> None:
    site.round([ADA])
    site.configured = Configured()
    site.start()
    assert not site.round(DOWN)
    assert site.users == ["ada"]


def test_first_start_that_was_killed_half_way_loses_nobody_in_an_outage(site: Site) -> None:
    site.round([ADA])
    (site.path / "passwd").unlink()
    site.start()
    assert not site.round(DOWN)
    assert (site.users, site.with_keys) == (["alice", "ada"], ["ada", "alice"])


def test_start_with_a_damaged_record_touches_nothing_until_ldap_answers(site: Site) -> None:
    site.round([ADA])
    (site.path / "accepted.json").write_text("{")
    site.start()
    site.round(DOWN)
    assert site.users == ["alice", "ada"]
    assert site.round([BOB])
    assert site.users == ["alice", "bob"]


def test_emptied_directory_keeps_everyone_and_says_which_key_accepts_it(site: Site) -> None:
    site.round([ADA])
    assert not site.round([])
    assert site.users == ["alice", "ada"]
    assert "login.ldap.maxRemovedPercent" in site.said[0]
    site.percent = 100
    site.start()
    assert site.round([])
    assert site.users == ["alice"]


def test_limit_holds_over_a_restart(site: Site) -> None:
    crowd = [person(f"u{number}", 30000 + number) for number in range(20)]
    site.round(crowd)
    site.start()
    assert not site.round(crowd[:5])
    assert len(site.users) == 21


def test_left_out_entry_is_said_once_and_again_when_it_changes(site: Site) -> None:
    site.round([ADA, person("root", 20009)])
    assert [line for line in site.said if "left out" in line]
    site.round()
    assert site.said == []
    site.round(DOWN)
    site.round([ADA, person("root", 20009)])
    assert site.said == ["LDAP answers again"]
    site.round([ADA, person("root", 20009), person("slurm", 20010)])
    assert ["slurm" in line for line in site.said] == [True]


def test_thousands_of_bad_entries_do_not_flood_the_log(site: Site) -> None:
    site.round([ADA, *(person(f"B{number}", 30000 + number) for number in range(5000))])
    assert len(site.said) < 110
    assert any("4900 more" in line for line in site.said)


def test_group_of_ldap_holds_users_of_the_config_too(site: Site) -> None:
    site.groups = [team("lab", memberuid=["alice", "ada", "stranger"])]
    site.round([ADA])
    assert "lab:x:30001:ada,alice\n" in (site.path / "group").read_text()


def test_full_disk_is_a_fault_and_mends_itself(site: Site) -> None:
    site.round([ADA])

    def full(step: str) -> None:
        raise OSError(28, "No space left on device")

    site.before_step = full
    assert not site.round([ADA, BOB])
    assert "No space left" in site.said[0]
    site.before_step = lambda _: None
    assert site.round()
    assert site.users == ["alice", "ada", "bob"]


def test_config_that_cannot_be_read_is_a_fault_and_the_files_stay(site: Site, tmp_path: Path) -> None:
    site.round([ADA])

    def gone() -> Configured:
        raise FileNotFoundError(2, "No such file", "passwd")

    site.keeper.configured = gone
    assert not site.round([ADA, BOB])
    assert site.users == ["alice", "ada"]


def test_what_others_did_to_the_files_is_mended(site: Site) -> None:
    site.round([ADA])
    (site.path / "passwd").write_text("broken")
    (site.path / "keys/mallory").write_text(KEY)
    for _ in range(31):
        site.round()
    assert (site.users, site.with_keys) == (["alice", "ada"], ["ada", "alice"])


@pytest.mark.parametrize(
    ("refresh_s", "failures", "pause"),
    [
        pytest.param(20, 0, 20, id="all-is-well"),
        pytest.param(20, 1, 30, id="first-failure"),
        pytest.param(20, 1000, 30, id="long-outage"),
        pytest.param(5, 1, 10, id="short-refresh"),
        pytest.param(5, 3, 30, id="short-refresh-and-some-failures"),
        pytest.param(300, 5, 300, id="never-more-often-than-asked-for"),
    ],
)
def test_pause_grows_with_failures_up_to_a_bound(refresh_s: float, failures: int, pause: float) -> None:
    assert pause_s(refresh_s, failures) == pause


@pytest.mark.parametrize("failures", [0, 1, 2, 10, 1000])
def test_default_leaves_a_removal_half_a_minute_also_after_any_outage(failures: int) -> None:
    assert pause_s(Ldap.model_fields["refresh_s"].default, failures) <= 30
