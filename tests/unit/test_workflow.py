"""The workflow for pull requests: users get the one that this repository has, its rights are few, and it keeps to one comment."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PLACES = (ROOT, ROOT / "templates" / "slurm-python")
FILE = Path(".github/workflows/plan.yml")
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / FILE).read_text())
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
NO_FORK = "github.event.pull_request.head.repo.full_name == github.repository"


def scripts(job: str) -> list[str]:
    """What the steps of a job run in a shell."""
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_users_get_the_workflow_of_this_repository() -> None:
    assert len({(place / FILE).read_text() for place in PLACES}) == 1
    assert all(os.access(place / ".ci" / "plan", os.X_OK) for place in PLACES)


@pytest.mark.parametrize(
    ("job", "permissions"),
    [
        pytest.param("plan", {"contents": "read"}, id="plan"),
        pytest.param("live", {"contents": "read"}, id="live"),
        pytest.param("comment", {"contents": "read", "pull-requests": "write"}, id="comment"),
    ],
)
def test_rights_of_a_job(job: str, permissions: dict[str, str]) -> None:
    assert WORKFLOW["permissions"] == {}
    assert JOBS[job]["permissions"] == permissions


def test_job_that_may_write_runs_no_code_of_the_pull_request() -> None:
    assert not any("checkout" in step.get("uses", "") for step in JOBS["comment"]["steps"])
    assert all(
        step["with"]["persist-credentials"] is False for job in JOBS.values() for step in job["steps"] if "checkout" in step.get("uses", "")
    )


@pytest.mark.parametrize("job", ["live", "comment"])
def test_forks_get_neither_secrets_nor_comments(job: str) -> None:
    assert NO_FORK in JOBS[job]["if"]


def test_live_preview_needs_the_secret_of_a_cluster() -> None:
    assert "needs.plan.outputs.has_cluster == 'true'" in JOBS["live"]["if"]
    assert JOBS["plan"]["outputs"]["has_cluster"] == "${{ secrets.SLIPWAY_KUBECONFIG != '' }}"
    assert "secrets." not in str(JOBS["plan"]["steps"])


@pytest.mark.parametrize("job", ["plan", "live"])
def test_no_script_has_a_value_of_the_event_pasted_into_it(job: str) -> None:
    """A branch may be called `$(rm -rf /)`."""
    assert all("${{" not in script for script in scripts(job))


@pytest.mark.parametrize(
    ("code", "is_accepted", "status"),
    [
        pytest.param(0, False, 0, id="nothing"),
        pytest.param(2, False, 0, id="changes"),
        pytest.param(3, False, 3, id="dangerous"),
        pytest.param(3, True, 0, id="dangerous-and-accepted"),
        pytest.param(1, True, 1, id="mistakes"),
    ],
)
def test_check_fails_for_mistakes_and_for_dangers_that_nobody_accepted(tmp_path: Path, code: int, is_accepted: bool, status: int) -> None:
    script = tmp_path / ".ci" / "plan"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nmkdir -p .slipway/ci; echo "compared with $1" > .slipway/ci/plan.md; exit {code}\n')
    script.chmod(0o755)
    summary = tmp_path / "summary.md"
    environment = {**os.environ, "BASE": "origin/main", "ACCEPTED": str(is_accepted).lower(), "GITHUB_STEP_SUMMARY": str(summary)}
    [run] = scripts("plan")
    done = subprocess.run(["bash", "-e", "-c", run], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert summary.read_text() == "compared with origin/main\n"


@pytest.mark.parametrize(
    ("known", "call"),
    [
        pytest.param("", "api --method POST repos/o/r/issues/7/comments", id="first-push"),
        pytest.param("4711\n4712", "api --method PATCH repos/o/r/issues/comments/4711", id="later-push"),
    ],
)
def test_comment_is_made_once_and_edited_afterwards(tmp_path: Path, known: str, call: str) -> None:
    gh = tmp_path / "gh"
    gh.write_text(f'#!/bin/sh\ncase "$*" in *--paginate*) printf "%s" "{known}" ;; *) echo "$*" >> calls ;; esac\n')
    gh.chmod(0o755)
    for name in ("plan", "live"):
        (tmp_path / "reports" / name).mkdir(parents=True)
        (tmp_path / "reports" / name / f"{name}.md").write_text(f"the {name}\n")
    step = next(step for step in JOBS["comment"]["steps"] if "run" in step)
    marker: str = step["env"]["MARKER"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "REPOSITORY": "o/r", "NUMBER": "7", "MARKER": marker}
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "calls").read_text().strip() == f"{call} --field body=@comment.md --silent"
    assert (tmp_path / "comment.md").read_text() == f"{marker}\nthe plan\nthe live\n"
