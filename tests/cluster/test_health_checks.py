"""Health checks on real nodes: what fails is drained, the NodeSet controller lifts that once all checks pass, and nobody else's node is
touched.

Each check runs once by its CronJob's own Job; the tests of limits run its command in one such pod, which costs no start. The schedules are
suspended meanwhile.
"""

import json
import shlex
import time
from collections.abc import Iterator

import pytest

from tests.support.cluster.checks import (
    ALL_FULL,
    KINDS,
    NIGHTLY,
    OURS,
    by_node,
    causes,
    check,
    cleaned,
    create_job,
    job_of,
    node,
    of_nodes,
    on_demand,
    reservations,
)
from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.patience import patience

FIXTURES = (on_demand, cleaned)

FAILED = '{"slipway":{"disk":{"result":"failed","at":"2026-01-02T03:04:05Z","failure":%s}}}'
FAILURE = '{"since":"2026-01-02T03:04:05Z","found":"/tmp has 3 MiB free, 512 wanted","kind":"node","drains":true}'


def scheduled(stack: DevStack, *kinds: str) -> dict[str, dict[str, dict[str, str]]]:
    """One run of each check at the same time, by the Jobs that their CronJobs would create, to the end: by check, what it said of each
    node."""
    said: dict[str, dict[str, dict[str, str]]] = {}
    for kind in kinds:
        create_job(stack, f"try-{kind}", job_of(stack, kind))
    for kind in kinds:
        stack.wait("--for=condition=complete", f"job/try-{kind}", deadline_s=240)
        said[kind] = by_node(stack.kubectl("logs", f"job/try-{kind}", "--container", "check"))
    stack.kubectl("delete", "job", *(f"try-{kind}" for kind in kinds), "--wait=false")
    return said


def results(said: dict[str, dict[str, dict[str, str]]]) -> dict[str, str]:
    """The result of each line, by its words."""
    return {line["message"]: line["result"] for lines in said.values() for line in lines.values()}


def test_healthy_nodes_pass_all_checks_and_slurm_keeps_the_results(stack: DevStack) -> None:
    """A check has a node for itself, and waits for the others there."""
    said = scheduled(stack, *KINDS)
    assert {*results(said).values()} == {"passed"}, results(said)
    recorded = json.loads(node(stack, "gpu-0")["extra"])["slipway"]
    assert {kind: recorded[kind] for kind in KINDS} == {kind: {"result": "passed", "at": said[kind]["gpu-0"]["at"]} for kind in KINDS}
    assert not any("DRAIN" in state for state in stack.nodes().values())


def test_failed_node_is_drained_with_the_finding_and_lifted_after_a_pass(stack: DevStack) -> None:
    failed = check(stack, "disk", **ALL_FULL)
    assert {(line["result"], line["action"]) for line in failed.values()} == {("failed", "drained")}
    for name, line in failed.items():
        assert "DRAIN" in node(stack, name)["state"]
        assert node(stack, name)["reason"] == OURS + line["found"]
        assert "1000000000 wanted" in line["found"]
    again = check(stack, "disk", minFreeMiB=999_999_999)
    assert {(line["result"], line["action"]) for line in again.values()} == {("failed", "drained")}
    eventually("the reason is what was found last", lambda: "999999999 wanted" in node(stack, "cpu-0")["reason"], 30)
    passed = check(stack, "disk")
    assert {(line["result"], line["action"]) for line in passed.values()} == {("passed", "cleared")}
    assert "slipway-check" not in reservations(stack)
    stack.wait_until_idle()


def test_check_that_fails_on_every_node_drains_its_share_and_no_more(stack: DevStack) -> None:
    said = check(stack, "disk", None, **ALL_FULL)
    assert {line["result"] for line in said.values()} == {"failed"}
    drained = sorted(name for name, state in stack.nodes().items() if "DRAIN" in state)
    assert [name.rpartition("-")[0] for name in drained] == ["cpu", "gpu"], "a tenth of each set, and at least one"
    spared = "not drained: all checks together may hold no more than 1 of its set"
    assert {name for name, line in said.items() if spared in line["found"]} == said.keys() - {*drained}


