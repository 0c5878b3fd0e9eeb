"""Health checks whose measurement takes long, as what they look for is slow."""

import pytest

from tests.cluster.dev_stack import DevStack
from tests.cluster.test_health_checks import check, cleaned, node, of_nodes, on_demand, reservations, shape, unshaped

FIXTURES = (cleaned, on_demand, unshaped)


@pytest.mark.usefixtures("unshaped")
def test_node_with_a_slow_network_is_found_in_the_first_round_drained_and_lifted_when_it_is_mended(stack: DevStack) -> None:
    """Quick: tests/cluster/test_health_checks.py, where a link between two nodes is slow; what follows from figures is in tests/unit."""
    shape(stack, "cpu-0", "qdisc add dev eth0 root tbf rate 8mbit burst 32kbit latency 50ms")
    said = check(stack, "mpi", rounds=1)
    first, *_ = [name for name in said if "+" in name and "cpu-0" in name]
    assert said[first]["result"] == "failed"
    assert of_nodes(said) == {"cpu-0": ("failed", "drained"), **dict.fromkeys(("cpu-1", "gpu-0", "gpu-1"), ("passed", ""))}, said
    assert node(stack, "cpu-0")["reason"].startswith("slipway: check mpi: ")
    still = check(stack, "mpi", rounds=1)
    assert of_nodes(still)["cpu-0"] == ("failed", "drained"), still
    shape(stack, "cpu-0", "qdisc del dev eth0 root")
    mended = check(stack, "mpi", rounds=1)
    assert of_nodes(mended)["cpu-0"] == ("passed", "cleared"), mended
    assert "slipway-check" not in reservations(stack)
    stack.wait_until_idle()


def test_set_that_is_slow_together_is_tested_in_pairs_and_drains_nobody_where_no_pair_is_slow(stack: DevStack) -> None:
    """Quick: tests/cluster/test_health_checks.py, where a set is as fast as it should be."""
    slow = check(stack, "mpi", per="set", minBandwidthMBs=1_000_000_000)
    assert set(of_nodes(slow).values()) == {("unknown", "")}, "no pair is slow, so nobody is at fault"
    assert [name for name in slow if "+" in name], "the nodes were tested in pairs"
