"""The munge key in its files: what cannot be read is no other key, and a kill leaves a whole one."""

import os
from pathlib import Path

import pytest

from programs.munged import keys
from programs.munged.keys import Keys


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Secret's file; munged's is beside it."""
    for name in ("SECRET", "KEY", "NOTE", "WAITS"):
        monkeypatch.setattr(keys, name, str(tmp_path / name))
    monkeypatch.setattr(keys.os, "fchown", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    return tmp_path / "SECRET"


def test_key_that_cannot_be_read_is_not_another_one(secret: Path, tmp_path: Path) -> None:
    """slurmctld stops for another key."""
    (tmp_path / "KEY").write_text("a")
    found = Keys()
    assert not found.has_other(), "no Secret"
    secret.touch()
    assert not found.has_other(), "an empty one"
    secret.write_text("b")
    assert [found.has_other() for _ in range(2)] == [True, True]
    secret.unlink()
    secret.mkdir()
    (secret / "x").touch()
    for _ in range(2):
        with pytest.raises(OSError, match="directory"):
            found.has_other()


def test_file_that_had_the_same_key_is_not_read_again(secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet never writes into a file."""
    (tmp_path / "KEY").write_text("a")
    secret.write_text("a")
    found = Keys()
    assert not found.has_other()
    secret.write_text("b")
    assert not found.has_other()
    other = tmp_path / "other"
    other.write_text("b")
    other.replace(secret)
    assert found.has_other()


def test_key_is_munged_s_alone_and_whole_whenever_it_is_there(secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not keys.has_key()
    secret.write_text("first")
    Keys().take()
    assert keys.has_key()
    secret.write_text("second")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(keys.os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            Keys().take()
    key = tmp_path / "KEY"
    assert key.read_text() == "first"
    Keys().take()
    assert (key.read_text(), key.stat().st_mode & 0o777) == ("second", 0o400)


def test_note_tells_keys_apart_and_shows_none(secret: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    for key in ("first", "second", "first"):
        secret.write_text(key)
        Keys().take()
        Keys().note()
        notes.append((tmp_path / "NOTE").read_text())
    assert notes[0] == notes[2] != notes[1]
    assert len(notes[0]) == 17


def test_note_of_a_key_that_waits_has_the_time_of_its_arrival(secret: Path) -> None:
    assert keys.say_waiting()
    os.utime(keys.WAITS, (1000, 1000))
    assert not keys.say_waiting()
    assert keys.waiting_since() == 1000
    keys.say_taken()
    keys.say_taken()
    assert keys.say_waiting()
