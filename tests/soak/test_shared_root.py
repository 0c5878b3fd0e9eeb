"""Versions of the shared root on the real cluster: those that `up` refuses, and a switch while a job runs."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.cluster.dev_stack import STATE, DevStack
from tests.support.cluster.root_volume import root_image, run


def up(stack: DevStack, root: Mapping[str, Any], check: bool = True) -> str:
    """`up` with this root; what it said."""
    done = stack.slipway("up", "--config", f"cluster.storage.root={json.dumps(root)}", check=check)
    return done.stdout + done.stderr


def image_without_a_shell(stack: DevStack) -> str:
    """CoreDNS's image has one program, and no shell."""
    path = "-o=jsonpath={.spec.template.spec.containers[0].image}"
    return stack.run(str(STATE / "bin" / "kubectl"), "-n", "kube-system", "get", "deployment", "coredns", path).stdout


def test_version_that_runs_no_shell_is_refused_and_the_old_one_stays(restored: DevStack) -> None:
    """Quick: tests/slurm/test_root_fill.py::test_switch_and_rollback_and_a_version_without_a_shell_is_refused."""
    stack = restored
    image = root_image()
    first = image.rpartition(":")[2]
    versions = [{"name": first, "image": image}, {"name": "broken", "image": image_without_a_shell(stack)}]
    said = up(stack, {"versions": versions, "current": "broken"}, check=False)
    assert "no shell runs in version broken" in said
    assert run(stack, "echo $SLIPWAY_ROOT_VERSION") == first


def test_name_of_a_version_is_for_one_image_for_ever(restored: DevStack) -> None:
    """Quick: tests/slurm/test_root_fill.py::test_name_of_a_version_is_for_one_image."""
    stack = restored
    first = root_image().rpartition(":")[2]
    said = up(stack, {"versions": [{"name": first, "image": image_without_a_shell(stack)}]}, check=False)
    assert "A name is for one image" in said
    assert run(stack, "echo $SLIPWAY_ROOT_VERSION") == first


def test_switch_touches_no_job_that_runs_and_a_switch_back_is_a_rollback(restored: DevStack) -> None:
    """Quick: tests/slurm/test_shared_root.py::test_running_job_keeps_its_version_over_a_switch_and_new_ones_switch."""
    stack = restored
    image = root_image()
    first = image.rpartition(":")[2]
    tell = "echo $SLIPWAY_ROOT_VERSION"
    job = stack.submit(
        f"#!/bin/bash\n{tell}\nuntil [ -e go-on ]; do sleep 0.2; done\nsrun bash -c '{tell}'\n", "--output=kept.out", "--nodelist=cpu-1"
    )
    stack.wait_for_job(job, "RUNNING")
    second = f"second-{first}"  # the folder of the shared volume outlives the cluster, and with it what a name stands for
    versions = [{"name": first, "image": image}, {"name": second, "image": image}]
    said = up(stack, {"versions": versions, "current": second})
    assert "root-switch" in said
    assert run(stack, tell) == second
    stack.ssh("touch go-on")
    stack.wait_for_job(job)
    assert stack.ssh("cat kept.out; rm go-on").split() == [first, first]
    up(stack, {"versions": versions, "current": first})
    assert run(stack, tell) == first
