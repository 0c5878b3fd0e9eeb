"""What a check of the ways between GPUs wants where the user says nothing, from the machine catalogue."""

from typing import Any

import pytest

from configs.render.check_facts import check_settings, expected_bus_gbs
from slurm.gpu_links import least_gb_per_s
from tests.support.configs.stacks import GONE, cluster
from tests.unit.configs.found_faults import faults

NCCL = {"name": "more", "check": "nccl", "schedule": "0 3 * * *", "nodeSets": ["h100"]}
AT = 7
"""Its place in the production example."""


def other_machine(name: str, model: str) -> dict[str, Any]:
    return {"nodePools[0].machine": name, "nodeSets[0].gpus.model": model}


@pytest.mark.parametrize(
    ("edits", "per", "gbs"),
    [
        pytest.param({}, "node", 303, id="h100"),
        pytest.param(other_machine("p4d.24xlarge", "a100"), "node", 202, id="a100"),
        pytest.param(other_machine("p5en.48xlarge", "h200"), "node", 303, id="h200"),
        pytest.param(other_machine("p6-b200.48xlarge", "b200"), "node", 607, id="b200"),
        pytest.param({}, "pair", 200, id="h100-over-efa"),
        pytest.param({}, "set", 200, id="h100-over-efa-all-at-once"),
        pytest.param(other_machine("p4d.24xlarge", "a100"), "pair", 25, id="a100-over-efa"),
        pytest.param({"nodePools[0].eks.efa": False}, "pair", 0, id="without-efa"),
        pytest.param(other_machine("g6e.48xlarge", "l40s"), "node", 0, id="without-nvlink"),
    ],
)
def test_limit_comes_from_the_catalogue(edits: dict[str, Any], per: str, gbs: int) -> None:
    settings = {} if gbs or per == "pair" else {"minBusBandwidthGBs": 1}
    loaded = cluster("h100", {**edits, "healthChecks": [{**NCCL, "per": per, "settings": settings}]})
    assert expected_bus_gbs(loaded, loaded.health_checks[0]) == gbs


def test_users_limit_comes_first_and_a_drains_limit_leaves_a_margin() -> None:
    loaded = cluster("h100", {"healthChecks": [{**NCCL, "settings": {"minBusBandwidthGBs": 400}}, {**NCCL, "name": "own"}]})
    given, own = (check_settings(loaded, check, loaded.node_sets[0]) for check in loaded.health_checks)
    assert (given["minBusBandwidthGBs"], given["gpus"], given["command"]) == (400, 8, [])
    assert own["minBusBandwidthGBs"] < (least_gb_per_s("h100") or 0)


def test_spelled_out_hardware_has_no_limit_of_the_catalogue() -> None:
    """The same model may have NVLink or not."""
    check = {**NCCL, "nodeSets": ["gpu"], "settings": {"minBusBandwidthGBs": 0}}
    loaded = cluster("dev", {"healthChecks": [check]})
    assert expected_bus_gbs(loaded, loaded.health_checks[0]) == 0


@pytest.mark.parametrize(
    ("more", "edits", "path", "part"),
    [
        pytest.param(
            {},
            other_machine("g6e.48xlarge", "l40s"),
            "settings.minBusBandwidthGBs",
            "the machine catalogue does not tell",
            id="without-nvlink",
        ),
        pytest.param(
            {"per": "set"},
            {"nodePools[0].eks.efa": False},
            "settings.minBusBandwidthGBs",
            "the machine catalogue does not tell",
            id="set-without-efa",
        ),
        pytest.param(
            {},
            {**other_machine("g5.xlarge", "a10g"), "nodeSets[0].gpus.count": 1, "nodePools[0].eks.efa": False, "nodeSets[0].slurmd": GONE},
            "nodeSets[0]",
            "has one GPU a node",
            id="one-gpu",
        ),
        pytest.param(
            {"settings": {"messageMiB": 64}}, {}, "settings.minBusBandwidthGBs", "with messageMiB 64, below 1024", id="small-messages"
        ),
        pytest.param({"check": "burn", "settings": {"seconds": 29}}, {}, "settings.seconds", "29 is less than 30", id="short-burn"),
        pytest.param({"per": "pair", "settings": {"minBandwidthMBs": 1}}, {}, "settings.minBandwidthMBs", "no such limit", id="mpis-limit"),
    ],
)
def test_mistake_is_told(more: dict[str, Any], edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("h100", {**edits, "healthChecks[+]": {**NCCL, **more}})
    assert any(at == f"cluster.healthChecks[{AT}].{path}" and part in message for at, message in found)


def test_vendors_and_numbers_of_gpus_have_to_fit() -> None:
    amd = {"nodePools[0].hardware.gpus.vendor": "amd", "nodePools[0].hardware.gpus.model": "mi300x"}
    amd |= {"nodeSets[1].gpus": {"vendor": "amd", "model": "mi300x", "count": 4}}
    checks = [
        {**NCCL, "name": "a", "nodeSets": ["gpu"], "settings": {"minBusBandwidthGBs": 1}},
        {**NCCL, "name": "b", "nodeSets": ["gpu"], "check": "dcgm", "timeoutS": 600},
        {**NCCL, "name": "c", "nodeSets": ["gpu"], "check": "burn", "timeoutS": 600},
    ]
    found = dict(faults("dev", {**amd, "healthChecks": checks}))
    assert "cluster.healthChecks[0].nodeSets[0]" not in found
    assert "has GPUs of amd, which the dcgm check does not know" in found["cluster.healthChecks[1].nodeSets[0]"]
    assert "has GPUs of amd, which the burn check does not know" in found["cluster.healthChecks[2].nodeSets[0]"]


def test_sets_of_one_job_have_as_many_gpus_each() -> None:
    gpus = {"nodeSets[0].gpus": {"model": "h100", "count": 2}, "nodeSets[0].simulatedGpus": True}
    check = {**NCCL, "nodeSets": ["cpu", "gpu"], "settings": {"minBusBandwidthGBs": 1}}
    found = faults("dev", {**gpus, "healthChecks": [{**check, "per": "pair"}, {**check, "name": "alone"}]})
    about = [at for at, message in found if "different numbers of GPUs" in message]
    assert about == ["cluster.healthChecks[0].nodeSets"]
