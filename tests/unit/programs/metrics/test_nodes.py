"""Metrics of nodes from recorded lines of scontrol."""

import json
from datetime import UTC, datetime

import pytest

from programs.metrics.nodes import node_metrics, node_set_of
from programs.metrics.settings import Checks
from programs.metrics.text import render
from slurm.scontrol import AnswerError
from tests.support.programs.metrics.recorded import NOW, node, of

CHECKS: Checks = {"gpu": {"disk": "job", "gpu": "job"}}


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
    assert of(text, "slipway_check_age_seconds") == {"disk/job": 600}


def seconds_ago(age: float) -> str:
    return datetime.fromtimestamp(NOW - age, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("state", "started", "told", "context", "result"),
    [
        pytest.param("IDLE+CLOUD", 9000, ("passed", 1700), "interval", "passed", id="told-lately"),
        pytest.param("IDLE+CLOUD", 9000, ("passed", 1801), "interval", "unknown", id="silent"),
        pytest.param("IDLE+CLOUD", 9000, ("failed", 1801), "interval", "unknown", id="silent-since-a-failure"),
        pytest.param("IDLE+CLOUD", 9000, None, "interval", "unknown", id="runner-was-never-there"),
        pytest.param("IDLE+CLOUD", 100, None, "interval", None, id="has-just-started"),
        pytest.param("IDLE+CLOUD", 100, ("passed", 90_000), "interval", "passed", id="old-result-of-a-node-that-has-just-started"),
        pytest.param("DOWN+CLOUD+NOT_RESPONDING", 9000, ("passed", 1801), "interval", "unknown", id="down"),
        pytest.param("IDLE+CLOUD+POWERED_DOWN", None, ("passed", 90_000), "interval", "passed", id="off"),
        pytest.param("IDLE+CLOUD+POWERED_DOWN", None, None, "interval", None, id="never-up"),
        pytest.param("MIXED+CLOUD+POWERING_UP", 90_000, ("passed", 90_000), "interval", "passed", id="waking"),
        pytest.param("IDLE+CLOUD", 90_000, ("passed", 90_000), "job", "passed", id="as-a-job"),
        pytest.param("IDLE+CLOUD", 90_000, None, "job", None, id="as-a-job-that-has-not-run"),
        pytest.param("IDLE+CLOUD", 90_000, ("passed", 90_000), "", "passed", id="before-jobs-alone"),
    ],
)
def test_check_at_an_interval_that_is_silent_is_unknown(
    state: str, started: int | None, told: tuple[str, int] | None, context: str, result: str | None
) -> None:
    noted = extra(mounts={"result": told[0], "at": seconds_ago(told[1])}) if told else "{}"
    line = node("gpu-0", state, extra=noted).replace(
        "SlurmdStartTime=1795540687", f"SlurmdStartTime={NOW - started if started else 'None'}"
    )
    text = page(line, checks={"gpu": {"mounts": context}})
    assert of(text, "slipway_check_nodes") == ({f"mounts/{result}": 1} if result else {})


def test_failure_of_a_check_that_is_silent_stays_a_failure() -> None:
    failure = {"since": "2026-11-24T10:00:00Z", "found": "full", "kind": "node", "drains": True}
    line = node("gpu-0", extra=extra(disk={"result": "failed", "at": "2026-11-24T10:00:00Z", "failure": failure}))
    line = line.replace("SlurmdStartTime=1795540687", "SlurmdStartTime=1795500000")
    text = page(line, checks={"gpu": {"disk": "interval"}})
    assert of(text, "slipway_check_nodes") == {"disk/unknown": 1}
    assert of(text, "slipway_node_check") == {"disk/node/gpu-0/gpu": 1}


@pytest.mark.parametrize(
    ("state", "context", "age"),
    [
        pytest.param("IDLE+CLOUD", "job", {"disk/job": 7200}, id="as-a-job"),
        pytest.param("IDLE+CLOUD", "interval", {"disk/interval": 7200}, id="at-an-interval"),
        pytest.param("IDLE+CLOUD", "", {}, id="before-jobs-alone-a-pass-is-told-once"),
        pytest.param("IDLE+CLOUD+POWERED_DOWN", "job", {}, id="node-is-off"),
    ],
)
def test_age_is_that_of_checks_that_are_told_again(state: str, context: str, age: dict[str, float]) -> None:
    line = node("gpu-0", state, extra=extra(disk={"result": "passed", "at": seconds_ago(7200)}))
    assert of(page(line, checks={"gpu": {"disk": context}}), "slipway_check_age_seconds") == age


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
