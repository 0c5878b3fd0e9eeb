"""Slurm's files in a container: what is put into it, the runtime's command line, and what is made of its answer.

tests/slurm/test_config_check.py has a real runtime and a real slurmctld.
"""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from cli import config_check
from cli import main as cli
from cli.config_check import NO_RUNTIME, Check, Line, Subject
from engine.faults import SlipwayError
from engine.plan import Unknown
from names import variables
from tests.support.engine.recorded import SMALL

IMAGE = "localhost/slipway/slurm:1"
READ: dict[str, Any] = {"folder": "/etc/slurm", "mistakes": [], "notes": [], "nodes": 6, "partitions": 3}
REFUSED: dict[str, Any] = {"folder": "/etc/slurm", "mistakes": [{"file": "gres.conf", "text": "no such GPU"}], "notes": []}


def answer(read: dict[str, Any]) -> str:
    return json.dumps({"version": "26.05.5", "sets": [read]})


def manifest(kind: str, name: str, **more: Any) -> dict[str, Any]:
    about = {"name": name, "namespace": "slurm", "labels": {"slipway.dev/cluster": "dev"}}
    return {"apiVersion": "apps/v1" if kind == "StatefulSet" else "v1", "kind": kind, "metadata": about, **more}


def plan(conf: Any = "ClusterName=dev\n", container: str = "slurmctld") -> list[dict[str, Any]]:
    """A slurmctld with its files, scripts and a Secret; and an accounting database."""
    mounts = [("scripts", "/opt/scripts"), ("config", "/etc/slurm"), ("jwt", "/etc/jwt"), ("state", "/var/spool")]
    mounted = [{"name": name, "mountPath": path} for name, path in mounts]
    pod = {
        "containers": [{"name": "munged"}, {"name": container, "image": IMAGE, "volumeMounts": mounted}],
        "volumes": [
            {"name": "config", "configMap": {"name": "dev-config", "defaultMode": 0o444}},
            {"name": "scripts", "configMap": {"name": "dev-scripts", "defaultMode": 0o555, "items": [{"key": "a", "path": "a.sh"}]}},
            {"name": "jwt", "secret": {"secretName": "dev-jwt"}},
        ],
    }
    return [
        manifest("ConfigMap", "dev-config", data={"slurm.conf": conf}),
        manifest("ConfigMap", "dev-scripts", data={"a": "#!/bin/sh\n", "b": "left out"}),
        manifest("ConfigMap", "dev-slurmdbd", data={"slurmdbd.conf": "DbdHost=x\n"}),
        manifest("ConfigMap", "other", data={"x": "y"}),
        manifest("StatefulSet", "dev-slurmctld", spec={"template": {"spec": pod}}),
    ]


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a podman that has the image, writes down how it was called, and prints the file `answer`."""
    script = f"""#!/bin/sh
