"""The hidden partition of health checks: users' jobs preempt these, and nothing else is preempted that was not before."""

from typing import Any

import pytest

from configs.render.check_partition import checks_partition
from configs.render.slurm import render
from slurm.conf import pairs_of
from tests.support.configs.stacks import cluster


def partitions(edits: dict[str, Any]) -> dict[str, dict[str, str]]:
    lines = [dict(pairs) for line in render(cluster("dev", edits))["slurm.conf"].splitlines() if (pairs := pairs_of(line))]
    return {line["PartitionName"]: line for line in lines if "PartitionName" in line}


def test_checks_rank_below_all_jobs_and_jobs_stay_safe_from_each_other() -> None:
    found = partitions({"partitions[1].priorityTier": 9})
    checks = found.pop("slipway-checks")
    wanted = {"Hidden": "YES", "RootOnly": "YES", "PriorityTier": "0", "PreemptMode": "CANCEL", "GraceTime": "0"}
    assert checks.items() >= wanted.items()
    assert {line["PreemptMode"] for line in found.values()} == {"OFF"}
    assert all(int(line["PriorityTier"]) > 0 for line in found.values())
    text = render(cluster("dev", {}))["slurm.conf"]
    assert "PreemptType=preempt/partition_prio\n" in text


def test_preemption_by_partitions_of_the_users_own_is_left_as_it_is() -> None:
    own = {"slurm.settings": {"PreemptType": "preempt/partition_prio", "PreemptMode": "SUSPEND,GANG"}}
    found = partitions(own)
    assert found.pop("slipway-checks")["PreemptMode"] == "CANCEL"
    assert not any("PreemptMode" in line for line in found.values())
    assert "\nPreemptMode=SUSPEND,GANG\n" in render(cluster("dev", own))["slurm.conf"]


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        pytest.param({"slurm.settings": {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}}, "goes by preempt/qos", id="by-qos"),
        pytest.param({"slurm.settings": {"PreemptMode": "OFF"}}, "goes by preempt/none", id="off-on-purpose"),
        pytest.param({"partitions[1].priorityTier": 0}, "none is below it", id="lowest-tier-is-taken"),
        pytest.param({"slurm.raw": ["PartitionName=odd Nodes=cpu-0 PriorityTier=5"]}, "could preempt each other", id="raw-partition"),
    ],
)
def test_checks_run_as_before_without_room_and_slurm_conf_says_why(edits: dict[str, Any], why: str) -> None:
    assert "slipway-checks" not in partitions(edits)
    assert why in checks_partition(cluster("dev", edits)).hindrance
    text = render(cluster("dev", edits))["slurm.conf"]
    assert why in text
    assert "partition_prio" not in text


def test_without_checks_as_jobs_there_is_no_partition() -> None:
    beside = {"name": "disk", "check": "disk", "contexts": ["interval"], "nodeSets": ["cpu"]}
    edits = {"healthChecks": [beside]}
    assert checks_partition(cluster("dev", edits)).node_sets == ()
    assert "Preempt" not in render(cluster("dev", edits))["slurm.conf"]
