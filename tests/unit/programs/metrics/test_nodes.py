"""Metrics of nodes from recorded lines of scontrol."""

import json

import pytest

from programs.metrics.nodes import Checks, node_metrics, node_set_of
from programs.metrics.text import render
from slurm.scontrol import AnswerError
from tests.unit.programs.metrics.recorded import NOW, node, of

CHECKS: Checks = {"gpu": ["disk", "gpu"]}


def extra(**results: object) -> str:
    return json.dumps({"slipway": results}, separators=(",", ":"))


def page(*lines: str, checks: Checks = CHECKS) -> str:
    return render(node_metrics("\n".join(lines) + "\n", checks, NOW))


@pytest.mark.parametrize(
    ("state", "word"),
    [
        pytest.param("IDLE+CLOUD", "idle", id="idle"),
        pytest.param("ALLOCATED+CLOUD", "allocated", id="allocated"),
        pytest.param("MIXED+CLOUD", "mixed", id="mixed"),
        pytest.param("MIXED+CLOUD+DRAIN", "draining", id="draining"),
        pytest.param("IDLE+CLOUD+DRAIN", "drained", id="drained"),
        pytest.param("DOWN+CLOUD+NOT_RESPONDING", "down", id="down"),
        pytest.param("IDLE+CLOUD+POWERED_DOWN", "powered_down", id="off"),
        pytest.param("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", "powering_up", id="waking"),
        pytest.param("IDLE+CLOUD+POWERING_DOWN", "powering_down", id="going-off"),
        pytest.param("UNKNOWN", "unknown", id="unknown"),
        pytest.param("IDLE+SOMETHING_NEW", "unknown", id="new-word"),
    ],
)
def test_node_has_one_state(state: str, word: str) -> None:
    text = page(node("gpu-0", state))
    assert of(text, "slipway_node_state") == {f"gpu-0/gpu/{word}": 1}
    assert of(text, "slipway_nodes") == {f"gpu/{word}": 1}


def test_nodes_are_counted_by_set_and_state() -> None:
    text = page(node("gpu-0"), node("gpu-1"), node("gpu-2", "MIXED"), node("big-gpu-0"), node("login"))
    assert of(text, "slipway_nodes") == {"gpu/idle": 2, "gpu/mixed": 1, "big-gpu/idle": 1, "other/idle": 1}


@pytest.mark.parametrize("has_tres", [pytest.param(True, id="tres"), pytest.param(False, id="details")])
def test_gpus_and_processors_are_shared_out(has_tres: bool) -> None:
    text = page(
        node("gpu-0", "MIXED+CLOUD", (1, 2), (3, 4), has_tres=has_tres),
        node("gpu-1", "MIXED+CLOUD+DRAIN", (1, 2), (1, 4), has_tres=has_tres),
        node("gpu-2", "IDLE+CLOUD+POWERED_DOWN", (0, 2), (0, 4), has_tres=has_tres),
        node("gpu-3", "IDLE+CLOUD+NOT_RESPONDING", (0, 2), (0, 4), has_tres=has_tres),
        node("cpu-0", has_tres=has_tres),
    )
    assert of(text, "slipway_gpus") == {"gpu/allocated": 4, "gpu/idle": 1, "gpu/unavailable": 7, "gpu/powered_down": 4}
    assert of(text, "slipway_cpus") == {
        "gpu/allocated": 2,
        "gpu/idle": 1,
        "gpu/unavailable": 3,
        "gpu/powered_down": 2,
        "cpu/allocated": 0,
        "cpu/idle": 2,
        "cpu/unavailable": 0,
        "cpu/powered_down": 0,
    }


def test_failures_results_and_ages_of_checks() -> None:
    failure = {"since": "2026-11-24T17:00:00Z", "found": "full", "kind": "node", "drains": True}
    text = page(
        node("gpu-0", extra=extra(disk={"result": "failed", "at": "2026-11-24T17:22:20Z", "failure": failure})),
        node("gpu-1", extra=extra(disk={"result": "unknown", "at": "2026-11-24T17:13:20Z", "failure": failure})),
        node("gpu-2", extra=extra(disk={"result": "passed", "at": "2026-11-24T17:22:20Z"}, gone={"result": "passed", "at": "x"})),
        node("gpu-3", extra="somebody's own words"),
        node("cpu-0", extra=extra(disk={"result": "failed", "at": "2026-11-24T17:22:20Z", "failure": failure})),
    )
    assert of(text, "slipway_node_check") == {"disk/node/gpu-0/gpu": 1, "disk/node/gpu-1/gpu": 1}
    assert of(text, "slipway_check_nodes") == {"disk/failed": 1, "disk/unknown": 1, "disk/passed": 1}
    assert of(text, "slipway_check_age_seconds") == {"disk": 600}


def test_words_in_a_comment_are_not_read_as_fields() -> None:
    text = page(node("gpu-0", comment='State=DOWN "quoted" CfgTRES=gres/gpu=9 AllocTRES=gres/gpu=9', gpus=(1, 4), cpus=(1, 2)))
    assert of(text, "slipway_node_state") == {"gpu-0/gpu/idle": 1}
    assert of(text, "slipway_gpus")["gpu/allocated"] == 1


def test_line_break_in_a_comment_hides_no_node() -> None:
    text = page(node("gpu-0", comment="first\nsecond\u2028third"), node("gpu-1"))
    assert of(text, "slipway_nodes") == {"gpu/idle": 2}


@pytest.mark.parametrize(
    "text", [pytest.param("", id="empty"), pytest.param("slurm_load_node error", id="words"), pytest.param("NodeName=a\n", id="cut")]
)
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(AnswerError):
        node_metrics(text, {}, NOW)


def test_no_nodes_is_an_answer() -> None:
    assert render(node_metrics("No nodes in the system\n", {}, NOW)) == ""


@pytest.mark.parametrize(
    ("name", "node_set"), [("gpu-0", "gpu"), ("big-gpu-12", "big-gpu"), ("login", "other"), ("a-b", "other"), ("-1", "other")]
)
def test_node_set_is_in_the_name(name: str, node_set: str) -> None:
    assert node_set_of(name) == node_set