printf '%s\\n' "$*" >> {tmp_path}/calls
case "$1" in
image) test -e {tmp_path}/image ;;
run) cat > {tmp_path}/input; cat {tmp_path}/answer; echo "the last words" >&2 ;;
esac
"""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/podman").write_text(script)
    (tmp_path / "bin/podman").chmod(0o755)
    (tmp_path / "bin/nerdctl").symlink_to("/bin/false")
    (tmp_path / "image").touch()
    (tmp_path / "answer").write_text(answer(READ))
    for name in ("cat", "sh", "test"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}" if name != "test" else "/usr/bin/test")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_container_gets_what_the_plan_mounts_into_slurmctld() -> None:
    assert config_check.subjects(plan()) == [
        Subject(
            IMAGE,
            "dev-slurmctld-0",
            ("/etc/slurm", "/opt/scripts"),
            {
                "/etc/slurm/slurm.conf": ("ClusterName=dev\n", 0o444),
                "/opt/scripts/a.sh": ("#!/bin/sh\n", 0o555),
                "/etc/slurm/slurmdbd.conf": ("DbdHost=x\n", 0o444),
            },
        )
    ]


@pytest.mark.parametrize(
    "given", [pytest.param(plan(container="other"), id="no-slurmctld"), pytest.param(plan(conf=Unknown()), id="unknown-files")]
)
def test_plan_without_files_of_slurmctld_has_nothing_to_check(given: list[dict[str, Any]]) -> None:
    assert config_check.check(given) == []


def test_archive_has_the_files_and_the_program_that_checks_them() -> None:
    with tarfile.open(fileobj=io.BytesIO(config_check.archive(config_check.subjects(plan())[0]))) as tar:
        modes = {entry.name: entry.mode for entry in tar.getmembers()}
    assert modes["etc/slurm/slurm.conf"] == 0o444
    assert modes["opt/scripts/a.sh"] == 0o555
    assert {"opt/check/programs/config_check/run.py", "opt/check/slurm/conf.py"} <= modes.keys()


def test_container_has_no_network_and_pulls_nothing(runtime: Path) -> None:
    (check,) = config_check.check(plan())
    assert (check.runtime, check.version, check.nodes, check.partitions) == ("podman", "26.05.5", 6, 3)
    assert check.words == f"Slurm's files: read by slurmctld 26.05.5 of {IMAGE}: 6 nodes, 3 partitions, no complaint"
    asked, ran = (runtime / "calls").read_text().split("\n", 1)
    assert asked == f"image inspect {IMAGE}"
    for option in ("--rm", "--network none", "--pull never", "--hostname dev-slurmctld-0", "--cap-add NET_ADMIN"):
        assert f" {option} " in ran
    assert ran.endswith(" sh /etc/slurm /opt/scripts\n")
    assert b"ClusterName=dev" in (runtime / "input").read_bytes()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param('{"fault": "the image has no munged"}', "the image has no munged", id="fault"),
        pytest.param("", "the last words", id="no-answer"),
        pytest.param('{"version": 1}', "the last words", id="strange-answer"),
    ],
)
def test_container_that_cannot_check_is_no_complaint(runtime: Path, text: str, words: str) -> None:
    (runtime / "answer").write_text(text)
    (check,) = config_check.check(plan())
    assert check == Check(IMAGE, "podman", reason=words)
    assert check.words == f"Slurm's files were not checked with {IMAGE}: {words}"
    with pytest.raises(SlipwayError, match=words):
        config_check.check(plan(), "podman")


def test_image_that_is_not_at_hand_is_not_spoken_of(runtime: Path) -> None:
    (runtime / "image").unlink()
    (check,) = config_check.check(plan())
    assert (check.reason, check.words) == (NO_RUNTIME, "")
    assert "run" not in (runtime / "calls").read_text()
    with pytest.raises(SlipwayError, match="Fetch the image with `podman pull localhost/slipway/slurm:1`"):
        config_check.check(plan(), "podman")
    with pytest.raises(SlipwayError, match="there is no program runc"):
        config_check.check(plan(), "runc")


def test_many_mistakes_are_cut_with_their_number() -> None:
    lines = tuple(Line("gres.conf", f"node {number}") for number in range(12))
    words = Check(IMAGE, "podman", "26.05.5", 6, 3, mistakes=lines).words.splitlines()
    assert words[:2] == [f"Slurm's files: 12 mistakes, says slurmctld 26.05.5 of {IMAGE}", "  gres.conf: node 0"]
    assert (len(words), words[-1]) == (12, "  and 2 more")


def answer_with(monkeypatch: pytest.MonkeyPatch, read: dict[str, Any]) -> None:
    """Has every check come to this answer."""

    def check(*_: object) -> list[Check]:
        return [config_check.read_answer(IMAGE, "podman", answer(read), "")]

    monkeypatch.setattr(config_check, "check", check)


def preview(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["preview", "--stack", "dev", "-C", str(SMALL), "--offline", *options])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out + said.err


def test_preview_ends_with_1_and_writes_its_files_when_slurmctld_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wishes: list[str | None] = []

    def check(_: object, wish: str | None) -> list[Check]:
        wishes.append(wish)
        return [Check(IMAGE, "podman", "26.05.5", mistakes=(Line("gres.conf", "no such GPU"),), notes=(Line("slurm.conf", "odd"),))]

    monkeypatch.setattr(config_check, "check", check)
    code, said = preview(capsys, "--json", str(tmp_path / "p.json"), "--exit-code", "--check-with", "podman")
    assert (code, wishes) == (1, ["podman"])
    assert f"Slurm's files: 1 mistake, says slurmctld 26.05.5 of {IMAGE}\n  gres.conf: no such GPU" in said
    assert "warning: slurm.conf: odd (slurmctld 26.05.5)" in said
    assert json.loads((tmp_path / "p.json").read_text())["check"][0]["mistakes"] == [{"file": "gres.conf", "text": "no such GPU"}]


def test_preview_says_what_slurmctld_has_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer_with(monkeypatch, READ)
    code, said = preview(capsys, "--markdown", str(tmp_path / "p.md"))
    words = f"Slurm's files: read by slurmctld 26.05.5 of {IMAGE}: 6 nodes, 3 partitions, no complaint"
    assert (code, words in said, words in (tmp_path / "p.md").read_text()) == (0, True, True)


@pytest.mark.parametrize(
    ("left_out", "code", "words"),
    [
        pytest.param("", 0, f"Slurm's files: read by slurmctld 26.05.5 of {IMAGE}", id="all-objects"),
        pytest.param("StatefulSet", 0, "", id="without-slurmctld"),
    ],
)
def test_preview_of_the_pulumi_cli_is_checked_where_it_has_all_objects(
    left_out: str, code: int, words: str, runtime: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = [each for each in plan() if each["kind"] != left_out]
    states = [{"type": f"kubernetes:x:{each['kind']}", "inputs": each} for each in kept]
    digest = runtime / "preview.json"
    digest.write_text(json.dumps({"steps": [{"op": "same", "urn": "u", "oldState": state, "newState": state} for state in states]}))
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", str(digest), "--offline", "--json", str(runtime / "told.json")])
    said = capsys.readouterr().out
    assert ((ended.value.code or 0), ("Slurm's files" in said), (words in said)) == (code, bool(words), True)
    assert len(json.loads((runtime / "told.json").read_text())["check"]) == bool(words)


def test_option_turns_the_check_off(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer_with(monkeypatch, REFUSED)
    assert preview(capsys)[0] == 1
    assert preview(capsys, "--no-check")[0] == 0


def test_variable_turns_the_check_off_unless_it_is_asked_for(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variables.CHECK, "off")
    assert config_check.check(plan()) == []
    assert config_check.check(plan(), "podman")[0].nodes == 6
    assert (runtime / "calls").exists()
