"""What a check makes of srun and squeue, which stand-ins play as Slurm 26.05 was seen to answer."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from programs.node_checks.meeting import MEETING
from programs.node_checks.plan import BUSY, ENDED, NOT_BEGUN, PREEMPTED, UNKNOWN, Outcome
from programs.node_checks.slurm import Slurm
from slurm.check_results import PASSED
from slurm.scontrol import Node
from slurm.states import node_state
from tests.support.patience import patience
from tests.unit.programs.node_checks.vendors import wait_until

IDLE = Node("gpu-0", node_state(frozenset({"IDLE"})), partitions=("main", "slipway-checks"))


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, **does: str) -> None:
    for name, script in does.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.parametrize(
    ("jobs", "tried"),
    [
        pytest.param("", ["--partition=slipway-checks", "--partition=main"], id="behind-a-job-that-waits"),
        pytest.param("slipway-check-disk", ["--partition=slipway-checks"], id="beside-another-check"),
    ],
)
def test_check_enters_a_partition_of_users_only_on_a_node_without_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str, tried: list[str]
) -> None:
    refused = 'echo "srun: error: Requested nodes are busy" >&2; exit 1'
    stand_in(tmp_path, monkeypatch, srun=f'printf "%s\\n" "$@" >> {tmp_path}/words; {refused}', squeue=f'echo "{jobs}"')
    assert Slurm().run("memory", IDLE, Path(__file__), {}, 5, 0, None) == BUSY
    assert [word for word in (tmp_path / "words").read_text().splitlines() if word.startswith("--partition=")] == tried


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        pytest.param(["2999-01-02T03:04:05 PREEMPTED"], PREEMPTED, id="preempted"),
        pytest.param(["2999-01-02T03:04:05 COMPLETING", "2999-01-02T03:04:05 PREEMPTED"], PREEMPTED, id="ends-first"),
        pytest.param(
            ["2999-01-02T03:04:05 NODE_FAIL"],
            Outcome(UNKNOWN, "could not run: the job ended as NODE_FAIL (exit code 1)"),
            id="another-end",
        ),
        pytest.param(["2999-01-02T03:04:05 FAILED"], NOT_BEGUN, id="starts-as-srun-gives-up"),
        pytest.param(["2999-01-02T03:04:05 CANCELLED"], NOT_BEGUN, id="cancelled-as-it-starts"),
        pytest.param(
            ["2001-01-02T03:04:05 PREEMPTED"], Outcome(UNKNOWN, "could not run: no output (exit code 1)"), id="that-was-an-earlier-one"
        ),
        pytest.param([], Outcome(UNKNOWN, "could not run: no output (exit code 1)"), id="forgotten"),
    ],
)
def test_job_that_ends_before_its_step_is_looked_up_as_srun_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], outcome: Outcome
) -> None:
    (tmp_path / "rows").write_text("".join(f"{row}\n" for row in rows))
    next_row = f"head -1 {tmp_path}/rows; (( $(wc -l < {tmp_path}/rows) < 2 )) || sed -i 1d {tmp_path}/rows"
    stand_in(tmp_path, monkeypatch, srun="exit 1", squeue=next_row)
    assert Slurm().run("memory", IDLE, Path(__file__), {}, 5, 0, None) == outcome


def test_srun_is_asked_to_end_its_job_and_no_other_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = f"trap 'echo asked >> {tmp_path}/ends; exit 1' TERM; echo began >> {tmp_path}/begins; while :; do sleep 0.05; done"
    stand_in(tmp_path, monkeypatch, srun=ends, squeue="echo", scancel=f'echo "$@" >> {tmp_path}/cancelled')
    slurm = Slurm()
    with ThreadPoolExecutor() as pool:
        outcomes = [pool.submit(slurm.run, "memory", each, Path(__file__), {}, 60, 0, None) for each in (IDLE, IDLE)]
        assert wait_until(lambda: lines(tmp_path / "begins") == 2)
        slurm.end()
        assert [each.result(30 * patience()) for each in outcomes] == [ENDED, ENDED]
    assert lines(tmp_path / "ends") == 2
    assert slurm.run("memory", IDLE, Path(__file__), {}, 60, 0, None) == ENDED
    assert lines(tmp_path / "begins") == 2
    assert (tmp_path / "cancelled").read_text() == 2 * "--jobname=slipway-check-memory --nodelist=gpu-0\n", "srun may have left its job"


def test_answer_that_came_before_the_end_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = """trap : TERM; touch "$0.ready"; until [ -e "$0.go" ]; do sleep 0.05; done; echo '{"result": "passed", "found": "fine"}'"""
    stand_in(tmp_path, monkeypatch, srun=answers)
    slurm = Slurm()
    with ThreadPoolExecutor() as pool:
        outcome = pool.submit(slurm.run, "memory", IDLE, Path(__file__), {}, 60, 0, None)
        assert wait_until(lambda: (tmp_path / "srun.ready").exists())
        slurm.end()
        (tmp_path / "srun.go").touch()
        assert outcome.result(30 * patience()) == Outcome(PASSED, "fine")


def test_tasks_of_a_job_share_a_secret_that_no_argument_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "meets.py"
    program.write_text(f"import os, json\nprint(json.dumps({{'result': 'passed', 'found': os.environ[{MEETING!r}]}}))\n")
    stand_in(tmp_path, monkeypatch, srun=f'printf "%s\\n" "$@" >> {tmp_path}/words; exec {sys.executable} -')
    nodes = [IDLE, Node("gpu-1", IDLE.state, partitions=IDLE.partitions)]
    outcomes = [Slurm().run_together("ib", nodes, program, {}, 60, 0, None) for _ in range(2)]
    secrets = {outcome.found for outcome in outcomes if isinstance(outcome, Outcome) and outcome.result == PASSED}
    assert [len(secret) for secret in secrets] == [32, 32]
    assert not any(secret in (tmp_path / "words").read_text() for secret in secrets)


def lines(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0
