"""`make up` tells every program that it runs which cluster it is for. What KUBECONFIG says counts for a cluster of the user's own only."""

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local import __main__ as command_line
from local import layout, quickstart
from local.commands import LocalError

KEY = Path("/keys/id")
PATHS = layout.find_paths(Path("/tree"), {"HOME": "/root"})


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The command lines that the quickstart runs, and none of them run; with KUBECONFIG exported and a kubectl on PATH."""
    ran: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        pushed = "images: {slurm: 'reg/slurm:1', controllers: 'reg/controllers:1'}"
        said = {"push": pushed, "settings": "{}", "ssh": "ssh alice@host", "archive": "\n".join(command[4:])}.get(command[3], "")
        return subprocess.CompletedProcess(command, 0, said, "")

    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(quickstart.subprocess, "run", run)

    def nothing(*_: str) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()

    monkeypatch.setattr(quickstart, "_beside", nothing)
    monkeypatch.setattr(command_line, "PATHS", PATHS)
    monkeypatch.setenv("KUBECONFIG", "/elsewhere/kubeconfig")
    monkeypatch.delenv("KUBECTL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return ran


def quick(*options: str) -> None:
    result = CliRunner().invoke(command_line.app, ["quickstart", "--key", str(KEY), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def options_of(children: list[list[str]]) -> list[list[str]]:
    """Of the programs that talk to a Kubernetes cluster, what they are told."""
    return [each for each in children if each[1:3] == ["-m", "cli"] or each[0].endswith("kubectl")]


def test_every_child_is_told_the_local_clusters_kubeconfig_and_context(children: list[list[str]]) -> None:
    quick()
    talking = options_of(children)
    assert [each[3] for each in talking] == ["up", "check", "ssh"]
    for each in talking:
        assert each[each.index("--kubeconfig") + 1] == str(PATHS.kubeconfig)
        assert each[each.index("--context") + 1] == "slipway-local"
    assert not any("push" in each for each in children)


def test_own_cluster_is_named_by_context_and_builds_nothing_here(children: list[list[str]]) -> None:
    quick("--context", "prod", "--stack", "cluster")
    talking = options_of(children)
    assert [each[3] for each in children] == [each[3] for each in talking] == ["up", "check", "ssh"]
    for each in talking:
        assert "--kubeconfig" not in each
        assert each[each.index("--context") + 1] == "prod"
    assert "--yes" not in talking[0]


def test_a_registry_gets_the_images_and_the_stack_takes_them_from_there(children: list[list[str]]) -> None:
    quick("--context", "prod", "--registry", "reg", "--yes")
    assert [each[2:] for each in children if "push" in each] == [["images", "push", "reg"]]
    up = options_of(children)[0]
    assert up[up.index("--config") + 1] == 'cluster.images={"slurm": "reg/slurm:1", "controllers": "reg/controllers:1"}'
    assert "--yes" in up


def test_a_registry_without_a_context_is_refused(children: list[list[str]]) -> None:
    with pytest.raises(LocalError, match="CONTEXT"):
        quick("--registry", "reg")
    assert children == []


def test_further_options_reach_the_command(children: list[list[str]]) -> None:
    quick("--context", "prod", "--stack", "cluster", "--", "--ignore-missing", "--adopt")
    assert options_of(children)[0][-2:] == ["--ignore-missing", "--adopt"]


FAKE = """\
import pathlib, sys
words = [pathlib.Path(__file__).parent.name, *sys.argv[1:]]
with open("ran", "a") as ran:
    print(*words, file=ran)
{}
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose programs do nothing, so that a test can make one of them fail."""
    for package in ("images", "cli", "engine", "local"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__main__.py").write_text(FAKE.format(r"print(*words[2:], sep='\n')"))
    monkeypatch.setattr(quickstart, "ROOT", tmp_path)
    return tmp_path


def fails(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """Exit code and error lines of `python -m local ...`, with those of the programs that it ran."""
    monkeypatch.setattr(command_line.sys, "argv", ["local", *arguments])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert isinstance(ended.value.code, int)
    said = capfd.readouterr().err
    assert "Traceback" not in said
    return ended.value.code, said.splitlines()


@pytest.mark.parametrize(
    ("package", "program", "command", "code"),
    [
        pytest.param(
            "images",
            "sys.exit('no packages') if 'build' in words else 0",
            "images build slurm root controllers observability",
            1,
            id="image",
        ),
        pytest.param(
            "images",
            "sys.exit('no packages') if 'archive' in words else 0",
            "images archive slurm root controllers observability",
            1,
            id="archive",
        ),
        pytest.param("local", "print('no packages', file=sys.stderr); sys.exit(3)", "local up", 3, id="cluster"),
        pytest.param(
            "local", "print('no packages', file=sys.stderr, flush=True); import os; os.kill(os.getpid(), 9)", "local up", 137, id="killed"
        ),
    ],
)
def test_step_that_fails_ends_make_up_with_its_words_and_its_name(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], package: str, program: str, command: str, code: int
) -> None:
    (tree / package / "__main__.py").write_text(FAKE.format(program))
    got, said = fails(monkeypatch, capfd, "prepare")
    assert got == code
    assert "no packages" in said
    assert f"stopped: `python -m {command}`" in said[-1]


BUILDS = """
import time
if words == ["local", "programs"]:
    while "images build" not in open("ran").read():
        time.sleep(0.01)
    open("made", "w")
