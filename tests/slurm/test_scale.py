"""The bench's harness in small: real slurmds behind the real API server, scheduler and NodeSet controller."""

from pathlib import Path

from tests.bench.scale import run


def test_real_slurmds_follow_a_node_set_up_and_down_and_jobs_wake_single_ones(image_root: Path) -> None:
    """tests/soak/test_scale.py has a hundred."""
    whole, woken = run.measure(("whole", 4), ("zero", 1), image=image_root)
    # What holds is asserted where it happens: every node registers, runs a step, and is drained and gone at the end.
    assert whole["total_s"] > 0
    assert woken["submit_to_running_median_s"] > 0


def test_changed_line_reaches_all_real_slurmds_and_is_told_step_by_step(image_root: Path) -> None:
    """`make bench` has 300 and 1,000 of them."""
    [found] = run.measure(("files", 8), image=image_root)
    assert 0 < found["slurmctld_s"] < found["total_s"]
    assert found["slurmds_s"] > 0
