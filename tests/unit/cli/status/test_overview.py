"""What a status sums up from the words of Kubernetes and of Slurm."""

import json
from typing import Any

import pytest

from cli.status.overview import AnswerError, Objects, QueueRow, as_json, build, read_nodes, read_queue
from slurm.listed import Node

NOTHING = Objects([], [], [], [])


def row(name: str = "gpu-0", state: str = "idle+cloud", **more: str) -> dict[str, str]:
    """A line of sinfo."""
    return {
        "NodeList": name,
        "StateComplete": state,
        "CPUsState": "1/3/0/4",
        "Gres": "gpu:h100:4(S:0-1)",
        "GresUsed": "gpu:h100:2(IDX:0-1)",
        "Reason": "none",
        "User": "root(0)",
        "TimeStamp": "1800000000",
        "Extra": "(null)",
        **more,
    }


def nodes(*rows: dict[str, str]) -> tuple[Node, ...]:
    return read_nodes({"nodes": list(rows)})


def test_node_is_read_with_what_is_in_use() -> None:
    [node] = nodes(row())
    assert (node.node_set, node.cpus, node.gpus, node.is_away) == ("gpu", (1, 4), (2, 4), False)
    assert (node.reason, node.by, node.since, node.checks) == ("", "", None, None)


@pytest.mark.parametrize(
    ("state", "is_away"),
    [
        ("idle+cloud", False),
        ("mixed+cloud+planned", False),
        ("idle+cloud+powered_down", False),
        ("mixed+cloud+powering_up", False),
        ("idle+cloud+drain", True),
        ("mixed+cloud+drain", True),
        ("down+cloud+not_responding", True),
        ("idle+cloud+drain+powered_down", True),
        ("idle+cloud+what_is_that", True),
    ],
)
def test_node_is_out_of_service_when_no_job_could_start_there(state: str, is_away: bool) -> None:
    assert nodes(row(state=state))[0].is_away is is_away


def test_nodes_out_of_service_are_shown_with_reason_machine_and_jobs() -> None:
    why = "slipway: check disk: /tmp has 12 MiB free : Not responding"
    found = nodes(row(), row("gpu-1", "mixed+cloud+drain", Reason=why, User="slurm(64030)"))
    pods = [{"metadata": {"name": "gpu-1"}, "spec": {"nodeName": "worker-7"}}]
    slurm_nodes = [{"metadata": {"name": "gpu-1"}, "status": {"causes": [{"name": "check/disk"}, {"name": "cordon"}]}}]
    away = build(Objects([], [], [], pods, slurm_nodes), found, ()).away
    assert away is not None
    [one] = away
    assert one.causes == ("check/disk", "cordon")
    assert (one.name, one.reason, one.by, one.machine) == ("gpu-1", "slipway: check disk: /tmp has 12 MiB free", "slurm", "worker-7")
    assert (one.state, one.is_busy, one.since) == ("MIXED+CLOUD+DRAIN", True, 1_800_000_000)


def test_silent_slurm_is_unknown_and_never_an_empty_cluster() -> None:
    overview = build(Objects([node_set("gpu", "SlurmSilent", "Slurm has not answered for 9 s.")], [], [], []), None, None)
    assert (overview.away, overview.queue, overview.cpus, overview.gpus) == (None, None, None, None)
    assert (overview.sets[0].counts, overview.sets[0].phase) == ({}, "SlurmSilent")


def node_set(name: str, phase: str = "Ready", why: str = "fine") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"phase": phase, "why": why, "wanted": 2, "ready": 1}}


