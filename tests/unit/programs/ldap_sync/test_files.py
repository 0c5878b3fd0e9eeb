"""The folder that pods read: whole files at any moment, whoever is killed when, and removed users out first."""

import os
from pathlib import Path

import pytest

from programs.ldap_sync.accounts import Accounts, Configured, Merged, User, merge
from programs.ldap_sync.files import Folder, read_folder
from tests.support.configs.stacks import KEY
from tests.unit.programs.ldap_sync.people import OTHER_KEY

NAMES = ("passwd", "group", "shadow")


class Killed(BaseException):
    """The process ended here; no `except Exception` stops it."""


def accounts(*users: User) -> Accounts:
    return Accounts({user.name: user for user in users})


def made(found: Accounts) -> Merged:
    return merge(Configured(), found)


BEFORE = accounts(User("ada", 20001, 20001, keys=(KEY,)), User("bob", 20002, 20002, keys=(KEY,)))
AFTER = accounts(User("ada", 20001, 20001, keys=(OTHER_KEY,)), User("eve", 20003, 20003, keys=(KEY,)))


def content(path: Path) -> dict[str, str]:
    """What pods see."""
    return {str(file.relative_to(path)): file.read_text() for name in (*NAMES, "keys") for file in _below(path / name)}


def _below(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []


def flat(merged: Merged) -> dict[str, str]:
    return {**merged.files, **{f"keys/{name}": text for name, text in merged.keys.items()}}


def written(path: Path, found: Accounts) -> Folder:
    folder = Folder(path)
    folder.open()
    folder.write(made(found), found)
    return folder


def test_what_is_written_is_what_pods_see_and_nothing_is_written_twice(tmp_path: Path) -> None:
    folder = written(tmp_path, BEFORE)
    assert content(tmp_path) == flat(made(BEFORE))
    assert folder.write(made(BEFORE), BEFORE) == 0
    again = Folder(tmp_path)
    again.open()
    assert (again.accepted(), again.has_users(), again.write(made(BEFORE), BEFORE)) == (BEFORE, True, 0)


def test_everyone_may_read_and_only_the_writer_write(tmp_path: Path) -> None:
    os.umask(0o077)
    try:
        written(tmp_path, BEFORE)
    finally:
        os.umask(0o022)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in (*NAMES, "keys/ada", "accepted.json")}
    assert modes == {**dict.fromkeys((*NAMES, "keys/ada"), 0o644), "accepted.json": 0o600}


def steps(tmp_path: Path) -> list[str]:
    """Every change on the disk from BEFORE to AFTER."""
    written(tmp_path, BEFORE)
    seen: list[str] = []
    folder = Folder(tmp_path, before_step=seen.append)
    folder.open()
    folder.write(made(AFTER), AFTER)
    return seen


def test_removed_user_loses_the_keys_first_and_a_new_one_gets_them_last(tmp_path: Path) -> None:
    seen = steps(tmp_path)
    assert (seen[0], seen[-1]) == ("remove keys/bob", "rename keys/eve")
    assert seen.index("rename accepted.json") < seen.index("rename passwd")
    assert seen.index("rename shadow") < seen.index("rename passwd")


@pytest.mark.parametrize("at", range(14))
def test_every_file_is_whole_whenever_killed_and_the_next_start_finishes(tmp_path: Path, at: int) -> None:
    (tmp_path / "whole").mkdir()
    count = len(steps(tmp_path / "whole"))
    assert count == 13  # one range for all; the last case is not killed
    path = tmp_path / "shared"
    path.mkdir()
    written(path, BEFORE)
    done: list[str] = []

    def die(step: str) -> None:
        if len(done) == at:
            raise Killed
        done.append(step)

    folder = Folder(path, before_step=die)
    folder.open()
    if at < count:
        with pytest.raises(Killed):
            folder.write(made(AFTER), AFTER)
    else:
        folder.write(made(AFTER), AFTER)
    old, new = flat(made(BEFORE)), flat(made(AFTER))
    for name, text in content(path).items():
        assert text in {old.get(name), new.get(name)}, name
    if at > 0:
        assert not (path / "keys/bob").exists()
    again = Folder(path)
    again.open()
    accepted = again.accepted()
    assert accepted in (BEFORE, AFTER)
    assert (accepted == AFTER) == (at > 2)
    again.write(made(AFTER), AFTER)
    assert content(path) == new
    assert [*(path / ".work").iterdir()] == []


def test_full_disk_keeps_no_removed_user_in(tmp_path: Path) -> None:
    written(tmp_path, BEFORE)

    def full(step: str) -> None:
        if step.startswith("rename"):
            raise OSError(28, "No space left on device")

    folder = Folder(tmp_path, before_step=full)
    folder.open()
    with pytest.raises(OSError, match="No space"):
        folder.write(made(AFTER), AFTER)
    assert not (tmp_path / "keys/bob").exists()
    assert content(tmp_path)["passwd"] == made(BEFORE).files["passwd"]
    assert [*(tmp_path / ".work").iterdir()] == []


def test_damaged_record_is_none_and_files_of_strangers_go(tmp_path: Path) -> None:
    written(tmp_path, BEFORE)
    (tmp_path / "accepted.json").write_bytes(b'{"users": [\xff')
    (tmp_path / "keys/mallory").write_text(KEY)
    (tmp_path / ".work/left").write_text("half")
    folder = Folder(tmp_path)
    folder.open()
    assert (folder.accepted(), folder.has_users()) == (None, True)
    folder.write(made(BEFORE), BEFORE)
    assert content(tmp_path) == flat(made(BEFORE))


def test_config_map_is_read_without_what_the_kubelet_keeps_beside_it(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026/passwd").write_text("a\n")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "passwd").symlink_to("..data/passwd")
    assert read_folder(tmp_path) == {"passwd": "a\n"}
