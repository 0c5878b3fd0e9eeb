"""Health checks whose measurement takes long, as what they look for is slow."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster.checks import ALL_FULL, OURS, causes, check, cleaned, node, of_nodes, on_demand, reservations
from tests.support.cluster.dev_stack import DevStack, eventually

FIXTURES = (cleaned, on_demand)
ALL_SMALL: dict[str, Any] = {"configuredMiB": 1_000_000_000}
MEMORY = "slipway: check memory: "


def shape(stack: DevStack, name: str, *commands: str) -> None:
    """tc in the pod's network namespace. The kernels of test machines often lack netem, so bandwidth is what is taken."""
    stack.kubectl("exec", name, "-c", "slurmd", "--", "bash", "-c", " && ".join(f"tc {command}" for command in commands))


@pytest.fixture
def unshaped(stack: DevStack) -> Iterator[None]:
    """No shaping of a test is left."""
    yield
    stack.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "bash", "-c", "tc qdisc del dev eth0 root || true")


@pytest.mark.usefixtures("unshaped")
def test_node_with_a_slow_network_is_drained_in_round_one_until_mended(stack: DevStack) -> None:
    """Quick: tests/cluster/test_health_checks.py, where all are as fast as they should be; what follows from figures is in tests/unit."""
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


def test_set_that_is_slow_together_is_tested_in_pairs_and_drains_nobody(stack: DevStack) -> None:
    """Quick: tests/cluster/test_health_checks.py, where a set is as fast as it should be."""
    slow = check(stack, "mpi", per="set", minBandwidthMBs=1_000_000_000)
    assert set(of_nodes(slow).values()) == {("unknown", "")}, "no pair is slow, so nobody is at fault"
    assert [name for name in slow if "+" in name], "the nodes were tested in pairs"


def test_node_that_fails_two_checks_is_lifted_once_both_have_passed(stack: DevStack) -> None:
    """Slurm has one reason for the node: that of the more urgent failure, and of the other once that is mended.

    Quick: tests/unit/controllers/nodeset/test_check_drains.py; tests/cluster/test_health_checks.py has one failure at a time.
    """
    check(stack, "disk", **ALL_FULL)
    found = check(stack, "memory", **ALL_SMALL)
    assert {(line["result"], line["action"]) for line in found.values()} == {("failed", "drained")}
    eventually("broken hardware comes first", lambda: all(node(stack, name)["reason"].startswith(MEMORY) for name in found), 30)
    eventually("both causes are told", lambda: list(causes(stack, "cpu-0")) == ["check/memory", "check/disk"], 30)
    assert "1000000000 wanted" in causes(stack, "cpu-0")["check/disk"]["evidence"]
    assert stack.kubectl("get", "slurmnode", "cpu-0", "--no-headers").split()[1:4] == ["Drained", "check/memory,", "check/disk"]
    assert {line["action"] for line in check(stack, "memory").values()} == {"cleared"}
    eventually("the full disk is left", lambda: all(node(stack, name)["reason"].startswith(OURS) for name in found), 30)
    eventually("and told", lambda: list(causes(stack, "cpu-0")) == ["check/disk"], 30)
    assert all("DRAIN" in node(stack, name)["state"] for name in found)
    assert {line["action"] for line in check(stack, "disk").values()} == {"cleared"}
    stack.wait_until_idle()


@pytest.mark.usefixtures("unshaped")
def test_slow_link_between_two_nodes_is_named_and_drains_neither(stack: DevStack) -> None:
    """Quick: tests/unit/programs/node_checks/test_groups.py, with figures of slow links."""
    address = stack.get("pod", "cpu-1")["status"]["podIP"]
    shape(
        stack,
        "cpu-0",
        "qdisc add dev eth0 root handle 1: htb default 2",
        "class add dev eth0 parent 1: classid 1:1 htb rate 8mbit",
        "class add dev eth0 parent 1: classid 1:2 htb rate 10gbit",
        f"filter add dev eth0 parent 1: protocol ip u32 match ip dst {address}/32 flowid 1:1",
    )
    said = check(stack, "mpi")
    assert {name for name, line in said.items() if "pair" in line and line["result"] == "failed"} == {"cpu-0+cpu-1"}, said
    assert of_nodes(said) == {"cpu-0": ("failed", ""), "cpu-1": ("failed", ""), "gpu-0": ("passed", ""), "gpu-1": ("passed", "")}
    assert said["cpu-0"]["found"].startswith("the link to cpu-1 is at fault: ")
    assert not any("DRAIN" in state for state in stack.nodes().values())
    eventually("the cause is told", lambda: causes(stack, "cpu-1")["check/mpi"]["wish"] == "none", 30)
    shape(stack, "cpu-0", "qdisc del dev eth0 root")
    assert {result for result, _ in of_nodes(check(stack, "mpi")).values()} == {"passed"}
    eventually("the cause is gone", lambda: "check/mpi" not in causes(stack, "cpu-1"), 30)
