"""Mails that wait: none is lost without a word, and a folder that nobody empties has a bound. And how long a mail is tried."""

from pathlib import Path

import pytest

from programs.mail.plan import LIFE_S, Fate, is_too_old, pause_s, plan_fate
from programs.mail.spool import Spool, Waiting

MAIL = Waiting(1000.0, "subject", "alice@example.com", {"SLURM_JOB_ID": "17"})


def test_mails_come_out_in_their_order_as_they_went_in(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "mail")
    for number in ("1", "2", "3"):
        assert spool.add(Waiting(1000.0, number, "a@example.com", {}))
    assert [spool.read(name).subject for name in spool.names()] == ["1", "2", "3"]
    spool.remove(spool.names()[0])
    assert [spool.read(name).subject for name in spool.names()] == ["2", "3"]


def test_full_spool_counts_what_it_has_no_room_for_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path, most=2)
    assert [spool.add(MAIL) for _ in range(5)] == [True, True, False, False, False]
    assert (spool.take_lost(), spool.take_lost()) == (3, 0)
    assert len(spool.names()) == 2


def test_user_with_many_mails_takes_no_room_of_others(tmp_path: Path) -> None:
    spool = Spool(tmp_path, most=10, most_of_user=2)
    of = [Waiting(1000.0, "subject", "a@example.com", {"SLURM_JOB_USER": user}) for user in ("mallory", "alice", "-x/../é")]
    assert [spool.add(of[0]) for _ in range(4)] == [True, True, False, False]
    assert [spool.add(each) for each in (*of[1:], MAIL, MAIL, MAIL)] == [True] * 5, (
        "what is about no job of a user has the spool's own bound"
    )
    assert spool.take_lost() == 2
    spool.remove(spool.names()[0])
    assert spool.add(of[0])


def test_mail_that_is_too_large_is_counted_as_lost(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert not spool.add(Waiting(1000.0, "x" * 100_000, "a@example.com", {}))
    assert spool.take_lost() == 1


@pytest.mark.parametrize("text", ["", "[]", '[1, "a"]', '[1, "a", "b", 3]', '["x", "a", "b", {}]'])
def test_file_that_is_no_mail_is_told_from_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "1.json").write_text(text)
    with pytest.raises((ValueError, AttributeError, TypeError)):
        Spool(tmp_path).read("1.json")


@pytest.mark.parametrize(
    ("codes", "fate"),
    [
        pytest.param([550], Fate.DROP, id="unknown-user"),
        pytest.param([550, 550], Fate.DROP, id="both-unknown"),
        pytest.param([450], Fate.KEEP, id="greylisted"),
        pytest.param([550, 450], Fate.KEEP, id="one-of-two"),
        pytest.param([], Fate.KEEP, id="no-code"),
    ],
)
def test_only_what_the_relay_refuses_for_good_is_dropped(codes: list[int], fate: Fate) -> None:
    assert plan_fate(codes) is fate


def test_pauses_grow_to_five_minutes_and_mail_is_dropped_after_three_days() -> None:
    assert [pause_s(failures) for failures in (1, 2, 3, 8, 1000)] == [5, 10, 20, 300, 300]
    assert not is_too_old(0, LIFE_S)
    assert is_too_old(0, LIFE_S + 1)