def test_sets_count_their_own_nodes_by_state() -> None:
    objects = Objects([node_set("gpu"), node_set("a"), {"metadata": {"name": "new"}}], [], [], [])
    found = nodes(row(), row("gpu-1", "idle+cloud+drain"), row("gpu-2", "idle+cloud+powered_down"), row("a-0", "allocated+cloud"))
    sets = {each.name: each for each in build(objects, found, ()).sets}
    assert [*sets] == ["a", "gpu", "new"]
    assert sets["gpu"].counts == {"idle": 1, "drained": 1, "powered_down": 1}
    assert sets["a"].counts == {"allocated": 1}
    assert (sets["new"].phase, sets["gpu"].wanted, sets["gpu"].ready) == ("Unseen", 2, 1)


def job(number: str, state: str = "PENDING", partition: str = "main", reason: str = "Resources", submitted: str = "100") -> dict[str, str]:
    return {"JobArrayID": number, "State": state, "Partition": partition, "Reason": reason, "SubmitTime": submitted}


def test_queue_counts_waiting_tasks_and_their_partitions() -> None:
    jobs = [
        job("1", "RUNNING"),
        job("2_[4-9%2]", submitted="90"),
        job("3_[1,3,5-9:2]", partition="main,gpu", reason="Priority"),
        job("4", partition="gpu", submitted="N/A"),
    ]
    assert read_queue({"jobs": jobs}) == (
        QueueRow("gpu", 0, 6, 100, (("Priority", 5), ("Resources", 1))),
        QueueRow("main", 1, 11, 90, (("Resources", 6), ("Priority", 5))),
    )


STRANGE: dict[str, Any] = {
    "nothing": {},
    "list": [],
    "no-fields": {"nodes": [{}], "jobs": [{}]},
    "no-numbers": {"nodes": [row(CPUsState="1/2")], "jobs": [job("1_[a-b]")]},
}


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE)
def test_answer_of_another_form_is_no_reading(answer: object) -> None:
    for read in (read_nodes, read_queue):
        with pytest.raises(AnswerError):
            read(answer)


def cron_job(name: str, component: str, **status: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app.kubernetes.io/component": component}}, "spec": {}, "status": status}


def test_checks_are_told_with_the_results_that_nodes_have() -> None:
    extra = {"slipway": {"disk": {"result": "passed", "at": "2026-11-23T20:00:00Z"}, "gpu": {"result": "odd", "at": "-"}}}
    older = {"slipway": {"disk": {"result": "failed", "at": "2026-11-23T19:00:00Z"}}}
    found = nodes(row(Extra=json.dumps(extra)), row("gpu-1", Extra=json.dumps(older)), row("gpu-2", Extra='{"mine": 1}'))
    jobs = [
        cron_job("dev-check-disk", "health-check", lastScheduleTime="2026-11-23T20:00:00Z"),
        cron_job("dev-check-gpu", "health-check"),
        cron_job("dev-backup", "backup", lastSuccessfulTime="2026-11-23T18:00:00Z"),
    ]
    sets = [{**node_set("gpu"), "spec": {"healthChecks": ["disk", "mounts"]}}]
    overview = build(Objects(sets, [], jobs, []), found, ())
    disk, gpu, mounts = overview.checks
    assert [(each.name, each.has_schedule) for each in overview.checks] == [("disk", True), ("gpu", True), ("mounts", False)]
    assert (mounts.results, mounts.last_run) == ({}, None)
    assert (disk.name, disk.results, disk.last_run, disk.oldest) == ("disk", {"passed": 1, "failed": 1}, 1_795_464_000.0, 1_795_460_400.0)
    assert (gpu.results, gpu.last_run, gpu.oldest) == ({"unknown": 1}, None, None)
    assert (overview.has_backups, overview.backup) == (True, 1_795_456_800.0)


def test_overview_is_written_as_json() -> None:
    overview = build(Objects([node_set("gpu")], [], [cron_job("dev-check-disk", "health-check")], []), nodes(row(state="down+cloud")), ())
    written = as_json(overview)
    assert (written["sets"][0]["counts"], written["away"][0]["state"], written["gpus"]) == ({"down": 1}, "DOWN+CLOUD", [2, 4])
    assert as_json(build(NOTHING, None, None))["away"] is None
