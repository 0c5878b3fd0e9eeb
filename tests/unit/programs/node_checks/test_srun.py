"""What a check makes of srun and squeue, which stand-ins play as Slurm 26.05 was seen to answer."""

from pathlib import Path

import pytest

from programs.node_checks.plan import BUSY, PREEMPTED, UNKNOWN, Outcome
from programs.node_checks.slurm import Slurm
from slurm.scontrol import Node
from slurm.states import node_state

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
def test_check_goes_into_a_partition_of_users_only_where_its_node_has_no_job(
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
        pytest.param(
            ["2001-01-02T03:04:05 PREEMPTED"], Outcome(UNKNOWN, "could not run: no output (exit code 1)"), id="that-was-an-earlier-one"
        ),
        pytest.param([], Outcome(UNKNOWN, "could not run: no output (exit code 1)"), id="forgotten"),
    ],
)
def test_job_that_ends_before_its_step_begins_is_asked_after_as_srun_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], outcome: Outcome
) -> None:
    (tmp_path / "rows").write_text("".join(f"{row}\n" for row in rows))
    next_row = f"head -1 {tmp_path}/rows; (( $(wc -l < {tmp_path}/rows) < 2 )) || sed -i 1d {tmp_path}/rows"
    stand_in(tmp_path, monkeypatch, srun="exit 1", squeue=next_row)
    assert Slurm().run("memory", IDLE, Path(__file__), {}, 5, 0, None) == outcome
