"""What a node runs beside jobs, and what it tells of it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from programs.node_checks import beside
from programs.node_checks.beside import by_state, could_not_run, due, is_news, read_answer, run_checks
from programs.node_checks.collect_plan import read_report
from tests.support.patience import patience
from tests.unit.programs.node_checks.vendors import wait_until

SLURM, ALICE = 64030, 10001


def check(name: str, *contexts: str, program: str = "disk", timeout_s: int = 10, **settings: Any) -> dict[str, Any]:
    """A check as the config has it; its time is by the machine's pace."""
    about = {"causeKind": "node", "maxDrained": 2, "timeoutS": round(timeout_s * patience()), "settings": settings}
    return {"name": name, "check": program, "contexts": list(contexts), **about}


SPEC = {
    "slurmUser": SLURM,
    "nodeSets": {"gpu": [check("disk", "interval", "prolog"), check("gpus", "prolog", "epilog")], "big-mem": [check("memory", "interval")]},
}


@pytest.mark.parametrize(
    ("node", "context", "user", "names"),
    [
        pytest.param("gpu-0", "interval", None, ["disk"], id="interval"),
        pytest.param("gpu-11", "prolog", ALICE, ["disk", "gpus"], id="prolog"),
        pytest.param("gpu-0", "epilog", ALICE, ["gpus"], id="epilog"),
        pytest.param("gpu-0", "prolog", SLURM, [], id="job-of-a-check"),
        pytest.param("big-mem-3", "interval", None, ["memory"], id="name-with-a-dash"),
        pytest.param("cpu-0", "prolog", ALICE, [], id="set-without-checks"),
    ],
)
def test_checks_of_the_node_and_the_context_are_run(node: str, context: str, user: int | None, names: list[str]) -> None:
    assert [each["name"] for each in due(SPEC, node, context, user)] == names


@pytest.mark.parametrize(
    ("result", "told", "context", "news"),
    [
        pytest.param("passed", {}, "prolog", True, id="first"),
        pytest.param("passed", {"at": 100, "results": {"disk": "passed"}}, "interval", False, id="as-before"),
        pytest.param("passed", {"at": 100, "results": {"disk": "failed"}}, "prolog", True, id="passes-again"),
        pytest.param("failed", {"at": 100, "results": {"disk": "failed"}}, "prolog", True, id="still-fails"),
        pytest.param("unknown", {"at": 100, "results": {"disk": "unknown"}}, "interval", False, id="still-unknown"),
        pytest.param("passed", {"at": -900, "results": {"disk": "passed"}}, "interval", True, id="told-long-ago"),
        pytest.param("passed", {"at": -900, "results": {"disk": "passed"}}, "prolog", False, id="prolog-leaves-that-to-the-interval"),
        pytest.param("passed", {"at": 9000, "results": {"disk": "passed"}}, "interval", True, id="clock-was-set-back"),
        pytest.param("passed", {"at": 100, "results": {"disk": "passed"}, "held": ["disk"]}, "interval", True, id="one-more-pass"),
        pytest.param("unknown", {"at": 100, "results": {"disk": "unknown"}, "held": ["disk"]}, "interval", False, id="no-pass"),
        pytest.param("skipped", {"at": 100, "results": {"disk": "skipped"}}, "interval", False, id="still-nothing-to-look-at"),
    ],
)
def test_collector_hears_news_and_failures(result: str, told: dict[str, Any], context: str, news: bool) -> None:
    assert is_news([{"check": "disk", "result": result}], told, context, 120) is news


@pytest.mark.parametrize(
    ("state", "told", "looking", "skipped"),
    [
        pytest.param("idle", {}, ["disk", "bandwidth"], [], id="idle"),
        pytest.param("allocated", {}, ["disk"], ["bandwidth"], id="never-looked-at"),
        pytest.param("allocated", {"results": {"bandwidth": "failed"}}, ["disk"], [], id="what-was-found-stays-the-last-word"),
        pytest.param("", {}, ["disk", "bandwidth"], [], id="not-at-an-interval"),
    ],
)
def test_check_looks_at_nodes_in_its_states(state: str, told: dict[str, Any], looking: list[str], skipped: list[str]) -> None:
    checks = [check("disk", "interval"), {**check("bandwidth", "interval"), "nodeStates": ["idle"]}]
    now, later = by_state(checks, state, told)
    assert [each["name"] for each in now] == looking
    assert [(each["check"], each["result"], each["found"]) for each in later] == [
        (name, "skipped", "looks at nodes that are idle") for name in skipped
    ]


def test_wish_of_a_check_travels_with_what_it_found() -> None:
    given = {**check("disk", paths=["/"], minFreeMiB=2**50, minFreePercent=0), "wish": "none"}
    [told] = run_checks([given])
    text = json.dumps({"node": "gpu-0", "context": "interval", "job": "", "results": [told]}).encode()
    assert (told["result"], read_report(text).found[0].wish) == ("failed", "none")


