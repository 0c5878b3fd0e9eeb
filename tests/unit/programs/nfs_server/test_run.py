"""Folders and homes on a real disk; with ganesha it is tests/slurm/test_nfs_server.py."""

from pathlib import Path

import pytest

from programs.nfs_server.run import Homes, make_folders
from programs.nfs_server.settings import Folder
from tests.support.log_lines import as_words

USER = 10001
PASSWD = f"alice:x:{USER}:{USER}::/home/alice:/bin/bash\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The disk, with its folder of homes."""
    (tmp_path / "data/home").mkdir(parents=True)
    return tmp_path / "data"


@pytest.fixture
def homes(tmp_path: Path, data: Path) -> Homes:
    """One user, and what a new home holds."""
    (tmp_path / "passwd").write_text(PASSWD)
    (tmp_path / "skel/.config").mkdir(parents=True)
    (tmp_path / "skel/.bashrc").write_text("umask 077\n")
    (tmp_path / "skel/.profile").symlink_to(".bashrc")
    return Homes(data, tmp_path / "passwd", tmp_path / "skel")


def test_folders_get_their_mode_and_one_that_is_there_keeps_its_own(data: Path) -> None:
    (data / "home").chmod(0o700)
    (data / ".new").mkdir()  # what a killed run left
    (data / ".new/half").touch()
    make_folders([Folder("home", 0o711), Folder("sets", 0o1777)], data)
    assert {each.name: each.stat().st_mode & 0o7777 for each in data.iterdir()} == {"home": 0o700, "sets": 0o1777, ".ganesha": 0o700}
    assert not list((data / "sets").iterdir())


def test_file_in_the_place_of_a_folder_is_an_error_and_stays(data: Path) -> None:
    (data / "sets").write_text("mine")
    with pytest.raises(OSError, match="sets"):
        make_folders([Folder("sets", 0o1777)], data)
    assert (data / "sets").read_text() == "mine"


def test_home_is_a_private_copy_of_the_skeleton_and_its_users_own(data: Path, homes: Homes, capfd: pytest.CaptureFixture[str]) -> None:
    (data / ".home").write_text("what a killed run left")
    homes.look()
    home = data / "home/alice"
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / ".profile").is_symlink()
    assert (home / ".bashrc").read_text() == "umask 077\n"
    everything = [home, *home.rglob("*")]
    assert {(each.lstat().st_uid, each.lstat().st_gid) for each in everything} == {(USER, USER)}
    assert len(everything) == 4
    assert as_words(capfd.readouterr().out) == "nfs-server: made the home of alice\n"
    (home / ".bashrc").write_text("mine\n")
    homes.look()
    assert (home / ".bashrc").read_text() == "mine\n"


def test_home_that_cannot_be_made_is_told_once_and_tried_again(
    tmp_path: Path, data: Path, homes: Homes, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "passwd").write_text("a/b:x:1:1\n" + PASSWD)
    homes.look()
    homes.look()
    said = as_words(capfd.readouterr().out).splitlines()
    assert said[0] == "nfs-server: made the home of alice"
    assert len(said) == 2
    assert said[1].startswith("nfs-server: no home for a/b: ")
    (tmp_path / "passwd").unlink()
    homes.look()
    assert "homes are not looked for" in as_words(capfd.readouterr().out)
    (tmp_path / "passwd").write_text(PASSWD)
    homes.look()
    assert as_words(capfd.readouterr().out) == ""
    assert [each.name for each in (data / "home").iterdir()] == ["alice"]
