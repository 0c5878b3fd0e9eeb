"""Which processes of a worker's pod are steps of jobs."""

import os
from pathlib import Path

import pytest

from programs.worker.steps import has_steps

JOB_CGROUP_V1 = "9:memory:/kubepods/pod1/slurm/uid_10001/job_7/step_extern/task_special\n"
JOB_CGROUP_V2 = "0::/kubepods/pod1/system.slice/slurmstepd.scope/s7F1M7YKC71F00/step_extern/user/task_special\n"


@pytest.mark.parametrize(
    ("title", "uid", "cgroup", "is_step"),
    [
        pytest.param("slurmstepd: [7.batch]", 0, "0::/\n", True, id="batch"),
        pytest.param("slurmstepd: [7.0]", 0, "0::/\n", True, id="srun"),
        pytest.param("slurmstepd: [7_3.interactive]", 0, "0::/\n", True, id="salloc"),
        pytest.param("slurmstepd: [7.extern]", 0, "0::/\n", False, id="extern-alone"),
        pytest.param("-bash", 10001, JOB_CGROUP_V1, True, id="ssh-on-v1"),
        pytest.param("-bash", 10001, JOB_CGROUP_V2, True, id="ssh-on-v2"),
        pytest.param("sleep", 0, JOB_CGROUP_V1, False, id="roots-in-an-extern-step"),
        pytest.param("sshd", 10001, "0::/kubepods/pod1\n", False, id="no-job"),
        pytest.param("/usr/sbin/slurmstepd\0infinity", 0, "0::/\n", False, id="keeper-of-the-v2-scope"),
    ],
)
def test_steps_are_told_by_their_processes(tmp_path: Path, title: str, uid: int, cgroup: str, is_step: bool) -> None:
    process = tmp_path / "17"
    process.mkdir()
    (process / "cmdline").write_text(f"{title}\0")
    (process / "cgroup").write_text(cgroup)
    os.chown(process, uid, uid)
    (tmp_path / "meminfo").touch()
    assert has_steps(str(tmp_path)) is is_step


def test_processes_that_cannot_be_read_may_be_steps(tmp_path: Path) -> None:
    assert has_steps(str(tmp_path / "nowhere"))
    (tmp_path / "17").mkdir()
    (tmp_path / "17" / "cmdline").mkdir()
    assert has_steps(str(tmp_path))
