"""When slurmctld may take changed files."""

import pytest

from programs.config_sync.plan import (
    ConfigError,
    Declared,
    Going,
    Job,
    check_config,
    find_going,
    find_obstacles,
    names_in,
    plan_closing,
    plan_drains,
    some,
)
from slurm.states import node_state
from tests.support.law import Law, every_state

CONF = """ClusterName=t
 nodename = gpu-[0-3] State=CLOUD
NodeName="cpu-0,cpu-1" CPUs=2  # NodeName=not-me
NodeName=DEFAULT CPUs=4
# NodeName=comment
PartitionName=main Nodes=ALL
PartitionName=Default MaxTime=1
"""


def going(**nodes: str) -> Going:
    states = {name.replace("_", "-"): node_state(words.split("+")) for name, words in nodes.items()}
    return find_going(states, {}, Declared(frozenset(), frozenset()))


def test_names_of_a_file() -> None:
    assert names_in(CONF, "NodeName") == ["gpu-[0-3]", "cpu-0,cpu-1"]
    assert names_in(CONF, "PartitionName") == ["main"]
    check_config(CONF)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("ClusterName=t\n", id="cut"),
        pytest.param(CONF.partition("PartitionName")[0], id="without-partitions"),
        pytest.param("\0" * 100, id="zeros"),
    ],
)
def test_file_without_nodes_is_a_fault_and_never_no_nodes(text: str) -> None:
    with pytest.raises(ConfigError, match="has no line"):
        check_config(text)


@every_state
def test_only_a_free_node_goes(law: Law) -> None:
    state = node_state(word for word in law.words.split("+") if word)
    found = find_obstacles(Going({"gpu-0": state}, {}), [], frozenset())
    assert found == ([] if law.is_free else [f"node gpu-0 ({state})"])


def test_what_stays_is_no_obstacle() -> None:
    declared = Declared(frozenset({"gpu-0"}), frozenset({"main"}))
    found = find_going({"gpu-0": node_state(["ALLOCATED"])}, {"main": "UP", "old": "UP", "shut": "DRAIN"}, declared)
    assert found == Going({}, {"old": "UP", "shut": "DRAIN"})
    assert plan_closing(found) == ["old"]


def test_nodes_that_only_sleep_are_drained_before_they_go() -> None:
    assert plan_drains(going(el_0="IDLE+CLOUD+POWERED_DOWN", el_1="IDLE+DRAIN", el_2="DOWN+CLOUD+POWERED_DOWN")) == ["el-0", "el-2"]


def test_job_of_a_partition_that_stays_as_well_is_no_obstacle() -> None:
    jobs = [Job("1", ("old",), ""), Job("2", ("old", "main"), ""), Job("3", ("main",), ""), Job("4", ("old", "older"), "")]
    assert find_obstacles(Going({}, {"old": "UP", "older": "UP"}), jobs, frozenset()) == ["jobs 1, 4 of partitions old, older"]


def test_node_that_a_waiting_job_asks_for_stays() -> None:
    found = find_obstacles(going(el_3="IDLE+CLOUD+POWERED_DOWN"), [Job("7", ("burst",), "el-3")], frozenset({"el-3", "el-1"}))
    assert found == ["jobs that ask for el-3 by name"]


def test_long_lists_are_cut_with_their_number() -> None:
    assert some(["a", "b"]) == "a, b"
    assert some("abcdefg") == "a, b, c, d, e and 2 more"