def test_failure_with_the_wish_none_is_told_and_drains_nothing(stack: DevStack) -> None:
    said = check(stack, "disk", wish="none", **ALL_FULL)
    assert {(line["result"], line["action"]) for line in said.values()} == {("failed", "")}
    eventually("the cause", lambda: causes(stack, "cpu-0").get("check/disk", {}).get("wish") == "none", 30)
    words = ("get", "events", "--field-selector=reason=CheckFailed", "--output=jsonpath={.items[*].note}{.items[*].message}")
    eventually("the event", lambda: "cpu-0 fails health check disk, which does not drain it" in stack.kubectl(*words), 30)
    stack.let_controller_look("cpu")
    assert not any("DRAIN" in state for state in stack.nodes().values())
    check(stack, "disk")
    eventually("its end", lambda: causes(stack, "cpu-0") == {}, 30)


def test_failure_with_wish_none_lifts_an_earlier_drain_of_its_check(stack: DevStack) -> None:
    """As where the wish was changed: the node keeps its failure, and loses its drain."""
    check(stack, "disk", **ALL_FULL)
    assert "DRAIN" in node(stack, "cpu-0")["state"]
    check(stack, "disk", wish="none", **ALL_FULL)
    stack.wait_until_idle()
    eventually("the failure is a cause", lambda: causes(stack, "cpu-0")["check/disk"]["wish"] == "none", 30)


def test_failure_that_asks_for_a_reboot_says_where_nobody_can_meet_that(stack: DevStack) -> None:
    check(stack, "disk", wish="reboot", **ALL_FULL)
    eventually("the wish", lambda: causes(stack, "cpu-0").get("check/disk", {}).get("wish") == "reboot", 30)
    assert causes(stack, "cpu-0")["check/disk"]["next"].startswith("Its wish cannot be met, as the node set has no remedies")
    assert "DRAIN" in node(stack, "cpu-0")["state"]
    check(stack, "disk")
    stack.wait_until_idle()


def test_drain_of_an_administrator_is_untouched(stack: DevStack) -> None:
    stack.slurm("scontrol update NodeName=cpu-0 State=DRAIN Reason='fan is loud'")
    for limits in (ALL_FULL, {}):
        said = check(stack, "disk", **limits)
        assert said["cpu-0"]["result"] == "skipped"
        assert said["cpu-0"]["found"].endswith(": fan is loud")
        assert "DRAIN" in node(stack, "cpu-0")["state"]
        assert node(stack, "cpu-0")["reason"] == "fan is loud"


def test_failure_drains_the_node_once_an_administrator_lifts_their_drain(stack: DevStack) -> None:
    check(stack, "disk", **ALL_FULL)
    found = node(stack, "cpu-0")["reason"]
    stack.slurm("scontrol update NodeName=cpu-0 State=DRAIN Reason='fan is loud'")
    assert check(stack, "disk")["cpu-0"]["found"].endswith(": fan is loud")
    assert node(stack, "cpu-0")["reason"] == "fan is loud"
    stack.slurm("scontrol update NodeName=cpu-0 State=UNDRAIN")
    eventually("the full disk holds it again", lambda: node(stack, "cpu-0")["reason"] == found, 30)
    assert "DRAIN" in node(stack, "cpu-0")["state"]
    eventually("Slurm has heard of it since", lambda: "NOT_RESPONDING" not in node(stack, "cpu-0")["state"], 60)
    assert check(stack, "disk")["cpu-0"]["action"] == "cleared"
    stack.wait_until_idle()


