"""A hundred slurmds behind the real API server, scheduler and NodeSet controller. Quick: tests/slurm/test_scale.py, with ten."""

from pathlib import Path

from tests.bench.scale import run


def test_a_hundred_slurmds_follow_a_node_set_up_and_down_and_jobs_wake_single_ones(image_root: Path) -> None:
    whole, woken = run.measure(("whole", 100), ("zero", 5), image=image_root)
    assert whole["total_s"] > 0
    assert woken["submit_to_running_median_s"] > 0
