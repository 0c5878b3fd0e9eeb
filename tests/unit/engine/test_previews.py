"""Previews for CI: exit codes, comparison with another state's plan, the story as Markdown and JSON, and previews of the pulumi CLI."""

import io
import json
import shutil
from pathlib import Path

import pytest

from cli import main as cli
from tests.support.engine.recorded import SMALL

CONF = "ClusterName=small\\nNodeName=a-[0-3] CPUs=2\\nPartitionName=main Nodes=a-[0-3] MaxTime=60\\n"
SMALLER = CONF.replace("a-[0-3]", "a-[0-1]")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A copy of the fixture stack."""
    return Path(shutil.copytree(SMALL, tmp_path / "small"))


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    said = capsys.readouterr()
    assert (ended.value.code or 0) == code, said
    return said.out + said.err


def base(here: Path, *, files: str = CONF) -> tuple[str, ...]:
    return ("preview", "--stack", "dev", "-C", str(here), "--offline", "-c", f'app.files={{"slurm.conf":"{files}"}}')


EXITS = {
    "nothing": (("-c", "app.cloud=false"), 0, "Nothing to change"),
    "changes": (("-c", "app.replicas=3"), 2, "2 to 3 pods"),
    "dangerous, as data goes": (("-c", "app.claim=other"), 3, "PersistentVolumeClaim small/data: the claim and the data on its volume"),
}


@pytest.mark.parametrize(("options", "code", "words"), EXITS.values(), ids=EXITS)
def test_exit_code_tells_ci_how_to_take_the_change(
    options: tuple[str, ...], code: int, words: str, here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = str(tmp_path / "base.json")
    run(capsys, *base(here), "--json", plan)
    assert words in run(capsys, *base(here), "--against", plan, *options, "--exit-code", code=code)
    run(capsys, *base(here), "--against", plan, *options)  # without the option it is 0, whatever changes


def test_story_is_told_against_the_plan_of_another_state(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, told, comment = (tmp_path / name for name in ("base.json", "story.json", "comment.md"))
    run(capsys, *base(here), "--json", str(plan))
    files = ("--json", str(told), "--markdown", str(comment))
    said = run(capsys, *base(here, files=SMALLER), "--against", str(plan), *files, "--exit-code", code=3)
    assert "nodes       a-[2-3]         removed: needs the end of the jobs there" in said
    assert "unknown: no cluster was asked" in said
    assert json.loads(told.read_text())["story"]["level"] == "dangerous"
    assert comment.read_text().startswith("### small/dev: **dangerous**\n\n1 to update, 8 unchanged\n")


def test_missing_plan_is_an_error_with_the_command_that_writes_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "`preview --json nowhere.json`" in run(capsys, *base(here), "--against", "nowhere.json", code=1)


def test_against_without_offline_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--offline" in run(capsys, "preview", "--stack", "dev", "-C", str(here), "--against", "a.json", code=1)


@pytest.mark.parametrize("text", ["{}", "[]", "no", '{"resources": 3}'])
def test_file_that_is_no_plan_is_refused(text: str, here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.json").write_text(text)
    assert "not a plan" in run(capsys, *base(here), "--against", str(tmp_path / "plan.json"), code=1)


def test_file_that_cannot_be_written_is_an_error(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be written" in run(capsys, *base(here), "--markdown", str(here / "no" / "folder.md"), code=1)


def digest(old: str, new: str) -> str:
    def state(conf: str) -> dict[str, object]:
        about = {"name": "dev-slurm-config", "namespace": "slurm"}
        inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"slurm.conf": conf.replace("\\n", "\n")}}
        return {"type": "kubernetes:core/v1:ConfigMap", "inputs": inputs}

    return json.dumps({"steps": [{"op": "update", "urn": "urn:a::b::c::d", "oldState": state(old), "newState": state(new)}]})


def test_preview_of_the_pulumi_cli_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "preview.json").write_text(digest(CONF, SMALLER))
    said = run(capsys, "explain", str(tmp_path / "preview.json"), "--offline", "--exit-code", code=3)
    assert "a-[2-3]" in said
    assert "Kubernetes objects: 1 to update" in said


def test_preview_of_the_pulumi_cli_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(digest(CONF, CONF.replace("MaxTime=60", "MaxTime=90"))))
    assert "MaxTime 60 → 90" in run(capsys, "explain", "-", "--offline", "--exit-code", code=3)


def test_jobs_are_unknown_where_no_cluster_can_be_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "preview.json").write_text(digest(CONF, SMALLER))
    said = run(capsys, "explain", str(tmp_path / "preview.json"), "--context", "nowhere", "--kubeconfig", str(tmp_path / "preview.json"))
    assert "unknown: " in said


def test_what_is_no_preview_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "preview.json").write_text("Previewing update (dev)")
    assert "not the output of `pulumi preview --json`" in run(capsys, "explain", str(tmp_path / "preview.json"), code=1)


@pytest.mark.parametrize(("inside", "head"), [(True, "other.yaml: 1 mistake"), (False, "{folder}/other.yaml: 1 mistake")])
def test_mistakes_are_headed_by_the_file_that_was_read(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], inside: bool, head: str
) -> None:
    file = (here if inside else tmp_path) / "other.yaml"
    shutil.copy(here / "Pulumi.dev.yaml", file)
    said = run(capsys, *base(here), "--config-file", str(file), "-c", "app.fail=run", code=1)
    assert head.format(folder=tmp_path) in said
    assert "Pulumi.dev.yaml" not in said