def test_what_a_check_leaves_running_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "leaving_checks"
    folder.mkdir()
    program = "import json, subprocess\n\ndef main():\n    subprocess.Popen(['sleep', '600.75'])\n    print(json.dumps(%s))\n"
    (folder / "leaving.py").write_text(program % {"result": "passed", "found": "all"})
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(beside, "_PACKAGE", "leaving_checks")
    [found] = run_checks([check("leaving", program="leaving", timeout_s=5)])
    assert found["result"] in ("passed", "unknown")
    left = ["pgrep", "--full", "sleep 600.75"]
    assert wait_until(lambda: not subprocess.run(left, stdout=subprocess.PIPE, check=False).stdout)


def test_checks_run_at_once_and_one_that_hangs_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "some_checks"
    folder.mkdir()
    (folder / "slow.py").write_text("import subprocess\n\ndef main(): subprocess.run(['sleep', '600.25'])\n")
    (folder / "fine.py").write_text("import json, sys\n\ndef main(): print(json.dumps({'result': 'passed', 'found': sys.argv[1]}))\n")
    (folder / "broken.py").write_text("raise ValueError('bad driver')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(beside, "_PACKAGE", "some_checks")
    began = time.monotonic()
    checks = [check(each, program=each, timeout_s=2, paths=["/"]) for each in ("slow", "fine", "broken")]
    results = run_checks(checks)
    assert time.monotonic() - began < 60 * patience()
    assert [(each["check"], each["result"], each["found"]) for each in results] == [
        ("slow", "unknown", f"did not end within {checks[0]['timeoutS']} s"),
        ("fine", "passed", '{"paths": ["/"]}'),
        ("broken", "unknown", "could not run: ValueError: bad driver (exit code 1)"),
    ]
    assert not subprocess.run(["pgrep", "--full", "sleep 600.25"], stdout=subprocess.PIPE, check=False).stdout


def test_mounts_that_hang_fail_at_their_own_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no signal ends the processes that ask: they have nothing that the reader of the check's output waits for."""
    asking = tmp_path / "asking"

    def hang(path: str) -> None:
        with asking.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(600)

    def survive(process: int, number: int) -> None:
        """As a process in state D does."""

    monkeypatch.setattr(os, "statvfs", hang)
    monkeypatch.setattr(os, "kill", survive)
    began, answers_s = time.monotonic(), round(patience())
    try:
        [found] = run_checks([check("mounts", program="mounts", timeout_s=60, paths=["/proc", "/sys"], maxAnswerS=answers_s)])
        assert time.monotonic() - began < 50 * patience()
    finally:
        monkeypatch.undo()
        hanging = asking.read_text().split()
        for process in hanging:
            os.kill(int(process), signal.SIGKILL)
    assert len(hanging) == 2
    said = f"/proc does not answer within {answers_s} s; /sys does not answer within {answers_s} s"
    assert (found["result"], found["found"]) == ("failed", said)


def test_real_checks_answer_in_this_form() -> None:
    [disk] = run_checks([check("disk", paths=["/"], minFreeMiB=0, minFreePercent=0)])
    assert disk == {"check": "disk", "result": "passed", "found": "1 paths have room", "kind": "node", "maxDrained": 2, "passes": 1}


def test_answer_is_the_last_line() -> None:
    assert read_answer(0, 'hello\n{"result": "failed", "found": "x"}\n') == ("failed", "x", None)
    for code, output in [(1, '{"result": "failed", "found": "x"}'), (0, '{"result": "fine", "found": "x"}'), (0, ""), (0, "[]"), (0, "{}")]:
        assert read_answer(code, output) is None
    assert could_not_run(3, "") == "could not run: no output (exit code 3)"


FULL = check("disk", "prolog", paths=["/"], minFreeMiB=2**50, minFreePercent=0)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(SPEC | {"collector": ["127.0.0.1", 1], "nodeSets": {"gpu": [FULL]}}, id="nobody-takes-the-report"),
        pytest.param(SPEC | {"nodeSets": {}}, id="nothing-to-do"),
    ],
)
def test_outage_of_the_checks_holds_up_no_job(spec: dict[str, Any]) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "SLURMD_NODENAME": "gpu-0",
        "SLURM_SCRIPT_CONTEXT": "prolog_slurmd",
        "SLURM_JOB_UID": str(ALICE),
    }
    command = [sys.executable, "-m", "programs.node_checks.beside"]
    limit_s = 60 * patience()
    done = subprocess.run(command, input=json.dumps(spec), env=environment, capture_output=True, text=True, timeout=limit_s, check=False)
    assert done.returncode == 0, done.stderr
