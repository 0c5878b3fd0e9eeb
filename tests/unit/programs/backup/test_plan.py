"""The rules of backups: which of them stay, which one a restore takes, and what makes one whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.backup.plan import (
    Backups,
    age_s,
    choose,
    find_fault,
    is_due,
    is_whole_dump,
    is_whole_state,
    moment_of,
    name_of,
    plan_pruning,
    retry_s,
    sort_backups,
    tell_future,
    unread,
)

TIMES = [
    *("2026-01-01T01-00-00Z", "2026-01-01T02-00-00Z", "2026-01-02T01-00-00Z"),
    *("2026-01-03T01-00-00Z", "2026-01-03T02-00-00Z", "2026-01-03T03-00-00Z"),
]
FUTURE = "2099-01-01T00-00-00Z"
NOW = moment_of("2026-02-01T00-00-00Z")
PAST = Backups(tuple(reversed(TIMES)), ())
ALL = Backups(PAST.past, (FUTURE,))
NOTHING = Backups((), ())
MOMENTS = st.lists(st.integers(NOW - 40 * 86_400, NOW), unique=True, max_size=40)


def test_backups_of_a_folder_are_those_with_a_name_and_the_ending() -> None:
    files = [*(f"{name}.x" for name in (*TIMES, FUTURE)), "notes.x", f"{TIMES[0]}.y", f".partial-{TIMES[0]}.x", ".lock", f"x{TIMES[0]}.x"]
    assert sort_backups(files, ".x", NOW) == ALL


def test_clocks_that_differ_by_minutes_are_no_fault() -> None:
    soon, later = name_of(NOW + 240), name_of(NOW + 400)
    assert sort_backups([f"{soon}.x", f"{later}.x"], ".x", NOW) == Backups((soon,), (later,))


@pytest.mark.parametrize(
    ("keep", "days", "gone"),
    [
        pytest.param(10, 0, [], id="fewer-than-stay"),
        pytest.param(2, 0, TIMES[:4], id="the-newest"),
        pytest.param(2, 3, [TIMES[0], TIMES[3]], id="the-newest-and-the-last-of-each-day"),
        pytest.param(1, 2, [TIMES[0], TIMES[1], TIMES[3], TIMES[4]], id="days-have-a-limit-too"),
    ],
)
def test_older_ones_go(keep: int, days: int, gone: list[str]) -> None:
    assert sorted(plan_pruning(ALL, keep, days)) == gone


@given(moments=MOMENTS, keep=st.integers(1, 10), days=st.integers(0, 10))
def test_newest_stay_and_none_of_the_future_goes(moments: list[int], keep: int, days: int) -> None:
    backups = sort_backups([f"{name_of(moment)}.x" for moment in (*moments, NOW + 86_400)], ".x", NOW)
    gone = plan_pruning(backups, keep, days)
    stay = [name for name in backups.past if name not in gone]
    assert stay[:keep] == list(backups.past[:keep])
    assert set(gone) <= set(backups.past)
    assert len(stay) <= keep + days
    last_of_days = {name[:10]: name for name in reversed(backups.past)}
    assert set(sorted(last_of_days.values(), reverse=True)[:days]) <= set(stay)


@pytest.mark.parametrize(
    ("restore_from", "name"),
    [
        pytest.param("latest", TIMES[-1], id="latest"),
        pytest.param(TIMES[1], TIMES[1], id="that-one"),
        pytest.param("2026-01-02T23-00-00Z", TIMES[2], id="the-newest-until-then"),
        pytest.param("nothing", "", id="nothing"),
        pytest.param("2098-12-31T00-00-00Z", TIMES[-1], id="none-of-the-future-for-another-time"),
        pytest.param("2099-12-31T00-00-00Z", TIMES[-1], id="none-of-the-future-before-that-time"),
        pytest.param(FUTURE, FUTURE, id="one-of-the-future-by-its-very-name"),
    ],
)
def test_restore_takes(restore_from: str, name: str) -> None:
    choice = choose(ALL, restore_from, "the disk")
    assert (choice.name, choice.waits) == (name, "")


@pytest.mark.parametrize(
    ("backups", "restore_from", "words"),
    [
        pytest.param(PAST, "", f"WAITING: the disk is empty, but there are 6 backups, the newest {TIMES[-1]}", id="nobody-has-decided"),
        pytest.param(NOTHING, "latest", "there is no backup for backup.restoreFrom: latest. There are: none", id="latest-of-none"),
        pytest.param(PAST, "2025-12-31T00-00-00Z", "There are: 2026-01-03T03-00-00Z", id="before-the-first"),
        pytest.param(Backups((), (FUTURE,)), "", "all backups that there are are dated in the future", id="future-alone"),
        pytest.param(Backups((), (FUTURE,)), "latest", f"taken only by its very name: {FUTURE}", id="latest-of-the-future"),
    ],
)
def test_restore_waits_for_a_word(backups: Backups, restore_from: str, words: str) -> None:
    choice = choose(backups, restore_from, "the disk")
    assert choice.name == ""
    assert words in choice.waits


@given(
    moments=MOMENTS,
    future=st.booleans(),
    restore_from=st.sampled_from(["", "latest", TIMES[0], name_of(NOW), FUTURE, "2000-01-01T00-00-00Z", "rubbish"]),
)
def test_nothing_starts_empty_beside_backups_unless_somebody_says_so(moments: list[int], future: bool, restore_from: str) -> None:
    names = [name_of(moment) for moment in moments] + ([FUTURE] if future else [])
    choice = choose(sort_backups([f"{name}.x" for name in names], ".x", NOW), restore_from, "the disk")
    assert choice.name in ("", *names)
    starts_empty = not choice.name and not choice.waits
    assert starts_empty == (not names and not restore_from)


def test_new_cluster_without_backups_starts() -> None:
    assert choose(NOTHING, "", "the disk") == choose(ALL, "nothing", "the disk")


def test_backup_of_the_future_does_not_hide_the_age_of_the_newest() -> None:
    assert age_s(ALL, moment_of(TIMES[-1]) + 60) == 60
    assert age_s(Backups((), (FUTURE,)), NOW) is None
    assert is_due(ALL, 600, moment_of(TIMES[-1]) + 600)
    assert not is_due(ALL, 600, moment_of(TIMES[-1]) + 599)
    assert is_due(Backups((), (FUTURE,)), 600, NOW)


def test_name_that_is_no_time_is_as_old_as_can_be() -> None:
    assert age_s(Backups(("2026-01-99T00-00-00Z",), ()), NOW) == float("inf")


def test_backup_of_the_future_is_a_fault_with_its_name() -> None:
    assert tell_future(PAST, "/backup/c/state") == ""
    assert tell_future(ALL, "/backup/c/state").startswith(
        f"FAILED: dated in the future, by a clock that was wrong: {FUTURE} in /backup/c/state."
    )


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        pytest.param(["a_table", "b_table"], "", id="with-records"),
        pytest.param([], "FAILED: the database at db has no tables", id="empty"),
        pytest.param(["a_table", "slipway_restore"], "FAILED: the database at db is being restored", id="half-a-restore"),
    ],
)
def test_database_is_backed_up_only_with_its_records(tables: list[str], words: str) -> None:
    found = find_fault(tables, "db")
    assert words in found
    assert bool(words) == bool(found)


@pytest.mark.parametrize(
    ("last", "whole"),
    [
        pytest.param("-- Dump completed on 2026-01-01\n", True, id="whole"),
        pytest.param("INSERT INTO x", False, id="cut"),
        pytest.param("", False, id="empty"),
    ],
)
def test_dump_is_whole_by_its_last_line(last: str, whole: bool) -> None:
    assert is_whole_dump(last) == whole


def test_vanished_file_is_no_fault_and_an_unreadable_one_is() -> None:
    gone = [
        "tar: job.1: File removed before we read it",
        "tar: x: Warning: Cannot stat: No such file or directory",
        "tar: s: socket ignored",
    ]
    faults = [f"tar: job.{number}: Warning: Cannot open: Input/output error" for number in range(5)]
    assert unread("\n".join([*gone, ""])) == []
    assert unread("\n".join([*gone, *faults])) == faults[:3]


@pytest.mark.parametrize(
    ("members", "whole"),
    [
        pytest.param(["job_state", "node_state", "part_state", "clustername", "hash.1/job.1/script"], True, id="whole"),
        pytest.param(["node_state", "part_state", "clustername"], False, id="without-its-jobs"),
        pytest.param(["hash.1/job_state", "node_state", "part_state", "clustername"], False, id="a-file-of-that-name-elsewhere"),
    ],
)
def test_state_is_whole_with_all_that_slurmctld_reads(members: list[str], whole: bool) -> None:
    assert is_whole_state(members) == whole


def test_first_failure_is_tried_again_at_once_and_later_ones_in_a_minute() -> None:
    assert [retry_s(failures) for failures in (1, 2, 3)] == [2, 60, 60]
