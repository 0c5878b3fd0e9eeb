"""The law of removal: a version whose use is unknown is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.root_clean.plan import (
    ended_jobs,
    is_needed,
    jobs_in_versions,
    jobs_without_a_version,
    judge,
    judge_aside,
    pause_s,
    read_note,
    tell_unknown,
)

NOW = 1_800_000_000
DAY = 86_400
JOBS = st.lists(st.integers(1, 30).map(str), unique=True)


@pytest.mark.parametrize(
    ("version", "current", "needed"),
    [
        pytest.param("2", "versions/9", True, id="declared"),
        pytest.param("1", "versions/1", True, id="current"),
        pytest.param("1", "versions/9", False, id="neither"),
        pytest.param("1", "versions/12", False, id="start-of-the-current-name"),
        pytest.param("1", "1", False, id="link-to-something-else"),
    ],
)
def test_version_is_needed(version: str, current: str, needed: bool) -> None:
    assert is_needed(version, ["2", "3"], current) == needed


@pytest.mark.parametrize(
    ("note", "since"),
    [
        pytest.param("1700000000\n", 1_700_000_000, id="as-it-is-written"),
        pytest.param("", None, id="full-volume"),
        pytest.param("17\n", None, id="cut"),
        pytest.param("0899999999\n", None, id="leading-zero"),
        pytest.param("17000000x0\n", None, id="damaged"),
        pytest.param("1700000000\n1700000000\n", None, id="two-lines"),
    ],
)
def test_note_of_an_unused_version(note: str, since: int | None) -> None:
    assert read_note(note) == since


@pytest.mark.parametrize(
    ("days", "jobs", "is_refilled", "why"),
    [
        pytest.param(0, 0, False, "is not declared any more; it stays for 7 more days", id="today"),
        pytest.param(6.5, 0, False, "is not declared any more; it stays for 1 more days", id="last-day"),
        pytest.param(7, 2, False, "is used by 2 jobs; it stays", id="used"),
        pytest.param(7, 0, True, "stays: an older one of the name is put aside", id="older-version-aside"),
        pytest.param(7, 0, False, "", id="may-go"),
    ],
)
def test_version_that_is_not_needed_stays(days: float, jobs: int, is_refilled: bool, why: str) -> None:
    assert judge(NOW - int(days * DAY), NOW, 7, jobs, is_refilled) == why


@given(since=st.integers(NOW - 400 * DAY, NOW + DAY), keep_days=st.integers(0, 365), jobs=st.integers(0, 3), is_refilled=st.booleans())
def test_version_goes_only_after_its_days_and_without_a_job(since: int, keep_days: int, jobs: int, is_refilled: bool) -> None:
    goes = judge(since, NOW, keep_days, jobs, is_refilled) == ""
    assert goes == (NOW - since >= keep_days * DAY and not jobs and not is_refilled)


@given(
    current=st.sampled_from([None, "versions/1", "versions/2"]),
    jobs=st.integers(0, 2),
    unclear=st.sampled_from(["", "slurmctld is silent"]),
)
def test_version_that_is_put_aside_goes_only_where_all_is_known(current: str | None, jobs: int, unclear: str) -> None:
    goes = judge_aside("1", current, jobs, unclear) == ""
    assert goes == (current == "versions/2" and not jobs and not unclear)


@pytest.mark.parametrize(
    ("listed", "jobs"),
    [
        pytest.param("", [], id="none"),
        pytest.param("16 1000 RUNNING\n17 1001 COMPLETING\n", ["16", "17"], id="on-nodes"),
        pytest.param("16 64030 RUNNING", [], id="of-slurms-own-user"),
        pytest.param("16 1000 CONFIGURING", [], id="waits-for-its-nodes"),
        pytest.param("16 1000 SOMETHING_NEW", ["16"], id="state-that-nobody-knows"),
        pytest.param("16", ["16"], id="line-that-is-cut"),
    ],
)
def test_jobs_that_may_have_a_version(listed: str, jobs: list[str]) -> None:
    assert jobs_in_versions(listed, 64030) == jobs


@given(running=JOBS, first=JOBS, linked=JOBS)
def test_no_job_of_the_first_look_is_forgotten(running: list[str], first: list[str], linked: list[str]) -> None:
    unknown = jobs_without_a_version(running, first, linked)
    assert set(unknown) == set(running) & set(first) - set(linked)


@given(links=JOBS, alive=JOBS, ended=JOBS)
def test_link_of_a_job_that_may_be_alive_is_never_removed(links: list[str], alive: list[str], ended: list[str]) -> None:
    """A number may be listed twice: a task of an array, a requeued job."""
    listed = "".join([*(f"{job} TIMEOUT\n" for job in ended), *(f"{job} REQUEUE_HOLD\n" for job in alive)])
    assert set(ended_jobs(links, listed)) == set(links) - set(alive)


def test_at_most_ten_jobs_are_named() -> None:
    assert tell_unknown([str(job) for job in range(20)]).endswith(": 0 1 2 3 4 5 6 7 8 9")


def test_looks_take_a_quarter_of_an_hour_and_the_short_ones_half_a_minute() -> None:
    assert 14 * 60 < sum(map(pause_s, range(40))) < 17 * 60
    assert sum(map(pause_s, range(6))) == 30
