"""A hundred slurmds behind the real API server, scheduler and NodeSet controller, and 50,000 waiting jobs.

Quick: tests/slurm/test_bench.py, with four, and tests/slurm/test_many_jobs.py, with 10,000.
"""

from pathlib import Path

from tests.bench.scale import run
from tests.support.slurm.job_queue import assert_known, queue


def test_hundred_slurmds_follow_a_node_set_and_jobs_wake_single_nodes(image_root: Path) -> None:
    assert run.measure("whole", 100, image_root)["total_s"] > 0
    assert run.measure("zero", 5, image_root)["submit_to_running_median_s"] > 0


def test_nodes_are_fresh_and_running_jobs_known_with_50000_waiting(image_root: Path) -> None:
    with queue(image_root, 50_000) as cluster:
        assert_known(cluster)
