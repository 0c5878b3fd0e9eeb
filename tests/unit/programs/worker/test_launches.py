"""What a worker takes from slurmd's log, and how it tries its spool."""

import os
import threading
from pathlib import Path

import pytest

from programs.worker.launches import Spool, is_sign, job_in


@pytest.mark.parametrize(
    ("line", "job", "is_failure"),
    [
        pytest.param("[2026-11-26T17:03:50.1] Launching batch JobId=12 SLUID=s1E for UID 10001", "12", False, id="batch"),
        pytest.param("Launching batch JobId=12_3(15) SLUID=s1E for UID 10001", "12_3", False, id="task-of-an-array"),
        pytest.param("error: _handle_return_code: Can not read return code from slurmstepd: Input/output error", "", True, id="no-code"),
        pytest.param("error: slurmstepd return code -1: Unspecified error", "", True, id="bad-code"),
        pytest.param("Could not launch JobId=3 SLUID=s1E and not able to requeue it, cancelling job", "3", True, id="allocation"),
        pytest.param("JobId=7 SLUID=s0E already killed, do not launch batch job", "7", False, id="batch-taken-back-before"),
        pytest.param("launch task StepId=19.0 request from UID:10001 GID:10001 HOST:198.18.255.11 PORT:57062", "", False, id="step"),
        pytest.param("error: JobId=13 SLUID=s1E prolog failed status=0:9", "", False, id="prolog-which-slurm-drains-for"),
        pytest.param("", "", False, id="empty"),
    ],
)
def test_line_is_read(line: str, job: str, is_failure: bool) -> None:
    assert (job_in(line), is_sign(line)) == (job, is_failure)


def test_spool_that_can_be_written_has_no_fault_and_nothing_new(tmp_path: Path) -> None:
    assert Spool(str(tmp_path)).find_fault() == ""
    assert not [*tmp_path.iterdir()]


def test_spool_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    assert Spool(f"{tmp_path}/gone").find_fault() == f"{tmp_path}/gone cannot be written to: No such file or directory"


def test_spool_that_does_not_answer_has_one_thread_wait_for_it(tmp_path: Path) -> None:
    """Opening a pipe for writing waits for its reader, as a file system does for its server."""
    os.mkfifo(pipe := tmp_path / ".slipway-launch")
    spool, before = Spool(str(tmp_path)), threading.active_count()
    faults = {spool.find_fault(0.01) for _ in range(3)}
    assert faults == {f"{tmp_path} does not answer within 0 s"}
    assert threading.active_count() == before + 1
    os.close(os.open(pipe, os.O_RDONLY))  # its end
