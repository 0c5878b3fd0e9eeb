"""What the page is told: bounded, with causes, and nothing of what Slurm hides."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.nodeset.structs import SlurmNode
from controllers.page.history import EVERY_S, MOST, dump, load, with_point
from controllers.page.snapshot import MOST_JOBS, MOST_NODES, Reading, Readings, build, jobs_of, read_jobs, read_nodes, state_of
from tests.support.controllers.page.examples import NOW, day, job_row, node_row, slurm_node

OPEN = frozenset[str]()


def objects(*manifests: dict[str, Any]) -> list[SlurmNode]:
    return [msgspec.convert(each, SlurmNode) for each in manifests]


def snapshot(nodes: list[dict[str, str]], jobs: list[dict[str, str]], *known: SlurmNode, hidden: frozenset[str] = OPEN) -> dict[str, Any]:
    readings = Readings(Reading(read_nodes(nodes), NOW), Reading(read_jobs(jobs), NOW), Reading(None, NOW), (), known)
    return build("dev", readings, (), hidden)


@pytest.mark.parametrize(
    ("words", "state"),
    [
        pytest.param("idle+cloud", "idle", id="idle"),
        pytest.param("mixed+cloud", "allocated", id="mixed"),
        pytest.param("idle+cloud+not_responding", "not_responding", id="silent-node-is-not-idle"),
        pytest.param("idle+cloud+maintenance", "maintenance", id="maintenance"),
        pytest.param("allocated+drain", "draining", id="draining"),
        pytest.param("idle+drain", "drained", id="drained"),
        pytest.param("idle+cloud+powered_down", "powered_down", id="off"),
        pytest.param("down+not_responding", "down", id="down"),
        pytest.param("idle+newword", "unknown", id="unknown-word-is-unknown"),
    ],
)
def test_state_of_a_cell(words: str, state: str) -> None:
    assert state_of(read_nodes([node_row("gpu-0", words)])[0]) == state


def test_drained_node_has_all_its_causes_and_its_machine() -> None:
    told = snapshot(
        [node_row("gpu-1", "idle+drain", reason="slipway: check gpu: bad")], [], *objects(slurm_node("gpu-1", "Drained", (0, 2)))
    )
    [node] = told["nodes"]
    assert [cause["name"] for cause in node["causes"]] == ["check/gpu", "administrator"]
    assert (node["machine"], node["reason"], node["by"]) == ("ip-10-0-4-1", "slipway: check gpu: bad", "root")


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    told = snapshot([node_row(name) for name in ("gpu-10", "cpu-0", "gpu-9")], [])
    assert [node["name"] for node in told["nodes"]] == ["cpu-0", "gpu-9", "gpu-10"]


def test_before_slurm_has_said_anything_nodes_are_those_of_the_controller() -> None:
    readings = Readings(
        Reading(fault="no answer"),
        Reading(fault="no answer"),
        Reading(None, NOW),
        (),
        objects(slurm_node("gpu-0", "Up"), slurm_node("gpu-1", "Drained", (0,))),
    )
    told = build("dev", readings, (), OPEN)
    assert [(node["name"], node["state"]) for node in told["nodes"]] == [("gpu-0", "unknown"), ("gpu-1", "drained")]
    assert told["use"] is None
    assert told["queue"] is None
    assert told["readings"]["nodes"] == {"at": None, "fault": "no answer"}


def test_queue_is_cut_and_both_kinds_of_jobs_stay_in_sight() -> None:
    rows = [job_row(str(at)) for at in range(5000)] + [job_row(f"{9000 + at}_[0-9]", "PENDING") for at in range(5000)]
    queue = snapshot([], rows)["queue"]
    assert (queue["running"], queue["waiting"]) == (5000, 50_000)
    assert len(queue["jobs"]) == MOST_JOBS
    assert {job["state"] for job in queue["jobs"]} == {"RUNNING", "PENDING"}
    assert queue["more"] == 10_000 - MOST_JOBS
    assert queue["partitions"] == [
        {"name": "main", "running": 5000, "waiting": 50_000, "oldest": NOW - 1800, "why": [("Resources", 50_000)]}
    ]


def test_ones_own_jobs_are_found_beyond_the_rows_that_are_shown() -> None:
    jobs = read_jobs([*(job_row(str(at), user="bob") for at in range(1000)), job_row("7777", user="alice")])
    assert [job["id"] for job in jobs_of("alice", jobs, OPEN)["jobs"]] == ["7777"]
    told = jobs_of("bob", jobs, OPEN)
    assert (len(told["jobs"]), told["more"]) == (MOST_JOBS, 1000 - MOST_JOBS)


def test_hidden_jobs_are_counted_and_never_named() -> None:
    hidden = frozenset({"jobs"})
    rows = [job_row("1", user="secret-user", Name="secret-name", Account="secret-account")]
    told = snapshot([node_row("gpu-0")], rows, hidden=hidden)
    assert told["queue"]["running"] == 1
    assert told["nodes"]
    assert "secret" not in msgspec.json.encode(told).decode()
    assert jobs_of("secret-user", read_jobs(rows), hidden)["jobs"] == []


def test_hidden_nodes_are_counted_and_never_named() -> None:
    told = snapshot(
        [node_row("secret-0", "idle+drain", reason="secret")],
        [],
        *objects(slurm_node("secret-0", "Drained", (0,))),
        hidden=frozenset({"nodes"}),
    )
    assert told["states"] == {"drained": 1}
    assert "secret" not in msgspec.json.encode(told).decode()


def test_snapshot_of_the_largest_cluster_is_bounded() -> None:
    long = "x" * 10_000
    nodes = [node_row(f"gpu-{at}", "idle+drain", reason=long) for at in range(MOST_NODES + 100)]
    known = objects(*(slurm_node(f"gpu-{at}", "Drained", (0, 1, 2)) for at in range(200)))
    told = snapshot(nodes, [job_row(str(at), Name=long, user=long) for at in range(10_000)], *known)
    assert len(told["nodes"]) == MOST_NODES
    assert told["moreNodes"] == 100
    assert len(msgspec.json.encode(told)) < 4_000_000


TEXT = st.text(max_size=400)


@settings(max_examples=50)
@given(name=TEXT, user=TEXT, reason=TEXT)
def test_any_text_is_cut_and_stays_json(name: str, user: str, reason: str) -> None:
    told = snapshot([node_row("gpu-0", "idle+drain", reason=reason)], [job_row("1", user=user, Name=name)])
    read = msgspec.json.decode(msgspec.json.encode(told))
    [job] = read["queue"]["jobs"]
    assert name.startswith(job["name"])
    assert max(len(job[key]) for key in ("name", "user")) <= 80
    assert len(read["nodes"][0].get("reason", "")) <= 300


def test_day_has_one_point_a_minute_and_forgets_what_is_older() -> None:
    points = day()
    later = (points[-1][0] + EVERY_S, 1, 2, 3, 4, 5, 6)
    kept = with_point(points, later)
    assert len(kept) <= MOST
    assert kept[-1] == later
    again = with_point(kept, (later[0] + 1, 9, 9, 9, 9, 9, 9))
    assert again[-1][1] == 9
    assert len(again) == len(kept)


@pytest.mark.parametrize("text", ["", "[", "[[1,2]]", "[[1,2,3,4,5,6,null]]", "7", '[["a",1,1,1,1,1,1]]'])
def test_broken_file_of_the_day_is_no_day(text: str) -> None:
    assert load(text) == ()
    assert load(dump(day(3))) == day(3)
