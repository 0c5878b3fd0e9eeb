"""Each program of controllers/ reads the settings that components write for it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controllers.ec2 import settings as ec2
from controllers.guard import settings as guard
from controllers.nodeset import settings as nodeset
from controllers.page import settings as page

KEY = Path("/etc/slipway/jwt/key")
EC2 = nodeset.Ec2Program("http://dev-ec2.slurm:8081/steps", Path("/etc/slipway/ec2/token"))
ABOUT: dict[str, Any] = {"cluster": "dev", "namespace": "slurm"}
SLURM: dict[str, Any] = {**ABOUT, "slurmrestd": "http://dev-slurmrestd.slurm:6820", "jwt_key": KEY}
TOLD: dict[str, Any] = {"port": 9090, "probe_port": 9091, "log_level": "debug"}


@pytest.mark.parametrize(
    ("program", "least", "more"),
    [
        pytest.param(guard, guard.Settings(**ABOUT, identity="pod-0"), {}, id="guard"),
        pytest.param(nodeset, nodeset.Settings(**SLURM, identity="pod-0"), {"ec2": EC2, "writes_per_s": 20.5}, id="nodeset"),
        pytest.param(
            page,
            page.Settings(**SLURM, history=Path("/tmp/history.json")),
            {"hidden": frozenset({"jobs", "nodes"}), "hosts": ("dev-page", "slurm.example.com")},
            id="page",
        ),
        pytest.param(
            ec2,
            ec2.Settings(**ABOUT, region="eu-west-1", token=Path("/etc/slipway/token/token")),
            {
                "steps": ("RebootMachine", "ReplaceMachine"),
                "labels_places": True,
                "every_s": 30,
                "grace_s": 10,
                "max_per_hour": 2,
                "requests_port": 9092,
            },
            id="ec2",
        ),
    ],
)
def test_program_reads_what_it_is_told(program: Any, least: Any, more: dict[str, Any]) -> None:
    pod = {"POD_NAME": "pod-0"}  # Kubernetes sets it
    for settings in (least, replace(least, **TOLD, **more)):
        assert program.read_settings({**program.to_environment(settings), **pod}) == settings
