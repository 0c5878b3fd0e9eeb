"""The verbs on a real cluster, with a small stack in a namespace of its own: what needs kubelets. All else that the verbs do is in
tests/apiserver.

The stack is tests/unit/engine/fixtures/small; its pods sleep in the Slurm image, which every node has.
"""

import base64
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.dev_stack import ROOT, STATE, UP_S, eventually
from tests.support.cluster.warm import warm
from tests.support.patience import patience

SMALL = ROOT / "tests" / "unit" / "engine" / "fixtures" / "small"
COMMAND = (sys.executable, "-m", "cli")


class SmallStack:
    """The fixture stack in one namespace of the local cluster."""

    def __init__(self, folder: Path, image: str) -> None:
        self.folder, self.namespace = folder, f"small-{secrets.token_hex(3)}"
        self._settings = (f"app.namespace={self.namespace}", f"app.image={image}")

    def argv(self, verb: str, *options: str) -> list[str]:
        """What follows `slipway`."""
        settings = [part for one in self._settings for part in ("-c", one)]
        where = ("--kubeconfig", str(STATE / "kubeconfig"))
        # This project is not the cluster's own checkout, so its first `up` would ask, and look for what the cluster lacks.
        options = ("--yes", "--ignore-missing", "--timeout", seconds(UP_S), *options) if verb == "up" else options
        return [verb, "--stack", "dev", "-C", str(self.folder), *where, *settings, *options]

    def run(self, verb: str, *options: str, code: int = 0) -> str:
        """Runs a verb; all that it printed."""
        done = warm().run(self.argv(verb, *options), os.environ, 400 * patience())
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def kubectl(self, *arguments: str) -> str:
        """kubectl in the stack's namespace."""
        command = (str(STATE / "bin" / "kubectl"), "--kubeconfig", str(STATE / "kubeconfig"), "-n", self.namespace, *arguments)
        return subprocess.run(command, capture_output=True, text=True, timeout=120 * patience(), check=True).stdout

    def get(self, what: str) -> Any:
        """An object, decoded; None when it is not there."""
        said = self.kubectl("get", what, "--ignore-not-found", "-o", "json")
        return json.loads(said) if said else None

    def key(self) -> str:
        """The random key as the stack's own Secret has it."""
        return self.get("secret/key")["data"]["key"]


def seconds(limit: float) -> str:
    """For how long a verb is to wait, by the machine's pace."""
    return f"{limit * patience():.0f}"


@pytest.fixture(scope="module")
def image(kube: str) -> str:
    """A reference that every node has."""
    assert kube
    reference = subprocess.run([sys.executable, "-m", "images", "tag", "slurm"], cwd=ROOT, capture_output=True, text=True, check=True)
    return reference.stdout.strip()


@pytest.fixture
def small(shared_cluster: None, tmp_path: Path, image: str) -> Iterator[SmallStack]:
    """The stack, not yet up; destroyed afterwards whatever happened."""
    made = SmallStack(Path(shutil.copytree(SMALL, tmp_path / "small")), image)
    yield made
    made.kubectl("delete", "namespace", made.namespace, "--ignore-not-found", "--wait=false")


def test_up_makes_everything_and_a_second_up_changes_nothing(small: SmallStack) -> None:
    assert "9 to create" in small.run("preview")
    assert "9 created" in small.run("up")
    begin = time.monotonic()
    said = small.run("up")
    assert time.monotonic() - begin < 60 * patience()
    assert "nothing to change" in said
    assert "9 unchanged" in said
    assert "Nothing to change: 9 unchanged" in small.run("preview")


def test_next_up_finishes_a_killed_up_with_the_same_secrets(small: SmallStack) -> None:
    with subprocess.Popen([*COMMAND, *small.argv("up")], cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        eventually("the random values kept", lambda: small.get("secret/slipway-small-dev-random"), every_s=0.05)
        process.send_signal(signal.SIGKILL)
    kept = small.get("secret/slipway-small-dev-random")["data"]
    small.run("up")
    assert small.get("secret/slipway-small-dev-random")["data"] == kept
    value = next(value for name, value in kept.items() if name.startswith("RandomBytes."))
    assert base64.b64decode(small.key()) == base64.b64decode(value)
    before = small.key()
    small.kubectl("delete", "secret/key")
    small.run("up")
    assert small.key() == before


def test_what_is_retained_outlives_its_stack_and_its_namespace_with_it(small: SmallStack) -> None:
    small.run("up", "-c", "app.retain=true")
    assert "data stays in the cluster (retainOnDelete)" in small.run("up", "-c", "app.claim=other", "-c", "app.retain=true")
    assert small.get("pvc/data") is not None
    said = small.run("destroy", "--yes")
    assert f"Namespace {small.namespace} stays" in said
    assert {one["metadata"]["name"] for one in small.get("pvc")["items"]} == {"data", "other"}
    assert small.get("statefulset") is None


def test_a_missing_image_is_named_and_the_next_up_repairs(small: SmallStack) -> None:
    said = small.run("up", "-c", "app.image=localhost/slipway/slurm:nope", "--timeout", seconds(60), code=1)
    assert "image localhost/slipway/slurm:nope is missing" in said
    assert "python -m images build" in said
    said = small.run("up")
    assert "stuck on an older template" in said
    assert small.get("pod/a-0")["status"]["phase"] == "Running"


def test_a_crashing_pod_shows_its_last_words(small: SmallStack) -> None:
    command = ("-c", 'app.command=["sh","-c","echo no such disk; exit 3"]')
    said = small.run("up", *command, "--timeout", seconds(30), code=1)
    assert "a-0: container main keeps ending (exit code 3" in said
    assert "| no such disk" in said


def test_an_interrupted_wait_says_that_nothing_is_lost(small: SmallStack) -> None:
    with subprocess.Popen([*COMMAND, *small.argv("up", "-c", "app.cpu=900")], cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        eventually("the set made", lambda: small.get("statefulset/a"))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120 * patience())
    assert process.returncode == 130
    assert "Interrupted. What was done stays" in said


def test_a_set_that_cannot_fit_is_named_with_what_it_asks_for(small: SmallStack) -> None:
    said = small.run("up", "-c", "app.cpu=900", "--timeout", seconds(20), code=1)
    assert "a-0: no node can take it (it asks for cpu 900)" in said
    assert "Insufficient cpu" in said
    small.run("up")


def test_a_plan_and_everything_printed_keep_the_secrets(small: SmallStack, tmp_path: Path) -> None:
    said = small.run("up") + small.run("preview", "--json", str(tmp_path / "plan.json")) + small.run("render")
    said += (tmp_path / "plan.json").read_text() + (small.folder / ".slipway" / "plans" / "dev.json").read_text()
    data = small.get("secret/key")["data"]
    for value in data.values():
        assert value not in said
    assert base64.b64decode(data["password"]).decode() not in said
    assert data["key"] in small.run("render", "--show-secrets")
