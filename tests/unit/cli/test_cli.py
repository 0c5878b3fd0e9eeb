"""The verbs without a cluster: what they print, what they save, how they fail. No secret is ever among it."""

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli import main as cli
from engine import record
from engine.plan import secret_texts
from tests.support.engine.canned import CannedServer, write_kubeconfig
from tests.support.engine.recorded import SMALL, Recorder
from tests.unit.cli.verbs import run


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A copy of the fixture stack, so that plans are saved beside it."""
    return Path(shutil.copytree(SMALL, tmp_path / "small"))


def test_command_of_a_checkout_runs_in_any_folder_and_completes_its_verbs(tmp_path: Path) -> None:
    command = str(Path(sys.executable).parent / "slipway")
    shell = {"_SLIPWAY_COMPLETE": "complete_bash", "COMP_WORDS": "slipway ma", "COMP_CWORD": "1"}
    listed = subprocess.run([command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert all(purpose in listed for purpose in get_args(cli.Purpose))
    done = subprocess.run([command], cwd=tmp_path, env={**os.environ, **shell}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["maintenance"]


@pytest.mark.parametrize("verb", ["preview", "explain"])
def test_preview_refuses_json_on_the_output_that_it_prints_to(here: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    where = ("--stack", "dev", "-C", str(here), "--offline") if verb == "preview" else ("-",)
    assert "standard output has the preview" in run(capsys, verb, *where, "--json", "-", code=1)


def test_check_finds_an_unwritable_file_before_it_asks_the_cluster(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = here / "absent" / "checks.json"
    assert f"{file} cannot be written" in run(capsys, "check", "--stack", "dev", "-C", str(here), "--json", str(file), code=1)


def test_a_preview_shows_the_tree_and_counts(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "preview", "--stack", "dev", "-C", str(here), "--offline")
    assert " +  small:index:App  app\n" in said
    assert " +  ├─ kubernetes:apps/v1:StatefulSet  a\n" in said
    assert said.endswith("\n9 to create\n")


def test_a_preview_against_the_saved_plan_shows_line_diffs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ("preview", "--stack", "dev", "-C", str(here), "--offline")
    run(capsys, *base, "--save")
    assert "Nothing to change: 9 unchanged" in run(capsys, *base)
    changed = run(capsys, *base, "-c", 'app.files={"slurm.conf":"ClusterName=small\\nMaxTime=2:00:00\\n"}', "-c", 'app.sets=["a","c"]')
    lines = [line.replace("│", " ").strip() for line in changed.splitlines()]
    assert "-MaxTime=1:00:00" in lines
    assert "+MaxTime=2:00:00" in lines
    assert lines[-1] == "1 to create, 1 to update, 1 to delete, 7 unchanged"


def test_cloud_resources_are_previewed_and_refused_by_render(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--stack", "dev", "-C", str(here), "-c", "app.cloud=true")
    assert "aws:sqs/queue:Queue  queue" in run(capsys, "preview", *where, "--offline")
    assert "aws:sqs/queue:Queue queue" in run(capsys, "render", *where, code=1)


def test_rendered_yaml_is_plain_kubernetes_without_secrets(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "render", "--stack", "dev", "-C", str(here))
    kinds = [manifest["kind"] for manifest in yaml.safe_load_all(text) if manifest]
    assert kinds == ["Namespace", "PersistentVolumeClaim", "ConfigMap", "ConfigMap", "StatefulSet", "StatefulSet"]
    assert "# Secret small/key holds secrets and is left out" in text
    assert "pulumi.com/" not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("--stack", "dve"), 'No stack is called "dve". Did you mean "dev"?', id="stack"),
        pytest.param(("--stack", "dev", "-c", "app.fail=run"), "1 mistake\n  app.fail: run is not a thing to say.", id="config-faults"),
        pytest.param(("--stack", "dev", "-c", "app.fail=bug"), "__main__.py:15: KeyError: 'fail'", id="bug"),
        pytest.param(("--stack", "dev", "-c", "app[9]=1"), "needs a list", id="override"),
    ],
)
def test_a_mistake_is_shown_as_it_is_with_exit_code_1(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    said = run(capsys, "preview", "-C", str(here), "--offline", *arguments, code=1)
    assert words in said
    assert "Traceback" not in said


def test_without_a_cluster_preview_says_so_and_uses_the_saved_plan(here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dead = write_kubeconfig(tmp_path / "config", "dead", "http://127.0.0.1:9")
    where = ("--stack", "dev", "-C", str(here), "--kubeconfig", str(dead))
    said = run(capsys, "preview", *where)
    assert "warning: No cluster answers" in said
    assert said.endswith("9 to create\n")
    assert "127.0.0.1:9" in run(capsys, "up", *where, code=1)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.binary(min_size=8, max_size=8))
def test_no_secret_is_in_anything_printed_or_saved(
    recorded: Recorder, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seed: bytes
) -> None:
    def value_of(key: str, _others: object, type_: str, inputs: object) -> bytes:
        size = 64 if type_.endswith("RandomBytes") else 20
        return base64.b64encode((seed + key.encode()) * 64)[:size]

    monkeypatch.setattr(record.record, "__defaults__", (value_of, True))
    plan = recorded(value_of=value_of)
    secrets = {text for resource in plan.resources for text in secret_texts(resource.inputs)} | set(secret_texts(plan.outputs))
    secrets |= {base64.b64decode(text).decode() for text in secrets}
    assert len(secrets) >= 4
    where = ("--stack", "dev", "-C", str(here))
    said = run(capsys, "preview", *where, "--offline", "--save", "--json", str(here / "plan.json"))
    said += run(capsys, "preview", *where, "--offline", "-c", "app.replicas=3") + run(capsys, "render", *where)
    files = [here / "plan.json", here / ".slipway" / "plans" / "dev.json"]
    everything = said + "".join(path.read_text() for path in files)
    assert not [secret for secret in secrets if secret in everything]
    assert json.loads(files[0].read_text())["resources"]


def test_a_secret_in_an_error_is_hidden_too(here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, canned: CannedServer) -> None:
    """A server that echoes the objects it was given, as a validation error may."""
    canned.serve({"v1": ["Namespace", "ConfigMap", "Secret", "PersistentVolumeClaim"], "apps/v1": ["StatefulSet"]})
    live = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "small"}}
    canned.answers["/api/v1/namespaces/small"] = (200, live)

    def echo(body: str) -> str:
        return json.dumps({"message": body, "reason": "Invalid"})

    canned.answers["PATCH /api/v1/namespaces/small/secrets/key"] = (422, echo)
    said = run(capsys, "preview", "--stack", "dev", "-C", str(here), "--kubeconfig", str(canned.kubeconfig(tmp_path)), code=1)
    plan = record.record(cli.project.load(here, "dev")).plan
    secrets = {text for resource in plan.resources for text in secret_texts(resource.inputs)}
    assert len(secrets) == 2
    assert "[secret]" in said
    assert not [secret for secret in secrets if secret in said]


def test_what_nobody_foresaw_is_printed_without_a_stack_trace(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanish(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "gone")

    monkeypatch.setattr(record, "record", vanish)
    said = run(capsys, "preview", "--stack", "dev", "-C", str(here), "--offline", code=1)
    assert "'gone'" in said
    assert "Traceback" not in said
