"""Whether a node has a job of a user, from the processes of its pod."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from programs.node_checks.node_states import node_state

SLURM, ALICE = 64030, 10001
Process = tuple[str, int, int]
"""The first word of its command line, its user and its parent."""
EXTERN: Mapping[int, Process] = {20: ("slurmstepd: [7.extern]", 0, 1), 21: ("sleep", 0, 20)}
BATCH: Mapping[int, Process] = {30: ("slurmstepd: [7.batch]", 0, 1), 31: ("bash", ALICE, 30)}
CHECK: Mapping[int, Process] = {40: ("slurmstepd: [8.extern]", 0, 1), 41: ("slurmstepd: [8.0]", 0, 1), 42: ("timeout", SLURM, 41)}
WORKER: Mapping[int, Process] = {1: ("slurmd", 0, 0), 2: ("/usr/sbin/slurmstepd", 0, 1), 3: ("munged", 401, 1)}


@pytest.mark.parametrize(
    ("processes", "state"),
    [
        pytest.param({}, "idle", id="no-step"),
        pytest.param({**EXTERN, **BATCH}, "allocated", id="batch-job"),
        pytest.param(EXTERN, "allocated", id="job-of-which-nothing-runs-at-the-moment"),
        pytest.param(CHECK, "idle", id="job-of-a-check"),
        pytest.param({**CHECK, **EXTERN}, "allocated", id="check-beside-a-users-job"),
        pytest.param({40: CHECK[40], 41: CHECK[41]}, "allocated", id="job-that-has-no-task-yet"),
        pytest.param({**EXTERN, 22: ("srun", SLURM, 1)}, "allocated", id="process-of-slurms-user-that-is-no-task"),
        pytest.param({30: ("slurmstepd: [7]", 0, 1)}, "allocated", id="title-of-another-form"),
    ],
)
def test_state_is_told_by_the_slurmstepds(processes: Mapping[int, Process], state: str, tmp_path: Path) -> None:
    for number, (title, user, parent) in {**WORKER, **processes}.items():
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "cmdline").write_text(f"{title}\0--flag\0")
        (folder / "stat").write_text(f"{number} (a) b) S {parent} {number} 0 -1 4194304\n")
        os.chown(folder, user, user)
    (tmp_path / "meminfo").touch()
    assert node_state(SLURM, str(tmp_path)) == state


def test_processes_that_cannot_be_read_may_be_a_job(tmp_path: Path) -> None:
    assert node_state(SLURM, str(tmp_path / "nowhere")) == "allocated"
