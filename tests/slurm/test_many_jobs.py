"""A long queue, which slurmrestd cannot list: nodes are read as ever, and the jobs that run are known."""

from pathlib import Path

from tests.support.slurm.job_queue import assert_known, queue


def test_nodes_are_fresh_and_running_jobs_known_with_10000_waiting(image_root: Path) -> None:
    """Enough to fail by: slurmrestd takes seven seconds to list 10,000 jobs, and grows by more than a gigabyte."""
    with queue(image_root, 10_000) as cluster:
        assert_known(cluster)