def test_cordon_and_a_failure_hold_a_node_each_on_its_own(stack: DevStack) -> None:
    check(stack, "disk", **ALL_FULL)
    machine = stack.get("pod", "cpu-0")["spec"]["nodeName"]
    stack.kubectl("cordon", machine)
    try:
        check(stack, "disk")
        eventually("the cordon is left", lambda: node(stack, "cpu-0")["reason"] == f"slipway: cordon {machine}", 30)
        eventually("and told", lambda: list(causes(stack, "cpu-0")) == ["cordon"], 30)
    finally:
        stack.kubectl("uncordon", machine)
    stack.wait_until_idle()


def test_check_that_cannot_run_is_unknown_and_drains_nothing(stack: DevStack) -> None:
    said = check(stack, "disk", paths=["/nowhere"])
    assert {(line["result"], line["found"]) for line in said.values()} == {("unknown", "/nowhere: No such file or directory")}
    assert not any("DRAIN" in state for state in stack.nodes().values())


def test_command_of_a_site_runs_where_jobs_do_and_says_what_is_wrong(stack: DevStack) -> None:
    said, broken, mended = (
        check(stack, "disk", runs="command", command=["sh", "-c", f"echo port 3 of $(hostname) is down; exit {code}"]) for code in (1, 2, 0)
    )
    assert {name: line["found"] for name, line in said.items()} == {name: f"port 3 of {name} is down" for name in said}
    assert {(line["result"], line["action"]) for line in said.values()} == {("failed", "drained")}
    assert {(line["result"], line["action"]) for line in broken.values()} == {("unknown", "kept drained")}
    assert {(line["result"], line["action"]) for line in mended.values()} == {("passed", "cleared")}
    stack.wait_until_idle()


def test_command_that_users_could_change_is_not_run_as_slurm(stack: DevStack) -> None:
    mode = stack.ssh("stat -c %a .").strip()
    stack.ssh("cp /bin/true fabric; chmod 755 . fabric")
    said = check(stack, "disk", runs="command", command=["/home/alice/fabric"])
    assert {line["result"] for line in said.values()} == {"unknown"}
    assert all("not run, as /home/alice/fabric belongs to user " in line["found"] for line in said.values()), said
    stack.ssh(f"rm fabric; chmod {mode} .")


def test_folder_that_is_not_mounted_and_process_that_hangs_are_found(stack: DevStack) -> None:
    """The parent of a vfork is in state D until its child has ended."""
    folders = check(stack, "disk", runs="mounts", paths=["/home", "/nowhere"], maxAnswerS=20)
    assert {(line["result"], line["found"]) for line in folders.values()} == {("failed", "/nowhere is not mounted")}
    answering = check(stack, "disk", runs="mounts", paths=["/home"], maxAnswerS=20)
    assert {(line["result"], line["found"]) for line in answering.values()} == {("passed", "1 shared folders answer")}
    stack.wait_until_idle()
    code = "import ctypes, os, time\nif ctypes.CDLL(None).vfork() == 0:\n    time.sleep(3600)\n    os._exit(0)\nos._exit(0)"
    stack.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "sh", "-c", f"python3 -c {shlex.quote(code)} >/dev/null 2>&1 &")
    try:
        hanging = check(stack, "disk", runs="processes", maxStuck=0, stuckS=2)
    finally:
        stack.worker("cpu-0", "pkill -KILL --full '[v]fork'")
    assert {line["found"] for name, line in hanging.items() if name != "cpu-0"} == {"no process hangs in the kernel"}
    assert hanging["cpu-0"]["result"] == "failed"
    assert "in state D for 2 s, 0 allowed" in hanging["cpu-0"]["found"]


def test_unknown_keeps_the_drain_of_a_failure(stack: DevStack) -> None:
    check(stack, "disk", **ALL_FULL)
    reason = node(stack, "cpu-1")["reason"]
    said = check(stack, "disk", paths=["/nowhere"])
    assert (said["cpu-1"]["result"], said["cpu-1"]["action"]) == ("unknown", "kept drained")
    assert node(stack, "cpu-1")["reason"] == reason
    assert "slipway-check" not in reservations(stack)


