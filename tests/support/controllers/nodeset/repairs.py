"""Nodes of the set in memory whose health check `disk` fails, and rounds in which the controller repairs them."""

from typing import Any

from controllers.runtime.structs import PODS
from slurm.check_results import CheckResult, Failure, with_result
from slurm.reasons import check
from tests.support.controllers.nodeset.memory_cluster import Cluster

SINCE = "2026-01-01T00:00:00Z"
FULL = Failure(SINCE, "/tmp has 3 MiB free", "node")
POLICY: dict[str, Any] = {"steps": ["RecreatePod"], "waitSeconds": 60}
MACHINE_POLICY = {"steps": ["ReplaceMachine"], "waitSeconds": 60, "machines": "DeleteNode"}
HELD = check("disk", FULL.found)


def fail(cluster: Cluster, name: str, at: str = SINCE) -> None:
    """A check finds the node failing, notes that, and drains it."""
    cluster.slurm.extras[name] = with_result("", "disk", CheckResult("failed", at, FULL)) or ""
    cluster.slurm.words[name].add("DRAIN")
    cluster.slurm.reasons[name] = HELD


def look_again(cluster: Cluster, broken: dict[str, str]) -> None:
    """The check passes where the pod is another than the one that was broken."""
    for name, uid in broken.items():
        present = cluster.server.get(PODS, ("slurm", name)) if ("slurm", name) in cluster.server.keys(PODS) else None
        if present is not None and present["metadata"]["uid"] != uid and cluster.slurm.extras[name]:
            cluster.slurm.extras[name] = with_result("", "disk", CheckResult("passed", SINCE)) or ""


def uids(cluster: Cluster) -> dict[str, str]:
    return {key[1]: cluster.server.get(PODS, key)["metadata"]["uid"] for key in cluster.server.keys(PODS)}


async def repaired(cluster: Cluster, broken: dict[str, str], rounds: int = 14) -> None:
    for _ in range(rounds):
        cluster.process.later_s += 30
        await cluster.rounds(1)
        look_again(cluster, broken)


def condition(cluster: Cluster, kind: str) -> tuple[str, str]:
    found = next(each for each in cluster.status()["conditions"] if each["type"] == kind)
    return found["status"], found["reason"]
