"""In which partitions a check tries its luck, by what it calls: stand-ins for srun and squeue note that."""

from pathlib import Path

import pytest

from programs.node_checks.plan import BUSY
from programs.node_checks.slurm import Slurm
from slurm.scontrol import Node
from slurm.states import node_state

IDLE = Node("gpu-0", node_state(frozenset({"IDLE"})), partitions=("main", "slipway-checks"))


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
    for name, does in {
        "srun": f'printf "%s\\n" "$@" >> {tmp_path}/words; echo "srun: error: Requested nodes are busy" >&2; exit 1',
        "squeue": f'echo "{jobs}"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{does}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert Slurm().run("memory", IDLE, Path(__file__), {}, 5, 0, None) == BUSY
    assert [word for word in (tmp_path / "words").read_text().splitlines() if word.startswith("--partition=")] == tried
