"""A hundred slurmds behind the real API server, scheduler and NodeSet controller. Quick: tests/slurm/test_bench.py, with four."""

from pathlib import Path

from tests.bench.scale import run


def test_a_hundred_slurmds_follow_a_node_set_up_and_down_and_jobs_wake_single_ones(image_root: Path) -> None:
    assert run.measure("whole", 100, image_root)["total_s"] > 0
    assert run.measure("zero", 5, image_root)["submit_to_running_median_s"] > 0
