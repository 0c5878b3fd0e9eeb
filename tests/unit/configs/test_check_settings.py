"""What checks of nodes are told, as a job and beside jobs."""

import json
from typing import Any

import pytest

from configs.render.check_facts import check_settings
from configs.render.health_checks import render
from slurm.prologs import CHECKS
from tests.support.configs.stacks import GONE, cluster


def settings(edits: dict[str, Any], check: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a check that runs in every context is told: as a job, and beside jobs."""
    every = {"name": "it", "nodeSets": ["gpu"], **check}
    loaded = cluster("dev", {**edits, "healthChecks": [every]})
    script = render(loaded)[CHECKS]
    spec = json.loads(script[script.index("<<'END'\n") + 8 : script.index("\nEND\n")])
    return check_settings(loaded, loaded.health_checks[0], loaded.node_set("gpu")), spec["nodeSets"]["gpu"][0]["settings"]


DISK = {"check": "disk", "contexts": ["job", "interval"], "schedule": "0 * * * *"}


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param({}, id="with-a-shared-root"),
        pytest.param({"storage.root": GONE, "login.users[0].admin": GONE}, id="without-one"),
    ],
)
def test_file_systems_of_the_node_alone_are_looked_at(edits: dict[str, Any]) -> None:
    job, beside = settings(edits, DISK)
    assert job["paths"] == beside["paths"] == ["/", "/var/spool/slipway/tmp", "/var/spool/slurmd"]


def test_patterns_reach_the_nodes_as_they_were_given() -> None:
    given = {"xids": [63], "ignoredXids": [119], "patterns": {"hot": r"CPU\d+: [^'\"$`]*[\\)]+ above (a|\"b\")?'END'"}}
    _, beside = settings({}, {"check": "kernel", "contexts": ["interval"], **given})
    assert {key: beside[key] for key in given} == given
    assert beside["maxPatterns"] == 0
