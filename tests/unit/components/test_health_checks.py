"""The CronJobs of health checks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from components.health_checks import build_cron_job, build_spec
from configs.models.cluster import Cluster
from programs.node_checks.run import read_spec
from programs.node_checks.settings import CheckedSet, CheckSpec, from_json, to_json
from tests.support.components.examples import PODS
from tests.support.components.stacks import DEV, H100
from tests.support.configs.stacks import cluster
from tests.unit.components.structure import structural_faults

CHECK: dict[str, Any] = {"name": "disk", "check": "disk", "schedule": "*/15 * * * *", "nodeSets": ["cpu"]}


def declared(check: dict[str, Any], name: str = "dev", edits: Mapping[str, Any] | None = None) -> Cluster:
    """A stack with this check alone."""
    return cluster(name, {"healthChecks": [check], **(edits or {})})


def specs(made: Cluster) -> dict[str, CheckSpec]:
    """What each check that is a job is told, by its name."""
    return {check.name: build_spec(made, check) for check in made.health_checks if "job" in check.contexts}


def cron_job(made: Cluster | None = None) -> dict[str, Any]:
    made = made or declared(CHECK)
    return build_cron_job(made, PODS, made.health_checks[0])


def pod() -> dict[str, Any]:
    return cron_job()["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def test_cron_job_is_what_kubernetes_describes() -> None:
    assert structural_faults(cron_job()) == []
    assert cron_job()["metadata"]["name"] == "dev-check-disk"


def test_runs_never_overlap_and_are_never_repeated() -> None:
    spec = cron_job()["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["jobTemplate"]["spec"]["backoffLimit"] == 0
    assert pod()["restartPolicy"] == "Never"


def test_run_is_slurms_own_user_and_nothing_more() -> None:
    [container] = pod()["containers"]
    assert container["securityContext"]["runAsUser"] == 64030
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["nodeSelector"] == PODS["node_selector"]


def test_munge_key_is_mounted_in_the_sidecar_only() -> None:
    [container], [sidecar] = pod()["containers"], pod()["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert "munge-key" in [mount["name"] for mount in sidecar["volumeMounts"]]
    assert "munge-key" not in [mount["name"] for mount in container["volumeMounts"]]


def test_every_mount_has_its_volume() -> None:
    volumes = {volume["name"] for volume in pod()["volumes"]}
    mounts = {mount["name"] for container in (*pod()["containers"], *pod()["initContainers"]) for mount in container["volumeMounts"]}
    assert mounts == volumes


def test_program_reads_what_the_component_writes() -> None:
    [container] = pod()["containers"]
    assert container["command"][:4] == ["python3", "-EsSB", "-m", "programs.node_checks.run"]
    assert container["workingDir"] == "/opt/slipway"
    spec = read_spec(container["command"][4])
    assert (spec.name, spec.check, spec.timeout_s, spec.parallel) == ("disk", "disk", 60, 16)
    own = {"paths": ["/", "/var/spool/slipway/tmp", "/var/spool/slurmd"], "minFreeMiB": 1024, "minFreePercent": 0}
    assert spec.targets == dict.fromkeys(("cpu-0", "cpu-1"), CheckedSet("cpu", 2, 0, 1, own))


SPEC = CheckSpec("x", "disk", 60, 16, 180, "hardware", (CheckedSet("a", 2, 0, 1, {"minFreeMiB": 5}), CheckedSet("b", 1, 8, 3, {})))


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(SPEC, id="defaults"),
        pytest.param(replace(SPEC, wish="reboot", after=("gpu", "disk"), budget_node_minutes=600, longest_s=900), id="all-given"),
        pytest.param(replace(SPEC, wish="none", per="set", cause="node"), id="between-nodes"),
    ],
)
def test_what_is_written_is_read_back(spec: CheckSpec) -> None:
    assert from_json(to_json(spec)) == spec


@pytest.mark.parametrize(
    ("nodes", "seconds"),
    [
        pytest.param(0, 120, id="none"),
        pytest.param(16, 180, id="one-round"),
        pytest.param(17, 240, id="two-rounds"),
        pytest.param(10_000, 37_620, id="ten-thousand"),
    ],
)
def test_deadline_leaves_time_for_every_node(nodes: int, seconds: int) -> None:
    made = declared(CHECK, edits={"nodePools[0].max": 10_000, "nodeSets[0].size": nodes})
    job = cron_job(made)["spec"]["jobTemplate"]["spec"]
    assert from_json(job["template"]["spec"]["containers"][0]["command"][4]).deadline_s == seconds
    assert job["activeDeadlineSeconds"] > seconds


def test_checks_know_the_limits_of_the_user_and_the_facts_of_the_nodes() -> None:
    checks = {name: spec.node_sets for name, spec in specs(DEV).items()}
    assert checks["disk"][0].settings == {
        "minFreeMiB": 512,
        "minFreePercent": 0,
        "paths": ["/", "/var/spool/slipway/tmp", "/var/spool/slurmd"],
    }
    assert checks["memory"][0].settings["configuredMiB"] == 2048
    [gpu] = checks["gpu"]
    assert gpu.gpus == 4
    assert gpu.settings.items() >= {"vendor": "nvidia", "count": 4, "simulated": True}.items()
    assert [each.gpus for name in ("disk", "memory", "clock") for each in checks[name]] == [0] * 6


def test_checks_by_vendors_programs_have_all_gpus_and_their_nodes() -> None:
    nccl, dcgm = specs(H100)["nccl"], specs(H100)["dcgm"]
    assert (nccl.per, nccl.cause, nccl.node_sets[0].gpus) == ("node", "hardware", 8)
    assert nccl.node_sets[0].settings.items() >= {"gpus": 8, "minBusBandwidthGBs": 303, "command": []}.items()
    assert (dcgm.per, dcgm.node_sets[0].gpus, dcgm.node_sets[0].settings["level"]) == ("node", 8, 2)


def test_ports_are_tested_without_gpus_so_that_sets_of_both_kinds_can_be() -> None:
    check = {"name": "ib", "check": "ib", "schedule": "0 3 * * *", "nodeSets": ["h100", "cpu"]}
    ib = specs(declared(check, "h100"))["ib"]
    assert (ib.per, ib.cause, [each.gpus for each in ib.node_sets]) == ("pair", "hardware", [0, 0])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {"cpu": 6, "gpu": 1}, id="a-tenth-and-at-least-one"),
        pytest.param({"maxDrained": "50%"}, {"cpu": 32, "gpu": 1}, id="a-share-is-rounded-down"),
        pytest.param({"maxDrained": 3}, {"cpu": 3, "gpu": 3}, id="a-number"),
    ],
)
def test_checks_may_hold_a_share_of_each_node_set(given: dict[str, Any], expected: dict[str, int]) -> None:
    check = {"name": "disk", "check": "disk", "schedule": "* * * * *", "nodeSets": ["cpu", "gpu"], **given}
    made = declared(check, edits={"nodePools[0].max": 64, "nodeSets[0].size": 64, "nodeSets[1].size": 3})
    assert {each.name: each.max_drained for each in specs(made)["disk"].node_sets} == expected


def test_program_reads_the_wish_of_a_check() -> None:
    given = [specs(declared({**CHECK, "wish": wish}))["disk"].wish for wish in ("drain", "none")]
    assert given == ["drain", "none"]
