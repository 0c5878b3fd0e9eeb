"""The local cluster is ended, and what an `up` that was cut off has left stands in nobody's way.

Quick: tests/cluster/test_local.py repeats `up` and kills single programs.
"""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

from local import cgroups
from tests.support.cluster.dev_stack import ROOT, DevStack, eventually
from tests.support.cluster.programs import local


def machine() -> dict[str, list[str]]:
    """What a local cluster adds to a machine and other tests do not: links, named namespaces, mounts, firewall tables, programs."""
    look = {
        "links": "ip -br link | awk '{print $1}' | grep -v '^lo$' || true",
        "namespaces": "ip netns list | grep ^slipway- || true",
        "mounts": "grep -E '/run/(slipway|netns/slipway)' /proc/self/mounts || true",
        "tables": "nft list tables 2>/dev/null || true",
    }
    found = {
        what: subprocess.run(["bash", "-c", how], capture_output=True, text=True, check=True).stdout.split() for what, how in look.items()
    }
    return found | {"programs": [str(pid) for pid in cgroups.processes()]}


def test_down_leaves_nothing_and_the_next_up_completes_what_was_cut_off(own_cluster: None, stack: DevStack, tmp_path: Path) -> None:
    """An `up` of another checkout that was killed does not stand in the way, and an `up` of this one that was interrupted is completed."""
    local(stack, "down")
    left = machine()
    assert left["namespaces"] == []
    assert left["programs"] == []
    assert left["mounts"] == []
    assert not [link for link in left["links"] if link.startswith(("slipway", "slw"))]
    assert not [table for table in left["tables"] if "slipway" in table]
    shutil.copytree(ROOT / "local", tmp_path / "local")
    cut_off(tmp_path, signal.SIGKILL)
    assert cgroups.kill() == []
    said = cut_off(ROOT, signal.SIGINT) + local(stack, "up")
    assert str(tmp_path) in said
    assert not any(str(tmp_path) in mount for mount in machine()["mounts"])
    local(stack, "prepare")
    stack.slipway("up")
    stack.wait_until_open()
    job = stack.submit("#!/bin/bash\ntrue\n")
    stack.wait_for_job(job)


def test_all_that_is_killed_at_once_gives_way_to_another_checkout(own_cluster: None, stack: DevStack, tmp_path: Path) -> None:
    """A cluster with pods, and no process of it is left to put anything away: `up` of a fresh checkout, and again of this one."""
    local(stack, "prepare")
    shutil.copytree(ROOT / "local", tmp_path / "local")
    assert cgroups.kill() == []
    other = subprocess.run([sys.executable, "-m", "local", "up"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert other.returncode == 0, other.stdout + other.stderr
    assert f"Leftovers: of {ROOT}" in other.stdout
    assert cgroups.kill() == []
    assert f"Leftovers: of {tmp_path}" in local(stack, "up")
    local(stack, "down")
    assert machine()["namespaces"] == []
    local(stack, "prepare")
    stack.slipway("up")
    stack.wait_until_open()


def cut_off(checkout: Path, by: signal.Signals) -> str:
    """`local up` that ends in the middle of its work; what it said until then."""
    up = subprocess.Popen([sys.executable, "-m", "local", "up"], cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert up.stdout is not None
    said: list[str] = []

    def third_step() -> bool:
        said.append(up.stdout.readline() if up.stdout else "")
        return "Network" in said[-1]

    eventually("the third step", third_step, 60, every_s=0)
    up.send_signal(by)
    up.wait(60)
    return "".join(said)
