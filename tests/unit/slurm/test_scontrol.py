"""What scontrol of 26.05.5 printed, and answers that are none."""

import json
from typing import Any

import pytest

from slurm.scontrol import AnswerError, Node, read_brief_nodes, read_nodes, read_partitions, read_states
from slurm.states import node_state

TRAP = "x State=IDLE [root@2020-01-01T00:00:00] more"
LINE = (
    "NodeName=gpu-1 CoresPerSocket=1  CPUAlloc=0 CPUTot=64 AvailableFeatures=a,b,c Gres=gpu:h100:8 NodeAddr=gpu-1 RealMemory=100000 "
    "Sockets=64 Boards=1 State=MIXED+CLOUD+DRAIN ThreadsPerCore=1 Partitions=main  AllocTRES= "
    f"Reason={TRAP} [root@2026-11-22T03:29:58] Comment=c State=IDLE+DRAIN Reason=none [a@2000-01-01T00:00:00] Extra=e Reason=q"
)


def answer(*nodes: dict[str, Any], **more: Any) -> str:
    return json.dumps({"nodes": nodes, "last_update": {"number": 1795318203}, "errors": [], "warnings": [], **more})


def entry(**more: Any) -> dict[str, Any]:
    return {
        "name": "gpu-1",
        "state": ["IDLE", "CLOUD", "DRAIN"],
        "reason": TRAP,
        "reason_set_by_user": "root",
        "partitions": ["main"],
        **more,
    }


def test_reason_is_whole_whatever_stands_in_it() -> None:
    found = read_nodes(answer(entry(extra='{"slipway": {}}', instance_id="m-1/b-1")))
    state = node_state(["IDLE", "CLOUD", "DRAIN"])
    assert found == {"gpu-1": Node("gpu-1", state, TRAP, "root", ("main",), '{"slipway": {}}', instance="m-1/b-1")}


def test_unknown_node_is_missing_from_a_good_answer() -> None:
    assert read_nodes(answer(warnings=[{"description": "No nodes to dump"}])) == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param('{"nodes": [', id="cut"),
        pytest.param("[]", id="no-object"),
        pytest.param("{}", id="no-nodes"),
        pytest.param(answer({"name": "gpu-1"}), id="a-node-without-a-state"),
        pytest.param(answer(errors=[{"description": "Unable to contact slurm controller"}]), id="errors"),
    ],
)
def test_answer_that_is_none_is_a_fault_and_never_no_nodes(text: str) -> None:
    with pytest.raises(AnswerError):
        read_nodes(text)


def test_state_is_the_first_one_whatever_a_comment_says() -> None:
    assert read_states(f"{LINE}\n\nNodeName=gpu-2 State=IDLE\n") == {
        "gpu-1": node_state(["MIXED", "CLOUD", "DRAIN"]),
        "gpu-2": node_state(["IDLE"]),
    }


@pytest.mark.parametrize(
    ("rest", "reason", "extra"),
    [
        pytest.param("", "", "", id="in-order"),
        pytest.param("Reason=slipway: check x: 4 of 8 [slurm@2026-11-25T22:15:20]", "slipway: check x: 4 of 8", "", id="drained"),
        pytest.param("Reason=a [b] c [root@2026-11-25T22:15:20] Comment=x", "a [b] c", "", id="brackets-in-a-reason"),
        pytest.param('Reason=x [slurm@2026-11-25T22:15:20] Comment=y Extra={"a":"b c"}', "x", '{"a":"b c"}', id="noted"),
        pytest.param("Extra=rack 7", "", "", id="text-of-somebody-else"),
    ],
)
def test_brief_node_has_its_state_its_reason_and_what_is_noted(rest: str, reason: str, extra: str) -> None:
    line = f"NodeName=gpu-0 CPUTot=1 State=IDLE+DRAIN ThreadsPerCore=1 AveWatts=0 {rest}\n"
    assert read_brief_nodes(line) == {"gpu-0": Node("gpu-0", node_state(["IDLE", "DRAIN"]), reason, extra=extra)}


def test_line_of_a_comment_is_no_node() -> None:
    assert read_states("NodeName=gpu-1 State=DOWN Comment=first\nsecond State=IDLE\n") == {"gpu-1": node_state(["DOWN"])}


def test_cluster_without_nodes_says_so() -> None:
    assert read_states("No nodes in the system\n") == {}


@pytest.mark.parametrize(
    "text", [pytest.param("", id="nothing"), pytest.param(f"{LINE}\nNodeName=gpu-2 CoresPer", id="cut"), pytest.param("error", id="other")]
)
def test_lines_that_are_cut_are_a_fault(text: str) -> None:
    with pytest.raises(AnswerError):
        read_states(text)


def test_partitions_have_their_state() -> None:
    assert read_partitions("PartitionName=main AllowGroups=ALL Nodes=gpu-[0-1] State=UP TotalCPUs=4\n") == {"main": "UP"}
