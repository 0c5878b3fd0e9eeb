"""Which nodes a check looks at, beside jobs and as a job, and what their slurmd is told of it."""

import json
import re
from typing import Any

from components.check_jobs import check_jobs
from components.health_checks import build_spec
from components.node_set import build_node_set
from configs.models.cluster import Cluster
from configs.render.health_checks import render
from slurm.prologs import CHECKS
from tests.support.components.examples import PODS
from tests.support.configs.stacks import cluster

BOTH = ["cpu", "gpu"]


def declared(**given: Any) -> Cluster:
    """The example of the local cluster with one check: a node set without GPUs, and one with NVIDIA's."""
    check = {"name": "own", "check": "command", "command": ["/shared/checks/own"], "nodeSets": BOTH, **given}
    return cluster("dev", {"healthChecks": [check]})


def beside(made: Cluster) -> dict[str, dict[str, Any]]:
    """What slurmd's script has of the check, by node set."""
    text = render(made)[CHECKS]
    found = re.search(r"<<'END'\n(.*?)\nEND$", text, re.DOTALL | re.MULTILINE)
    assert found
    return {name: checks[0] for name, checks in json.loads(found[1])["nodeSets"].items()}


def test_nodes_of_other_platforms_are_left_out_wherever_a_check_runs() -> None:
    everywhere = ["job", "interval", "prolog", "epilog"]
    made = declared(contexts=everywhere, schedule="0 * * * *", platforms=["nvidia", "amd"])
    assert list(beside(made)) == ["gpu"]
    assert '"prolog_slurmd cpu"' not in render(made)[CHECKS]
    assert [each.name for each in build_spec(made, made.health_checks[0]).node_sets] == ["gpu"]
    known = {each.name: build_node_set(made, PODS, each)["spec"]["healthChecks"] for each in made.node_sets}
    assert {name: checks for name, checks in known.items() if checks} == {"gpu": ["own"]}
    assert [name for each in made.node_sets for name in check_jobs(made, each)] == []


def test_slurmd_is_told_of_states_and_wishes_that_are_not_the_usual_ones() -> None:
    usual = beside(declared(contexts=["interval"]))["cpu"]
    assert not {"nodeStates", "wish"} & usual.keys()
    given = beside(declared(contexts=["interval"], nodeStates=["idle"], wish="none"))["cpu"]
    assert (given["nodeStates"], given["wish"], given["settings"]) == (["idle"], "none", {"command": ["/shared/checks/own"]})


def test_job_of_a_check_is_told_of_its_wish() -> None:
    made = declared(schedule="0 * * * *", wish="reboot")
    assert build_spec(made, made.health_checks[0]).wish == "reboot"