def test_busy_node_is_skipped_and_its_job_finishes(stack: DevStack) -> None:
    job = stack.hold("--nodelist=cpu-0")
    stack.wait_for_job(job, "RUNNING")
    said = check(stack, "disk", **ALL_FULL)
    assert (said["cpu-0"]["result"], said["cpu-0"]["found"]) == ("skipped", "busy")
    assert (said["cpu-1"]["result"], said["cpu-1"]["action"]) == ("failed", "drained")
    assert not node(stack, "cpu-0")["reason"]
    stack.let_go()
    stack.wait_for_job(job)


def test_what_a_killed_run_left_is_finished_by_the_next(stack: DevStack) -> None:
    """Killed between resuming a failed node and checking it: only the reservation keeps jobs off, and says why."""
    reason = f"{OURS}/tmp has 3 MiB free, 512 wanted"
    stack.slurm(
        "scontrol create reservation ReservationName=slipway-check-cpu-0 Nodes=cpu-0 Users=slurm "
        f"StartTime=now Duration=UNLIMITED Flags=MAINT,IGNORE_JOBS Comment='{OURS}{reason}'"
    )
    stack.slurm(f"scontrol update NodeName=cpu-0 Extra='{FAILED % FAILURE}'")
    waiting = stack.submit("#!/bin/bash\nhostname\n", "--nodelist=cpu-0 --output=waited.out")
    unknown = check(stack, "disk", paths=["/nowhere"])
    assert (unknown["cpu-0"]["result"], unknown["cpu-0"]["action"]) == ("unknown", "kept drained")
    assert node(stack, "cpu-0")["reason"] == reason
    assert stack.job_state(waiting) == "PENDING"
    passed = check(stack, "disk")
    assert (passed["cpu-0"]["result"], passed["cpu-0"]["action"]) == ("passed", "cleared")
    assert "slipway-check" not in reservations(stack)
    stack.wait_for_job(waiting)


def test_check_does_not_wait_behind_the_queue(stack: DevStack) -> None:
    """A job that waits for both nodes is ahead in the queue; the idle one of them is checked all the same."""
    running = stack.hold("--nodelist=cpu-0 --exclusive")
    stack.wait_for_job(running, "RUNNING")
    waiting = stack.submit("#!/bin/bash\ntrue\n", "--nodelist=cpu-0,cpu-1 --nodes=2 --exclusive")
    eventually("the second job waits", lambda: stack.job_state(waiting) == "PENDING", 60)
    assert check(stack, "disk")["cpu-1"]["result"] == "passed"
    stack.let_go()
    stack.wait_for_job(waiting)


@pytest.fixture
def homeless(stack: DevStack) -> Iterator[str]:
    """A node whose /home is gone; it is back at the end."""
    lose_home(stack, "gpu-0")
    yield "gpu-0"
    bring_home(stack, "gpu-0")


def lose_home(stack: DevStack, name: str) -> None:
    stack.kubectl("exec", name, "--", "bash", "-c", "mkdir -p /run/away && mount --move /home /run/away")


def bring_home(stack: DevStack, name: str) -> None:
    stack.kubectl("exec", name, "--", "bash", "-c", "mountpoint -q /home || mount --move /run/away /home")
    stack.look_at(name)


def refused_job(stack: DevStack, homeless: str) -> int | None:
    """A job on all nodes whose prolog found /home missing. None if slurmd's own check, once a minute, found it before the job began."""
    job = stack.submit("#!/bin/bash\ntrue\n", "--nodes=4 --output=/dev/null")
    eventually("the drain", lambda: node(stack, homeless)["reason"] == "slipway: check mounts: /home is not mounted", 30)

    def record() -> str:
        shown = stack.slurm(f"scontrol show job {job}")
        return shown if "JobState=PENDING" in shown else ""

    if "Restarts=1" in eventually("the job waits", record, 30):
        return job
    stack.slurm(f"scancel {job}")
    return None


