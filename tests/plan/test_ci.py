"""`.ci/plan` in a user's repository that was made from the template: the real script, with the installed wheel, between real commits.

No cluster and no credentials are there: HOME is empty, and no kubeconfig is named.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.project import KEY, KEYS, ROOT

TEMPLATE = ROOT / "templates" / "slurm-python"
STACK = "Pulumi.dev.yaml"
DOCUMENT = ROOT / "docs" / "operate" / "ci.md"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

OWN_POLICY = """
def named_services(resources):
    'Services have a name in the DNS of the site.'
    for resource in resources:
        if resource.kind == "Service" and resource.name == "dev-login":
            yield resource, "metadata.annotations", "name no host.", "Add one."

POLICIES = [named_services]
LEVELS = {"named-services": "advisory"}
"""


class Repository:
    """A user's repository with one commit: the template as it is."""

    def __init__(self, folder: Path, environment: Path, home: Path) -> None:
        self.folder, self._home = folder, home
        shutil.copytree(TEMPLATE, folder)
        about = folder / "Pulumi.yaml"
        about.write_text(about.read_text().replace("${PROJECT}", "lab").replace("${DESCRIPTION}", "A lab"))
        (folder / "id_ed25519.pub").write_text(f"{KEY}\n")
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit("The template")
        (folder / "venv").symlink_to(environment)

    def git(self, *arguments: str) -> str:
        """What git prints."""
        who = ("-c", "user.name=Alice", "-c", "user.email=alice@example.com")
        environment = {**self._environment(), "GIT_CONFIG_GLOBAL": os.devnull}
        done = subprocess.run(["git", *who, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    def commit(self, message: str) -> None:
        """Commits all files but the environment."""
        self.git("add", "--all", ":!venv")
        self.git("commit", "--quiet", "--message", message)

    def edit(self, old: str, new: str) -> None:
        """Changes the stack file at one place."""
        file = self.folder / STACK
        text = file.read_text()
        assert text.count(old) == 1, old
        file.write_text(text.replace(old, new))

    def plan(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the script."""
        script = [self.folder / ".ci" / "plan", *arguments]
        return subprocess.run(script, cwd=self._home, env=self._environment(), capture_output=True, text=True, check=False)

    @property
    def comment(self) -> str:
        """The comment that the script wrote last."""
        return (self.folder / ".slipway" / "ci" / "plan.md").read_text()

    def _environment(self) -> dict[str, str]:
        """Nothing of the machine but its programs; the bytecode of the packages is the machine's."""
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "PYTHONDONTWRITEBYTECODE") if key in os.environ}
        return {**kept, "HOME": str(self._home), "XDG_CACHE_HOME": str(CACHE)}


def bytecode_of_commits() -> set[Path]:
    """Folders of the user's cache with the bytecode of commits that were checked out to be compared with."""
    return set((CACHE / "slipway" / "bytecode" / tempfile.gettempdir().lstrip("/")).glob("slipway-ci-*"))


@pytest.fixture
def repository(installed: Path, tmp_path: Path) -> Repository:
    """A user's repository."""
    home = tmp_path / "home"
    home.mkdir()
    return Repository(tmp_path / "lab", installed, home)


def test_new_partition_is_told_in_a_comment(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "short")
    repository.edit("default: true}", 'default: true}\n      - {name: short, nodeSets: [cpu], maxTime: "01:00:00"}')
    repository.commit("A partition for short jobs")
    before = bytecode_of_commits()
    done = repository.plan("main")
    assert done.returncode == 2, done.stderr
    assert bytecode_of_commits() <= before
    assert done.stdout == repository.comment
    assert repository.comment.startswith("## Slipway: changes\n")
    assert "| dev | changes |" in repository.comment
    assert "+PartitionName=short Nodes=cpu-[0-1]" in repository.comment
    assert in_document(repository.comment)
    assert len(repository.git("worktree", "list").splitlines()) == 1, "the base's worktree is removed"
    assert repository.git("status", "--porcelain", "--", ":!venv") == "", "the script leaves nothing in the repository"


def in_document(comment: str) -> bool:
    """True when docs/operate/ci.md shows this comment above its fold, whatever the commit is called."""
    comment = comment.partition("\n<details>")[0]
    shown = re.sub(r"(main|HEAD~1) \([0-9a-f]{7}\)", "main (1a2b3c4)", comment)
    return "".join(f"    {line}".rstrip() + "\n" for line in shown.splitlines()) in DOCUMENT.read_text()


def test_commit_that_changes_no_stack_changes_nothing(repository: Repository) -> None:
    """Not even with a package of the program's own that is called like one of Slipway's."""
    package, program = repository.folder / "configs" / "__init__.py", repository.folder / "__main__.py"
    package.parent.mkdir()
    package.write_text("OWN = True\n")
    program.write_text(program.read_text() + "\nimport configs\n\nassert configs.OWN\n")
    repository.commit("A package")
    done = repository.plan("HEAD~1")
    assert (done.returncode, done.stderr) == (0, "")
    assert repository.comment.startswith("## Slipway: nothing changes\n")


def test_mistakes_are_the_comment(repository: Repository) -> None:
    repository.edit("pool: workers, size: 2", "pool: wrokers, size: -1")
    repository.commit("A mistake")
    done = repository.plan("HEAD~1")
    assert done.returncode == 1
    assert repository.comment.startswith("## Slipway: mistakes\n")
    assert 'cluster.nodeSets[0].pool: no node pool is called "wrokers". Did you mean "workers"?' in repository.comment
    assert "cluster.nodeSets[0].size: -1" in repository.comment
    assert "Traceback" not in repository.comment + done.stderr
    assert in_document(repository.comment)


def test_files_that_slurmctld_refuses_are_mistakes(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docker is a stand-in that has the image. The files of the base are not checked: the change is not to blame for them."""
    line = '{"version": "26.05.5", "sets": [{"mistakes": [{"file": "gres.conf", "text": "no such GPU"}], "notes": []}]}'
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/calls\n[ "$1" != run ] || tar -t >> {tmp_path}/calls\necho \'{line}\'\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
    repository.edit("pool: workers, size: 2", "pool: workers, size: 1")
    repository.commit("A smaller set")
    done = repository.plan("HEAD~1")
    assert done.returncode == 1, done.stderr
    assert "Slurm's files: 1 mistake, says slurmctld 26.05.5 of " in repository.comment
    assert "  gres.conf: no such GPU\n" in repository.comment
    calls = (tmp_path / "calls").read_text().splitlines()
    assert (calls.count("image"), calls.count("run")) == (1, 1)
    assert {"etc/slurm/slurm.conf", "opt/check/programs/config_check/run.py"} <= set(calls), "the program comes with the wheel"


def test_repair_of_a_broken_base_is_compared_with_nothing(repository: Repository) -> None:
    repository.edit("pool: workers, size: 2", "pool: wrokers, size: 2")
    repository.commit("A mistake")
    repository.edit("pool: wrokers, size: 2", "pool: workers, size: 2")
    repository.commit("Its repair")
    done = repository.plan("HEAD~1")
    assert done.returncode == 2, repository.comment
    assert "itself has mistakes, so all resources look new" in repository.comment


def test_what_policies_refuse_is_in_the_comment(repository: Repository) -> None:
    images = "images: {slurm: registry.example/slurm:latest, controllers: registry.example/controllers:1}"
    repository.edit("    name: dev\n", f"    name: dev\n    {images}\n")
    repository.commit("An image that moves")
    done = repository.plan("HEAD~1")
    assert done.returncode == 1, repository.comment
    assert repository.comment.startswith("## Slipway: mistakes\n")
    assert 'fixed-images: "registry.example/slurm:latest" has no fixed version.' in repository.comment
    assert "Deployment dev-login, spec.template.spec.containers[login].image\n" in repository.comment
    repository.edit("slurm:latest", "slurm:1")
    (repository.folder / "slipway_policies.py").write_text(OWN_POLICY)
    repository.commit("An image that stays, and a rule of the team")
    done = repository.plan("HEAD~1")
    assert done.returncode == 2, repository.comment
    assert "itself has mistakes" not in repository.comment, "the base is not judged again"
    assert (
        "**What the policies advise**\n\n- named-services: Service dev-login, metadata.annotations: name no host. Add one.\n"
        in repository.comment
    )


def test_stack_that_is_gone_is_dangerous(repository: Repository) -> None:
    shutil.copy(repository.folder / STACK, repository.folder / "Pulumi.test.yaml")
    repository.commit("A second stack")
    (repository.folder / "Pulumi.test.yaml").unlink()
    repository.commit("The second stack is gone")
    done = repository.plan("HEAD~1")
    assert done.returncode == 3
    assert "Pulumi.test.yaml is gone" in repository.comment
    assert "| dev | nothing changes |" in repository.comment


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("origin/main",), "git finds no common commit of origin/main and HEAD", id="base-that-was-not-fetched"),
        pytest.param(("main", "--stack", "prod"), 'No stack is called "prod"', id="unknown-stack"),
        pytest.param(("main", "--live"), "kubeconfig", id="live-without-a-cluster"),
    ],
)
def test_what_cannot_be_compared_is_an_error(repository: Repository, arguments: tuple[str, ...], said: str) -> None:
    done = repository.plan(*arguments)
    assert done.returncode == 1
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_checkout_plans_each_commit_with_the_code_of_that_commit(tmp_path: Path) -> None:
    """A commit that changes a component, and no stack file, is told like any other change."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    git = ["git", "-c", "user.name=Alice", "-c", "user.email=alice@example.com"]
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "One"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    labels = tmp_path / "components" / "labels.py"
    labels.write_text(labels.read_text().replace('"slipway"', '"another"'))
    options = [part for key in KEYS for part in ("--config", key)]
    command = [sys.executable, "-m", "cli", "ci", "--base", "HEAD", "--stack", "dev", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (2, 3), done.stderr
    assert "| dev | " in done.stdout