if words == ["local", "up"]:
    open("made")
"""
NEVER_ENDS = """
import os, time
if words == ["local", "programs"]:
    open("pid.new", "w").write(str(os.getpid()))
    os.rename("pid.new", "pid")
    time.sleep(600)
"""
FAILS_LATER = """
import os, time
while not os.path.exists("pid"):
    time.sleep(0.01)
sys.exit(1)
"""


def test_programs_are_built_beside_the_images_and_before_the_cluster(tree: Path) -> None:
    (tree / "local" / "__main__.py").write_text(FAKE.format(BUILDS))
    quickstart.prepare()
    assert (tree / "made").exists()


def test_programs_are_not_built_on_when_an_image_fails(tree: Path) -> None:
    (tree / "local" / "__main__.py").write_text(FAKE.format(NEVER_ENDS))
    (tree / "images" / "__main__.py").write_text(FAKE.format(FAILS_LATER))
    with pytest.raises(quickstart.StepFailedError):
        quickstart.prepare()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tree / "pid").read_text()), 0)


def test_image_whose_files_changed_meanwhile_is_built_again(tree: Path) -> None:
    program = "if 'archive' in words and open('ran').read().count('images build') < 2: sys.exit(1)"
    (tree / "images" / "__main__.py").write_text(FAKE.format(f"{program}\nprint(*('/archives/' + name for name in words[2:]), sep='\\n')"))
    quickstart.prepare()
    ran = [line.partition(" /tmp/")[0] for line in (tree / "ran").read_text().splitlines()]
    names = "slurm root controllers observability"
    assert [line for line in ran if "load" in line or "slurm" in line] == [
        *[f"images build {names}", f"images archive {names}"] * 2,
        "local load-image /archives/root --files",
        "local load-image /archives/slurm /archives/controllers /archives/observability",
    ]


def test_what_nobody_foresaw_is_one_message_with_its_trace_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def vanish() -> None:
        raise FileNotFoundError(2, "No such file or directory", "images/slurm/gone")

    monkeypatch.setattr(quickstart, "prepare", vanish)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    code, said = fails(monkeypatch, capfd, "prepare")
    [log] = tmp_path.glob("slipway-local-*.log")
    assert code == 1
    assert "'images/slurm/gone'" in said[0]
    assert str(log) in said[-1]
    assert "Traceback" in log.read_text()
