"""A tag becomes a release only where everything agrees, and each job of its workflow has the rights that it needs, and no more."""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from re import findall
from typing import Any

import pytest
import yaml

from provider import __version__
from tests.release import CHANGELOG, find_faults, section

ROOT = Path(__file__).parents[2]
WORKFLOWS: dict[str, dict[Any, Any]] = {
    file.stem: yaml.safe_load(file.read_text()) for file in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
JOBS: dict[str, dict[str, Any]] = WORKFLOWS["release"]["jobs"]
SCRIPTS = {job: [step["run"] for step in about.get("steps", ()) if "run" in step] for job, about in JOBS.items()}
TEXT = """# Changelog

## Unreleased

## 0.2.0 - 2026-11-27

### Added

- A thing, in a sentence
  of two lines.
- Another one.

## 0.1.0

The first version.
"""


def test_nothing_is_wrong_where_everything_agrees() -> None:
    assert find_faults("v0.2.0", "0.2.0", TEXT, ["0.2.0"]) == []


@pytest.mark.parametrize(
    ("tag", "text", "kept", "fault"),
    [
        pytest.param("v0.3.0", TEXT, ["0.2.0"], "The tag is v0.3.0", id="tag"),
        pytest.param("v0.2.0", TEXT.replace("## 0.2.0", "## 0.3.0"), ["0.2.0"], "newest version in CHANGELOG.md is 0.3.0", id="section"),
        pytest.param("v0.2.0", TEXT.replace(" - 2026-11-27", ""), ["0.2.0"], "no date for 0.2.0", id="date"),
        pytest.param("v0.2.0", "## 0.2.0 - 2026-11-27\n\n## 0.1.0\n", ["0.2.0"], "section 0.2.0 of CHANGELOG.md is empty", id="empty"),
        pytest.param("v0.2.0", TEXT.replace("Unreleased\n", "Unreleased\n\n- New.\n"), ["0.2.0"], "below Unreleased", id="unreleased"),
        pytest.param("v0.2.0", TEXT, ["0.1.0"], "make release VERSION=0.2.0", id="plans"),
    ],
)
def test_what_does_not_agree_is_named(tag: str, text: str, kept: list[str], fault: str) -> None:
    [found] = find_faults(tag, "0.2.0", text, kept)
    assert fault in found


def test_notes_are_the_section_with_sentences_on_one_line() -> None:
    assert section(TEXT, "0.2.0") == "### Added\n\n- A thing, in a sentence of two lines.\n- Another one."
    assert section(TEXT, "0.3.0") is None


def test_present_version_is_in_the_changelog() -> None:
    assert section(CHANGELOG.read_text(), __version__)


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        pytest.param("docs/start/package.md", r"slipway-([\w.]+)-py3-none-any\.whl", id="wheel"),
        pytest.param("templates/slurm-python/requirements.txt", r"slipway-([\w.]+)-py3-none-any\.whl", id="template"),
        pytest.param("templates/slurm-python/Pulumi.dev.yaml", r"/controllers:([\w.]+)", id="image-of-the-template"),
        pytest.param("Pulumi.h100.yaml", r"/controllers:([\w.]+)", id="image-of-an-example"),
        pytest.param("policies/PulumiPolicy.yaml", r"(?m)^version: (\S+)$", id="policy-pack"),
    ],
)
def test_files_that_name_a_version_name_the_present_one(file: str, pattern: str) -> None:
    assert set(findall(pattern, (ROOT / file).read_text())) == {__version__}


def test_rights_of_the_jobs() -> None:
    assert WORKFLOWS["release"]["permissions"] == {}
    assert {job: about["permissions"] for job, about in JOBS.items()} == {
        "notes": {"contents": "read"},
        "checks": {"contents": "read"},
        "build": {"contents": "read", "packages": "write"},
        "publish": {"contents": "write"},
    }
    assert not any("secrets." in str(about) for about in JOBS.values())


def test_job_that_may_write_to_the_repository_runs_none_of_its_code() -> None:
    assert [step.get("uses", "").partition("@")[0] for step in JOBS["publish"]["steps"]] == ["actions/download-artifact", ""]


def test_nothing_is_built_before_the_checks_or_published_before_the_build() -> None:
    assert [JOBS["checks"]["needs"], JOBS["build"]["needs"], JOBS["publish"]["needs"]] == ["notes", "checks", ["notes", "build"]]


def test_workflows_use_one_version_of_an_action() -> None:
    steps = [step for workflow in WORKFLOWS.values() for job in workflow["jobs"].values() for step in job.get("steps", ())]
    used = {tuple(step["uses"].split("@")) for step in steps if "uses" in step}
    assert len({action for action, _ in used}) == len(used)


def test_scripts_paste_no_values_and_run_modules_that_exist() -> None:
    scripts = "\n".join(script for each in SCRIPTS.values() for script in each)
    modules = findall(r"python -m ([\w.]+)", scripts)
    assert "${{" not in scripts
    assert modules == ["tests.release", "images", "hatchling"]
    assert all(find_spec(module) for module in modules)


def test_release_has_the_notes_and_every_file(tmp_path: Path) -> None:
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\nfor word; do echo "$word" >> words; done\n')
    gh.chmod(0o755)
    for file in ("notes/notes.md", "files/images.json", "files/schema.json", "files/slipway-0.2.0-py3-none-any.whl"):
        (tmp_path / "release" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "release" / file).touch()
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_REF_NAME": "v0.2.0", "GITHUB_REPOSITORY": "o/r"}
    [run] = SCRIPTS["publish"]
    subprocess.run(["bash", "-e", "-c", run], cwd=tmp_path, env=environment, check=True)
    told = (tmp_path / "words").read_text().split()
    assert told[:6] == ["release", "create", "v0.2.0", "--repo", "o/r", "--verify-tag"]
    assert told[6:10] == ["--title", "v0.2.0", "--notes-file", "release/notes/notes.md"]
    assert told[10:] == [f"release/files/{name}" for name in ("images.json", "schema.json", "slipway-0.2.0-py3-none-any.whl")]
