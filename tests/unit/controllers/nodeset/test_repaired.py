"""A controller that repairs nodes, against a Kubernetes and a Slurm in memory: a new pod, a new machine, and an end at any write."""

import asyncio
import json
from typing import Any

import pytest

from controllers.nodeset.structs import SLURM_NODES
from controllers.runtime.structs import KUBE_NODES, PODS
from slurm.check_results import CheckResult, with_result
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.controllers.nodeset.repairs import MACHINE_POLICY, POLICY, SINCE, condition, fail, repaired, uids
from tests.unit.controllers.nodeset.killer import KILL_POINTS, killed_at


@pytest.mark.anyio
async def test_pod_is_recreated_and_the_node_returns_once_its_check_passes(cluster: Cluster) -> None:
    cluster.declare(replicas=4, healthChecks=["disk"], remedies=POLICY)
    await cluster.rounds(5)
    before = uids(cluster)
    cluster.slurm.start_job("gpu-1", 7)
    fail(cluster, "gpu-1")
    await repaired(cluster, {"gpu-1": before["gpu-1"]})
    assert uids(cluster) == before, "a job runs there"
    assert condition(cluster, "Remedied") == ("True", "UnderWay")
    told = cluster.server.get(SLURM_NODES, ("slurm", "gpu-1"))["status"]["causes"]
    assert any("Once no job is on it, its pod is replaced (RecreatePod)." in cause["next"] for cause in told), told

    cluster.slurm.end_job("gpu-1")
    await repaired(cluster, {"gpu-1": before["gpu-1"]})
    assert {name for name, uid in uids(cluster).items() if uid != before[name]} == {"gpu-1"}
    assert cluster.slurm.words["gpu-1"] == {"IDLE", "CLOUD"}
    assert [(each["nodes"], each["state"]) for each in cluster.status()["repairs"]] == [("gpu-1", "InService")]
    assert (condition(cluster, "Remedied"), cluster.ended_with_a_job) == (("True", "NothingToDo"), [])


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(KILL_POINTS))
async def test_next_process_finishes_a_repair_interrupted_at_any_write(cluster: Cluster, allowed: int) -> None:
    cluster.declare(replicas=4, healthChecks=["disk"], remedies=POLICY)
    await cluster.rounds(5)
    before = uids(cluster)
    fail(cluster, "gpu-2")
    killer = await killed_at(cluster, allowed, rounds=8, round_s=30)
    assert killer.has_struck or allowed > 5, f"only {killer.writes} writes"
    await repaired(cluster, {"gpu-2": before["gpu-2"]})
    assert cluster.slurm.words["gpu-2"] == {"IDLE", "CLOUD"}
    assert uids(cluster)["gpu-2"] != before["gpu-2"]
    steps = [step for each in cluster.status()["repairs"] for step in each["steps"]]
    assert [step["step"] for step in steps] == ["RecreatePod"], "taken twice"


@pytest.mark.anyio
async def test_slurm_silent_for_five_minutes_loses_nothing(cluster: Cluster) -> None:
    cluster.declare(replicas=4, healthChecks=["disk"], remedies=POLICY)
    await cluster.rounds(5)
    before = uids(cluster)
    fail(cluster, "gpu-0")
    await repaired(cluster, {}, rounds=3)
    cluster.slurm.is_silent = True
    await repaired(cluster, {}, rounds=10)
    assert uids(cluster) == before
    cluster.slurm.is_silent = False
    await repaired(cluster, {"gpu-0": before["gpu-0"]})
    assert (uids(cluster)["gpu-0"] != before["gpu-0"], cluster.slurm.words["gpu-0"]) == (True, {"IDLE", "CLOUD"})


@pytest.mark.anyio
async def test_too_many_failures_at_once_stop_everything_until_they_end(cluster: Cluster) -> None:
    cluster.declare(replicas=4, healthChecks=["disk"], remedies=POLICY)
    await cluster.rounds(5)
    before = uids(cluster)
    for name in ("gpu-0", "gpu-1", "gpu-2"):
        fail(cluster, name)
        cluster.slurm.words[name].discard("DRAIN")
        cluster.slurm.reasons[name] = ""
    await repaired(cluster, {})
    assert condition(cluster, "Remedied") == ("False", "Systemic")
    assert (uids(cluster), cluster.status()["phase"]) == (before, "Degraded")
    assert not any("DRAIN" in words for words in cluster.slurm.words.values())
    for name in ("gpu-0", "gpu-1", "gpu-2"):
        cluster.slurm.extras[name] = with_result("", "disk", CheckResult("passed", SINCE)) or ""
    await repaired(cluster, {}, rounds=2)
    assert (condition(cluster, "Remedied"), cluster.status()["systemicSince"]) == (("True", "NothingToDo"), "")