def test_job_waits_until_a_node_that_fails_its_prolog_check_is_mended(stack: DevStack, homeless: str) -> None:
    while not (job := refused_job(stack, homeless)):
        bring_home(stack, homeless)
        lose_home(stack, homeless)
    assert "DRAIN" in node(stack, homeless)["state"]
    why = "did not start on gpu-0: check mounts: /home is not mounted"
    eventually("the job's record says why", lambda: why in stack.slurm(f"scontrol show job {job}"), 30)
    eventually("the cause", lambda: "check/mounts" in causes(stack, homeless), 30)
    waits = ("PENDING", "BeginTime")
    eventually("it waits", lambda: tuple(stack.slurm(f"squeue --noheader --job={job} --format='%T %r'").split()) == waits, 30)
    bring_home(stack, homeless)
    eventually("nothing holds the node", lambda: "DRAIN" not in node(stack, homeless)["state"], 30)
    stack.slurm(f"scontrol update JobId={job} StartTime=now")  # instead of Slurm's two minutes
    stack.wait_for_job(job)


def test_home_lost_under_a_job_drains_the_node_and_the_job_runs_on(stack: DevStack) -> None:
    """A job that Slurm calls running may still be on its way into its folder, so it says when it is there."""
    stack.ssh("rm -f lost.out")
    job = stack.hold("--nodelist=gpu-1 --output=lost.out", begins="echo here")
    eventually("the job has begun", lambda: "here" in stack.ssh("cat lost.out"), 60)
    lose_home(stack, "gpu-1")
    try:
        stack.kubectl("exec", "gpu-1", "--", "env", "SLURMD_NODENAME=gpu-1", "/run/slurm/conf/slipway-checks.sh")
        eventually("the drain", lambda: node(stack, "gpu-1")["reason"] == "slipway: check mounts: /home is not mounted", 30)
        assert stack.job_state(job) == "RUNNING"
    finally:
        bring_home(stack, "gpu-1")
    eventually("nothing holds the node", lambda: "DRAIN" not in node(stack, "gpu-1")["state"], 30)
    assert stack.job_state(job) == "RUNNING"
    stack.let_go()


def test_network_memory_and_storage_are_measured_for_real(stack: DevStack) -> None:
    """By the Jobs of their CronJobs: MPI between all pairs of nodes, STREAM's Copy, and a file that is written, synced and read. All begin
    at once, and each waits for the others."""
    said = scheduled(stack, *NIGHTLY)
    assert not [line for lines in said.values() for line in lines.values() if line["result"] != "passed"]
    pairs = [name for name in said["mpi"] if "+" in name]
    assert len(pairs) == 6, "a tournament of four nodes tests each link"
    assert all(" MB/s, " in line["found"] for line in said["mpi"].values())
    assert all(line["found"].startswith("memory copies at ") for line in said["stream"].values())
    assert all(line["found"].startswith("/tmp: ") for line in said["storage"].values())


def test_all_reduce_over_the_whole_set_is_one_job(stack: DevStack) -> None:
    passed = check(stack, "mpi", per="set", minBandwidthMBs=1)
    assert not [name for name in passed if "+" in name]
    assert {line["result"] for line in passed.values()} == {"passed"}
    assert all(line["found"].startswith("4 nodes together: ") for line in passed.values()), passed


