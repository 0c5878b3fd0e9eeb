"""The local cluster itself: repeated, damaged, interrupted and ended, with a stack on it that comes back by the same two verbs."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

from local import cgroups, processes
from tests.cluster.dev_stack import ROOT, STATE, DevStack, eventually


def local(stack: DevStack, verb: str) -> str:
    return stack.run(sys.executable, "-m", "local", verb, timeout_s=600).stdout


def pid_of(program: str) -> int:
    """The process id of a program of the local cluster, by its record."""
    return int((STATE / "processes" / program).read_text().split()[0])


def kill(program: str) -> None:
    """Kills a program of the local cluster behind its back, and returns when it is gone: `up` would take it for running."""
    boot, record = processes.boot_id(), processes.running(STATE / "processes")[program]
    processes.send(record, signal.SIGKILL, boot)
    eventually(f"{program} is gone", lambda: not processes.is_alive(record, boot), 30)


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


def test_second_up_starts_nothing(stack: DevStack) -> None:
    assert "nothing had to be started" in local(stack, "up")


def test_killed_program_of_the_control_plane_is_started_again_by_up_and_jobs_run_on(own_cluster: None, stack: DevStack) -> None:
    job = stack.hold("--nodelist=cpu-0")
    stack.wait_for_job(job, "RUNNING")
    for program in ("kube-scheduler", "kube-apiserver"):
        kill(program)
    local(stack, "up")
    eventually("an answer from the API server", lambda: stack.kubectl("get", "pods"), 60)
    assert stack.job_state(job) == "RUNNING"
    stack.let_go()
    stack.wait_for_job(job)


def test_down_leaves_nothing_behind_and_the_next_up_completes_what_was_cut_off(own_cluster: None, stack: DevStack, tmp_path: Path) -> None:
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
    stack.standalone("up")
    stack.wait_until_open()
    job = stack.submit("#!/bin/bash\ntrue\n")
    stack.wait_for_job(job)


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