@pytest.mark.anyio
async def test_kubernetes_node_is_deleted_once_no_job_is_on_it(cluster: Cluster) -> None:
    cluster.declare(replicas=1, healthChecks=["disk"], remedies=MACHINE_POLICY)
    await cluster.rounds(5)
    cluster.slurm.start_job("gpu-0", 7)
    fail(cluster, "gpu-0")
    await repaired(cluster, {})
    assert cluster.server.keys(KUBE_NODES) == {("", "machine")} or list(cluster.server.keys(KUBE_NODES)) == [("", "machine")]
    cluster.slurm.end_job("gpu-0")
    await repaired(cluster, {}, rounds=4)
    assert not list(cluster.server.keys(KUBE_NODES))
    assert [each["state"] for each in cluster.status()["repairs"]] == ["ReplaceMachine"]


def hear(cluster: Cluster, is_heard: bool) -> None:
    """The kubelet of the machine falls silent, or is back: Kubernetes calls the pods there ready no more, and they run on."""
    cluster.machine("machine", ready=is_heard)
    for key in cluster.server.keys(PODS):
        pod = cluster.server.get(PODS, key)
        cluster.server.put(PODS, {**pod, "status": {**pod["status"], "conditions": [{"type": "Ready", "status": str(is_heard)}]}})


@pytest.mark.anyio
@pytest.mark.parametrize("policy", [MACHINE_POLICY, {**POLICY, "systemicPercent": 100}], ids=["replaced", "nothing-helps"])
async def test_machine_that_is_not_ready_is_left_to_its_job(cluster: Cluster, policy: dict[str, Any]) -> None:
    cluster.declare(replicas=1, healthChecks=["disk"], remedies=policy)
    await cluster.rounds(5)
    before = uids(cluster)
    cluster.slurm.start_job("gpu-0", 7)
    hear(cluster, False)
    await repaired(cluster, {})
    assert (uids(cluster), cluster.slurm.jobs_on) == (before, {"gpu-0": 7})
    assert list(cluster.server.keys(KUBE_NODES)) == [("", "machine")]
    assert [each["state"] for each in cluster.status()["repairs"]] == ["Draining" if policy is MACHINE_POLICY else "GivenUp"]
    hear(cluster, True)
    await repaired(cluster, {}, rounds=3)
    assert (cluster.slurm.words["gpu-0"], cluster.ended_with_a_job) == ({"ALLOCATED", "CLOUD"}, [])


@pytest.mark.anyio
@pytest.mark.parametrize("answer", ["200 OK", "500 Internal Server Error"])
async def test_webhook_is_asked_again_until_it_accepts(cluster: Cluster, answer: str) -> None:
    bodies: list[dict[str, Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line.partition(":")[2]) for line in head.lower().split("\r\n") if line.startswith("content-length"))
        bodies.append(json.loads(await reader.readexactly(length)))
        writer.write(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/repairs"
    policy = {"steps": ["RebootMachine"], "waitSeconds": 60, "machines": "Webhook", "webhook": url}
    cluster.declare(replicas=1, healthChecks=["disk"], remedies=policy)
    await cluster.rounds(5)
    fail(cluster, "gpu-0")
    await repaired(cluster, {}, rounds=8)
    server.close()
    [record] = cluster.status()["repairs"]
    assert len({body["id"] for body in bodies}) == 1
    assert bodies[0]["step"] == "RebootMachine"
    assert (bodies[0]["node"], bodies[0]["machine"], bodies[0]["causes"]) == ("gpu-0", "machine", ["check/disk"])
    assert (len(bodies) == 1, record["asked"] != "") == ((True, True) if answer.startswith("200") else (False, False))
    assert "DRAIN" in cluster.slurm.words["gpu-0"]
