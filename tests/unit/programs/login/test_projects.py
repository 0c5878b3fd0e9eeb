"""Folders that accounts share: what is missing is made, with the right group and mode, and nothing else is touched."""

import os
from pathlib import Path

import pytest

from programs.login.projects import Found, Make, Project, Projects, plan_projects, read_projects

NLP = Project("/shared/projects/nlp", "nlp")


@pytest.mark.parametrize(
    ("found", "gids", "makes", "note"),
    [
        pytest.param({}, {"nlp": 7}, [Make(NLP.path, 7)], "", id="missing"),
        pytest.param({NLP.path: Found(True, 7, 0o2770)}, {"nlp": 7}, [], "", id="there"),
        pytest.param({}, {}, [], "needs group nlp, which is unknown here", id="unknown-group"),
        pytest.param({NLP.path: Found(True, 8, 0o2770)}, {"nlp": 7}, [], "with group 8 and mode 2770, and stays so", id="other-group"),
        pytest.param({NLP.path: Found(True, 7, 0o755)}, {"nlp": 7}, [], "chmod 2770 /shared/projects/nlp", id="other-mode"),
        pytest.param({NLP.path: Found(False, 7, 0o644)}, {"nlp": 7}, [], "is not a folder", id="file"),
    ],
)
def test_only_missing_folders_are_made(found: dict[str, Found], gids: dict[str, int], makes: list[Make], note: str) -> None:
    made, notes = plan_projects([NLP], found, gids)
    assert made == makes
    assert [note in each for each in notes] == ([True] if note else [])


def test_list_has_a_path_and_a_group_a_line() -> None:
    assert read_projects("/shared/projects/nlp nlp\n/data/p/a b\n") == [NLP, Project("/data/p/a", "b")]


def test_folder_is_made_once_and_keeps_what_its_members_change(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "list").write_text(f"{tmp_path}/projects/web www-data\n{tmp_path}/projects/none nobodys-group\n")
    projects = Projects(said.append, tmp_path / "list")
    projects.look()
    folder = tmp_path / "projects/web"
    assert (folder.stat().st_mode & 0o7777, folder.stat().st_gid, folder.stat().st_uid) == (0o2770, 33, 0)
    (folder / "kept").write_text("")
    projects.look()
    assert [each.name for each in (tmp_path / "projects").iterdir()] == ["web"]
    assert (folder / "kept").exists()
    assert said == [f"made {folder} for group 33", f"{tmp_path}/projects/none needs group nobodys-group, which is unknown here"]


@pytest.mark.parametrize("planted", ["link", "a user's folder"])
def test_root_makes_nothing_where_a_user_could_lead_it_elsewhere(tmp_path: Path, planted: str) -> None:
    said: list[str] = []
    (tmp_path / "list").write_text(f"{tmp_path}/projects/web www-data\n")
    if planted == "link":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "projects").symlink_to("elsewhere")
    else:
        (tmp_path / "projects").mkdir()
        os.chown(tmp_path / "projects", 1000, 1000)
    Projects(said.append, tmp_path / "list").look()
    assert list(tmp_path.rglob("web")) == []
    assert len(said) == 1
    assert f"{tmp_path}/projects/web cannot be made" in said[0]


def test_without_a_list_there_is_nothing_to_say(tmp_path: Path) -> None:
    said: list[str] = []
    Projects(said.append, tmp_path / "list").look()
    assert said == []
