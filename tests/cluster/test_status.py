"""`slipway status` on the live dev stack: what a person on call sees."""

import json
from typing import Any

from tests.support.cluster.dev_stack import DevStack, eventually


def with_counts(stack: DevStack, name: str, counts: dict[str, int]) -> dict[str, Any]:
    """What the verb writes where it counts the nodes of a set so; nothing where not."""
    written: dict[str, Any] = json.loads(stack.slipway("status", "--json", "-").stdout)
    return written if {each["name"]: each["counts"] for each in written["sets"]}[name] == counts else {}


def test_status_shows_why_nodes_are_out_of_service_and_who_waits_for_them(stack: DevStack) -> None:
    machine = stack.get("pod", "gpu-1")["spec"]["nodeName"]
    stack.slurm("scontrol update NodeName=gpu-1 State=DRAIN Reason='its fan is loud'")
    job = 0
    try:
        job = stack.submit("#!/bin/bash\n", "--partition=gpu", "--nodelist=gpu-1", "--gpus=1")
        eventually("its cause is told", lambda: stack.get("slurmnode", "gpu-1")["status"].get("causes"), 60)
        eventually("Slurm says why it waits", lambda: "ReqNodeNotAvail" in stack.slurm(f"squeue -h -j {job} -o %r"), 60)
        said = stack.slipway("status").stdout
        [row] = [line.split() for line in said.splitlines() if line.startswith("gpu-1 ")]
        assert row[:2] == ["gpu-1", "IDLE+CLOUD+DRAIN"]
        assert machine in row
        assert row[-4:] == ["its", "fan", "is", "loud"]
        assert "administrator" in row
        [waits] = [line for line in said.splitlines() if line.startswith("gpu  ") and "1 " in line and "ReqNodeNotAvail" in line]
        assert waits.split()[1:3] == ["0", "1"]
        # A check that runs by its schedule has the other node for a moment.
        written = eventually("one node is idle, one drained", lambda: with_counts(stack, "gpu", {"idle": 1, "drained": 1}))
    finally:
        stack.slurm(f"scancel {job}", check=False)
        stack.slurm("scontrol update NodeName=gpu-1 State=UNDRAIN")
    [away] = written["away"]
    assert (away["name"], away["reason"], away["is_busy"]) == ("gpu-1", "its fan is loud", False)
    assert written["gpus"][1] == 8
    assert not any(each["fault"] for each in written["readings"].values())
