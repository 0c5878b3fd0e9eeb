"""Nodes are where the labels of their machines say, with real kubelets, NodeSet controller and Slurm; a changed label touches no job."""

import re
from collections.abc import Iterator

import pytest

from local import layout
from tests.support.cluster.dev_stack import DevStack, eventually

MACHINE = layout.WORKERS[1].name
TELL = 'echo "$SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN"'


@pytest.fixture
def labelled(stack: DevStack) -> Iterator[DevStack]:
    """The stack; its machines are on the switch of before at the end."""
    yield stack
    label(stack, "local")
    eventually("all nodes on one switch", lambda: set(switches(stack)) == {"fabric", "local"}, 60)


def label(stack: DevStack, value: str) -> None:
    """Gives one machine another switch; an empty value takes its label away."""
    words = f"{layout.SWITCH_LABEL}={value}" if value else f"{layout.SWITCH_LABEL}-"
    stack.kubectl("label", "node", MACHINE, words, "--overwrite")


def switches(stack: DevStack) -> dict[str, str]:
    """The nodes of each switch that has some, but for those that are off."""
    lines = [dict(word.split("=", 1) for word in line.split()) for line in stack.slurm("scontrol show topology").splitlines() if line]
    return {line["SwitchName"]: line["Nodes"] for line in lines if line.get("Nodes") and line["Nodes"] != "burst-[0-1]"}


def machines(stack: DevStack, *nodesets: str) -> dict[str, list[str]]:
    """The nodes on each machine, of some node sets."""
    found: dict[str, list[str]] = {}
    for pod in stack.get("pods", labels=f"slipway.dev/nodeset in ({','.join(nodesets)})")["items"]:
        found.setdefault(pod["spec"]["nodeName"], []).append(pod["metadata"]["name"])
    return found


def features(stack: DevStack, node: str) -> list[str]:
    """What `--constraint` may ask of a node."""
    return re.findall(r"AvailableFeatures=(\S*)", stack.slurm(f"scontrol show node {node}"))[0].split(",")


def placed(stack: DevStack, nodeset: str) -> dict[str, str]:
    """The set's condition NodesPlaced."""
    return next(each for each in stack.get("nodeset", nodeset)["status"]["conditions"] if each["type"] == "NodesPlaced")


def test_label_of_a_machine_is_followed_without_a_restart_while_jobs_run(labelled: DevStack) -> None:
    stack = labelled
    eventually("all nodes on one switch", lambda: set(switches(stack)) == {"fabric", "local"}, 60)
    pods = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in stack.get("pods", labels="slipway.dev/nodeset")["items"]}
    moved = next(name for name, machine in sorted(pods.items()) if machine == MACHINE)
    assert stack.ssh(f"srun --nodelist={moved} bash -c '{TELL}'").split() == [f"fabric.local.{moved}", "switch.switch.node"]
    job = stack.hold(f"--nodelist={moved}")
    stack.wait_for_job(job, "RUNNING")

    label(stack, "rack.9")
    eventually("the new switch", lambda: moved.rpartition("-")[0] in switches(stack).get("rack_9", ""), 60)
    there = f"fabric.rack_9.{moved}"
    eventually("what jobs read", lambda: there in stack.ssh(f"srun --overlap --jobid={job} bash -c '{TELL}'"), 60)

    label(stack, "")
    nodeset = moved.rpartition("-")[0]
    eventually(
        "the missing label in the status", lambda: f"{MACHINE} has no label {layout.SWITCH_LABEL}" in placed(stack, nodeset)["message"], 60
    )
    assert moved in placed(stack, nodeset)["message"]
    assert stack.job_state(job) == "RUNNING"
    stack.let_go()
    stack.wait_for_job(job)


def test_machine_label_is_a_feature_and_jobs_that_need_it_run_only_there(stack: DevStack) -> None:
    """`labelFeatures` of the dev stack names kubernetes.io/hostname, beside the features that a node set has of its own."""
    there = machines(stack, "cpu", "gpu")
    for machine, nodes in sorted(there.items()):
        wanted = {node: {machine, *(["h100"] if node.startswith("gpu-") else [])} for node in nodes}
        eventually("features", lambda wanted=wanted: {node: set(features(stack, node)) for node in wanted} == wanted, 60)
        wait = "sbatch --wait --parsable --output=feature.out"
        stack.ssh(f"{wait} --nodes={len(nodes)} --constraint={machine} --wrap='srun printenv SLURMD_NODENAME'")
        assert sorted(stack.ssh("cat feature.out").split()) == sorted(nodes)
    assert "Invalid feature" in stack.ssh("rm feature.out; srun --constraint=no-such-machine true 2>&1", check=False)