def test_user_job_preempts_a_check_at_once_and_its_partition_is_hidden(stack: DevStack) -> None:
    assert "slipway-checks" not in stack.ssh("sinfo --noheader --format=%R")
    assert stack.ssh("srun --partition=slipway-checks true 2>&1 || echo refused").strip().endswith("refused")
    spec = json.loads(job_of(stack, "disk")["template"]["spec"]["containers"][0]["command"][-1]) | {"check": "command"}
    for node_set in spec["nodeSets"]:
        node_set["settings"] = {"command": ["sh", "-c", "for _ in $(seq 550); do [ -e /home/alice/go ] && break; sleep 0.1; done"]}
    job = job_of(stack, "disk")
    job["template"]["spec"]["containers"][0]["command"][-1] = json.dumps(spec)
    mode = stack.ssh("rm -f go; stat -c %a .; chmod 711 .").strip()
    create_job(stack, "try-preempted", job)
    running = "squeue --all --noheader --partition=slipway-checks --states=RUNNING --format=%N"
    eventually("the check has all nodes", lambda: len(stack.slurm(running).split()) == 4, 60)
    began = time.monotonic()
    users = stack.submit("#!/bin/bash\ntrue\n", "--nodelist=cpu-0 --output=/dev/null")
    stack.wait_for_job(users, deadline_s=30)
    assert time.monotonic() - began < 30 * patience(), "long before the check would have ended"
    stack.let_go()
    stack.wait("--for=condition=complete", "job/try-preempted", deadline_s=240)
    stack.ssh(f"chmod {mode} .")
    said = by_node(stack.kubectl("logs", "job/try-preempted", "--container", "check"))
    assert (said["cpu-0"]["result"], said["cpu-0"]["found"]) == ("skipped", "a user's job took the node meanwhile")
    assert said["cpu-1"]["result"] == "passed"
    stack.kubectl("delete", "job", "try-preempted", "--wait=false")


def test_check_that_comes_after_another_looks_only_where_that_has_passed(stack: DevStack) -> None:
    check(stack, "disk")
    check(stack, "disk", paths=["/nowhere"], nodes=["gpu"])
    said = check(stack, "stream", after=["disk"])
    assert {name: line["result"] for name, line in said.items()} == {
        "cpu-0": "passed",
        "cpu-1": "passed",
        "gpu-0": "skipped",
        "gpu-1": "skipped",
    }
    assert said["gpu-0"]["found"] == "comes after the check disk, which has not passed here"


def test_budget_of_a_day_is_counted_by_accounting(stack: DevStack) -> None:
    assert {line["result"] for line in check(stack, "stream", budgetNodeMinutes=10_000).values()} == {"passed"}
    used = "sacct --allusers -X -n -P --starttime=now-1day --name=slipway-check-stream --format=ElapsedRaw,NNodes"
    eventually("accounting has a second of the check", lambda: any(int(row.split("|")[0]) for row in stack.slurm(used).split()), 60)
    said = check(stack, "stream", budgetNodeMinutes=0)
    assert {(line["result"], line["found"]) for line in said.values()} == {("skipped", "the 0 node minutes of 24 hours are used up")}


def test_disk_that_fills_drains_its_node_until_it_is_emptied(stack: DevStack) -> None:
    folder = "/var/spool/slipway/tmp"  # where jobs have their /tmp
    stack.worker("gpu-0", f"mount -t tmpfs -o size=64m,mode=755 none {folder}")
    try:
        assert of_nodes(check(stack, "disk", nodes=["gpu"], minFreeMiB=32)) == dict.fromkeys(("gpu-0", "gpu-1"), ("passed", ""))
        stack.worker("gpu-0", f"fallocate --length=48MiB {folder}/full")
        full = check(stack, "disk", nodes=["gpu"], minFreeMiB=32)
        assert of_nodes(full) == {"gpu-0": ("failed", "drained"), "gpu-1": ("passed", "")}
        assert full["gpu-0"]["found"].startswith(f"{folder} has 1")  # less by what the check's own job has there
        assert "DRAIN" in node(stack, "gpu-0")["state"]
        stack.worker("gpu-0", f"rm {folder}/full")
        assert of_nodes(check(stack, "disk", nodes=["gpu"], minFreeMiB=32))["gpu-0"] == ("passed", "cleared")
        eventually("nothing holds the node", lambda: "DRAIN" not in node(stack, "gpu-0")["state"], 30)
    finally:
        stack.worker("gpu-0", f"umount --lazy {folder}")
