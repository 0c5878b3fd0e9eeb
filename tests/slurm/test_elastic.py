"""Elastic node sets in Slurm itself: who is put off and who stays, jobs that wake nodes, workers that come and go, and files that wait
until what they take away is free. Real slurmctld and slurmd; Kubernetes and the NodeSet controller are left to tests/cluster.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import patience, seconds
from tests.support.slurm.elastic_cluster import NAMES, TIMES, ElasticCluster, elastic_stack
from tests.support.slurm.image_cluster import STOP
from tests.support.slurm.image_pods import Machine, PodError, wait_for
from tests.support.slurm.image_stack import ALICE, SLURM

FOLDER = Path("/var/tmp/slipway-elastic-pods")
PREFIX = "swel-"
SCRIPTS = "/opt/slipway/scripts"


@pytest.fixture(scope="module")
def running(image_root: Path) -> Iterator[ElasticCluster]:
    """slurmctld and its sidecar; no worker yet."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    cluster = ElasticCluster(machine, stack=elastic_stack(), names=NAMES)
    try:
        cluster.prepare()
        for pod in NAMES:
            cluster.munged(pod)
        cluster.slurmctld()
        cluster.reconfigure()
        cluster.taken()
        yield cluster
    finally:
        machine.keep_logs()
        machine.close()


@pytest.fixture
def cluster(running: ElasticCluster) -> ElasticCluster:
    """The cluster without a job, with the files of the start, the fixed nodes up."""
    running.slurm("scancel", f"--user={ALICE}")
    wait_for("an empty queue", lambda: not running.slurm("squeue", "--noheader"))
    for node in ("fix-0", "fix-1"):
        if "DRAIN" in running.state(node):
            running.slurm("scontrol", "update", f"NodeName={node}", "State=UNDRAIN")
    if running.changed:
        running.configure(elastic_stack())
        running.changed = False
    running.taken()
    running.up("fix-0", "fix-1")
    return running


def test_idle_elastic_nodes_are_put_off_and_all_others_stay(cluster: ElasticCluster) -> None:
    """Also where one partition has fixed and elastic sets, and after a reconfigure."""
    cluster.up("el-0", "el-1", "el-2")
    cluster.configure(elastic_stack(partitions=("mix", "main")), times={**TIMES, "SuspendTime": "3"})
    wait_for("nodes that are put off", lambda: "POWER" in cluster.state("el-1") and "POWER" in cluster.state("el-2"))
    cluster.slurm("scontrol", "reconfigure")
    wait_for("el-2 off", lambda: cluster.state("el-2") == "IDLE+CLOUD+POWERED_DOWN")
    assert [cluster.state(node) for node in ("fix-0", "fix-1", "el-0")] == ["IDLE+CLOUD"] * 3


def test_job_wakes_its_nodes_and_runs_as_soon_as_they_are_up(cluster: ElasticCluster) -> None:
    """slurmctld itself looks every 30 s only. And no new worker takes the job that waits for it for one that its predecessor lost."""
    cluster.off("el-2", "el-3")
    job = cluster.submit("--partition=burst", "--nodes=2", "--nodelist=el-[2-3]")
    for node in ("el-2", "el-3"):
        wait_for(f"{node} to be asked for", lambda node=node: "POWERING_UP" in cluster.state(node))
    cluster.worker("el-2")
    cluster.worker("el-3")
    wait_for("both nodes", lambda: "POWER" not in cluster.state("el-2") + cluster.state("el-3"))
    wait_for("the job", lambda: cluster.job(job) == "RUNNING", deadline_s=5)
    assert cluster.job(job, "Restarts") == "0"


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("asked", id="as-they-begin-to-power-down"),
        pytest.param("gone", id="as-their-pods-are-gone"),
        pytest.param("released", id="as-they-are-released"),
    ],
)
def test_job_for_nodes_on_their_way_down_starts_once_their_pods_are_gone(cluster: ElasticCluster, moment: str) -> None:
    """RESUME, sent when the pods are gone, ends the wait for SuspendTimeout; without it the job waits 62 to 94 s."""
    suspend_s = seconds(60)  # as it is rendered: Slurm by itself wakes no node sooner after it has begun to power it down
    cluster.configure(elastic_stack(), times={**TIMES, "SuspendTimeout": str(suspend_s)})
    cluster.taken()
    nodes = "el-2", "el-3"
    cluster.up(*nodes)
    job, began = "", 0.0

    def submit(now: str) -> None:
        nonlocal job, began
        if now == moment:
            job, began = cluster.submit("--partition=burst", "--nodes=2", "--nodelist=el-[2-3]"), time.monotonic()

    cluster.slurm("scontrol", "update", "NodeName=el-[2-3]", "State=POWER_DOWN")
    for node in nodes:
        wait_for(f"{node} on its way down", lambda node=node: cluster.state(node) == "IDLE+CLOUD+POWERING_DOWN")
    submit("asked")
    for node in nodes:
        cluster.remove(node)
    submit("gone")
    cluster.slurm("scontrol", "update", "NodeName=el-[2-3]", "State=RESUME")
    submit("released")
    for node in nodes:
        wait_for(f"{node} to be asked for", lambda node=node: "POWERING_UP" in cluster.state(node), deadline_s=20)
        cluster.worker(node)
    wait_for("the job", lambda: cluster.job(job) == "RUNNING", deadline_s=30)
    assert time.monotonic() - began < 0.75 * suspend_s, "as long as without RESUME"
    assert cluster.job(job, "Restarts") == "0"


def test_release_that_comes_late_is_refused_and_harms_no_job(cluster: ElasticCluster) -> None:
    """Slurm may have woken the node between the controller's reading and its word."""
    cluster.off("el-2")
    release = ("scontrol", "update", "NodeName=el-2", "State=RESUME")
    job = ""
    for state in ("IDLE+CLOUD+POWERED_DOWN", "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", "MIXED+CLOUD"):
        wait_for(state, lambda state=state: cluster.state("el-2") == state, deadline_s=40)
        with pytest.raises(PodError, match="Invalid node state transition"):
            cluster.slurm(*release)
        assert cluster.state("el-2") == state
        if "POWERED_DOWN" in state:
            job = cluster.submit("--partition=burst", "--nodelist=el-2")
        elif "POWERING_UP" in state:
            cluster.worker("el-2")
    wait_for("the job", lambda: cluster.job(job) == "RUNNING", deadline_s=40)
    assert cluster.job(job, "Restarts") == "0"


def test_job_that_waits_for_a_node_outlives_a_reconfigure_and_a_restart(cluster: ElasticCluster) -> None:
    cluster.off("el-2")
    job = cluster.submit("--partition=burst", "--nodelist=el-2")
    wait_for("el-2 to be asked for", lambda: "POWERING_UP" in cluster.state("el-2"))
    cluster.slurm("scontrol", "reconfigure")
    cluster.containers["t-slurmctld-0/slurmctld"].stop()
    cluster.slurmctld()
    wait_for("slurmctld", lambda: "POWERING_UP" in cluster.state("el-2"))
    cluster.worker("el-2")
    wait_for("the job", lambda: cluster.job(job) == "RUNNING", deadline_s=60)
    assert cluster.job(job, "Restarts") == "0"


@pytest.mark.parametrize(
    ("nodes", "waits"),
    [
        pytest.param("fix-0", False, id="fixed"),
        pytest.param("fix-[0-1]", False, id="fixed-range"),
        pytest.param("xel-0,el-x-0,el,fix-[0,1]", False, id="names-alike"),
        pytest.param("el-1", True, id="elastic"),
        pytest.param("el-[0,2-3]", True, id="elastic-range"),
        pytest.param("fix-0,el-1", True, id="both"),
    ],
)
def test_prolog_holds_jobs_of_elastic_sets_only(cluster: ElasticCluster, nodes: str, waits: bool) -> None:
    controller = cluster.containers["t-slurmctld-0/slurmctld"]
    trace = controller.run("bash", "-x", f"{SCRIPTS}/prolog-slurmctld.sh", user=SLURM, env={"SLURM_JOB_NODELIST": nodes})
    assert ("scontrol show hostnames" in trace) == waits


def test_prolog_of_a_fixed_set_takes_under_5_ms(cluster: ElasticCluster) -> None:
    times = 'for n in {1..50}; do b=$EPOCHREALTIME; "$0"; e=$EPOCHREALTIME; echo $((${e/./} - ${b/./})); done'
    controller = cluster.containers["t-slurmctld-0/slurmctld"]
    said = controller.run("bash", "-c", times, f"{SCRIPTS}/prolog-slurmctld.sh", user=SLURM, env={"SLURM_JOB_NODELIST": "fix-[0-1]"})
    took_us = sorted(map(int, said.split()))
    assert took_us[0] < 5_000 * patience(), took_us


def test_prolog_gives_up_without_failing_the_job(cluster: ElasticCluster) -> None:
    cluster.configure(elastic_stack(), times={**TIMES, "ResumeTimeout": "2"})
    cluster.taken()
    controller = cluster.containers["t-slurmctld-0/slurmctld"]
    controller.run("pkill", "--signal", "STOP", "^slurmctld", user=SLURM)
    try:
        controller.run(f"{SCRIPTS}/prolog-slurmctld.sh", user=SLURM, env={"SLURM_JOB_NODELIST": "el-3"}, timeout_s=15)
    finally:
        controller.run("pkill", "--signal", "CONT", "^slurmctld", user=SLURM)


def test_stopping_worker_of_a_powered_down_node_leaves_at_once_undrained(cluster: ElasticCluster) -> None:
    cluster.up("el-1")
    worker = cluster.containers["el-1/slurmd"]
    cluster.slurm("scontrol", "update", "NodeName=el-1", "State=POWER_DOWN")
    for states in (("POWERING_DOWN", "POWERED_DOWN"), ("POWERED_DOWN",)):  # the first lasts a few seconds, and may be missed
        wait_for(states[0], lambda states=states: any(each in cluster.state("el-1") for each in states))
        worker.run(*STOP, timeout_s=60)
    assert "DRAIN" not in cluster.state("el-1")
    assert worker.log.count("Slurm has powered el-1 down") == 2


def test_stopping_worker_of_a_busy_elastic_node_waits_for_its_job(cluster: ElasticCluster) -> None:
    cluster.up("el-1")
    job = cluster.submit("--partition=burst", "--nodelist=el-1", seconds=15)
    wait_for("a running job", lambda: cluster.job(job) == "RUNNING")
    cluster.containers["el-1/slurmd"].run(*STOP, timeout_s=60)
    assert cluster.job(job) == "COMPLETED"
    assert "DRAIN" in cluster.state("el-1")


@pytest.mark.parametrize(
    ("reason", "is_lifted"),
    [
        pytest.param("slipway: pod stopping", True, id="worker"),
        pytest.param("slipway: nodeset update", True, id="update"),
        pytest.param("slipway: nodeset scale-in", True, id="scale-in"),
        pytest.param("slipway: check gpu: 3 of 4", False, id="health-check"),
        pytest.param("slipway: nodesets are fun", False, id="words-alike"),
        pytest.param("not slipway: pod stopping", False, id="other-beginning"),
        pytest.param("bad fan [rack 3] see #7", False, id="administrator"),
    ],
)
def test_new_worker_lifts_drains_of_its_own_kind_only(cluster: ElasticCluster, reason: str, is_lifted: bool) -> None:
    cluster.slurm("scontrol", "update", "NodeName=fix-1", "State=DRAIN", f"Reason={reason}")
    worker = cluster.worker("fix-1")
    wait_for("slurmd", lambda: "slurmd started" in worker.log)
    wait_for("its answer", lambda: "NOT_RESPONDING" not in cluster.state("fix-1"))
    assert ("DRAIN" in cluster.state("fix-1"), f"Reason={reason} [" in cluster.node("fix-1")) == (not is_lifted, not is_lifted)


def test_drain_of_an_administrator_keeps_its_reason_when_a_node_is_woken(cluster: ElasticCluster) -> None:
    """Slurm keeps the drain and clears the reason when a powered-down node registers."""
    cluster.off("el-1")
    cluster.slurm("scontrol", "update", "NodeName=el-1", "Comment=once State=DOWN [x] Reason=other [y]")
    cluster.slurm("scontrol", "update", "NodeName=el-1", "State=DRAIN", "Reason=bad fan [rack 3] see #7")
    worker = cluster.worker("el-1")
    wait_for("the reason again", lambda: "wrote it back" in worker.log)
    assert cluster.state("el-1") == "IDLE+CLOUD+DRAIN"
    assert "Reason=bad fan [rack 3] see #7 [" in cluster.node("el-1")
    cluster.slurm("scontrol", "update", "NodeName=el-1", "State=UNDRAIN")


def test_job_whose_worker_was_replaced_is_requeued_at_once(cluster: ElasticCluster) -> None:
    cluster.up("el-1")
    job = cluster.running("--partition=burst", "--nodelist=el-1")
    cluster.containers.pop("el-1/slurmd").stop("KILL")
    cluster.worker("el-1")
    wait_for("a requeued job", lambda: cluster.job(job, "Restarts") == "1")
    wait_for("the node", lambda: cluster.state("el-1") == "IDLE+CLOUD")


def test_worker_that_slurm_asked_for_too_late_registers_again(cluster: ElasticCluster) -> None:
    """slurmctld takes no registration of a boot before its request, and the worker of a node that was put off may still be there."""
    cluster.up("el-1")
    cluster.slurm("scontrol", "update", "NodeName=el-1", "State=POWER_DOWN")
    wait_for("el-1 off", lambda: "POWERED_DOWN" in cluster.state("el-1"))
    job = cluster.submit("--partition=burst", "--nodelist=el-1")
    wait_for("the job", lambda: cluster.job(job) == "RUNNING", deadline_s=75)
    assert cluster.job(job, "Restarts") == "0"


def test_node_with_a_job_stays_until_it_is_free_even_through_a_restart(cluster: ElasticCluster) -> None:
    cluster.slurm("scontrol", "update", "NodeName=fix-1", "Comment=once State=IDLE+DRAIN [x] Reason=none")
    job = cluster.running("--partition=main", "--nodelist=fix-1")
    cluster.configure(elastic_stack(fixed=1))
    wait_for("a word", lambda: "wait for: node fix-1 (MIXED+CLOUD)" in cluster.said())
    cluster.containers["t-slurmctld-0/slurmctld"].stop()
    cluster.slurmctld()
    wait_for("slurmctld", lambda: cluster.job(job) == "RUNNING")
    cluster.slurm("scontrol", "update", "NodeName=fix-1", "State=DRAIN", "Reason=bad fan")
    wait_for("a word", lambda: "wait for: node fix-1 (MIXED+CLOUD+DRAIN)" in cluster.said())
    cluster.slurm("scancel", job)
    cluster.taken()
    assert cluster.state("fix-1") == ""
    assert cluster.job(job) == "CANCELLED"


def test_idle_node_stays_until_it_is_drained(cluster: ElasticCluster) -> None:
    cluster.configure(elastic_stack(fixed=1))
    wait_for("a word", lambda: "wait for: node fix-1 (IDLE+CLOUD)" in cluster.said())
    cluster.slurm("scontrol", "update", "NodeName=fix-1", "State=DRAIN", "Reason=slipway: nodeset scale-in")
    cluster.taken()
    assert (cluster.state("fix-0"), cluster.state("fix-1")) == ("IDLE+CLOUD", "")


def test_node_that_is_off_goes_at_once_and_comes_back_fresh(cluster: ElasticCluster) -> None:
    cluster.off("el-3")
    cluster.configure(elastic_stack(most=3))
    cluster.taken()
    assert cluster.state("el-3") == ""
    cluster.configure(elastic_stack())
    cluster.taken()
    assert cluster.state("el-3") == "IDLE+CLOUD+POWERED_DOWN"


def test_node_that_a_waiting_job_asks_for_by_name_stays(cluster: ElasticCluster) -> None:
    cluster.off("el-3")
    job = cluster.submit("--partition=burst", "--nodelist=el-3", "--hold")
    cluster.configure(elastic_stack(most=3))
    wait_for("a word", lambda: "wait for: jobs that ask for el-3 by name" in cluster.said())
    assert cluster.job(job) == "PENDING"
    assert cluster.state("el-3") == "IDLE+CLOUD+POWERED_DOWN"
    cluster.slurm("scancel", job)
    cluster.taken()


def test_partition_with_jobs_takes_no_more_and_goes_when_they_have_ended(cluster: ElasticCluster) -> None:
    running = cluster.running("--partition=mix", "--nodelist=fix-1", "--cpus-per-task=2")
    waiting = cluster.submit("--partition=mix", "--nodelist=fix-1", "--cpus-per-task=2", seconds=1)
    both = cluster.submit("--partition=mix,main", "--hold")
    cluster.configure(elastic_stack(partitions=("main", "burst")))
    wait_for("a word", lambda: f"wait for: jobs {waiting}, {running} of partitions mix" in cluster.said())
    with pytest.raises(PodError, match="Batch job submission failed"):
        cluster.submit("--partition=mix")
    assert cluster.job(running) == "RUNNING"
    cluster.slurm("scancel", running)
    wait_for("the job that waited", lambda: cluster.job(waiting) == "COMPLETED", deadline_s=60)
    cluster.taken()
    assert "mix" not in cluster.slurm("sinfo", "--noheader", "--format=%R")
    assert cluster.job(both) == "PENDING"


def test_newer_files_are_judged_in_place_of_those_that_wait(cluster: ElasticCluster) -> None:
    job = cluster.running("--partition=mix", "--nodelist=fix-1")
    cluster.configure(elastic_stack(fixed=1, partitions=("main", "burst")))
    wait_for("a word", lambda: "wait for: " in cluster.said() and f"jobs {job} of partitions mix" in cluster.said())
    cluster.configure(elastic_stack(), "PartitionName=extra Nodes=fix-[0-1]\n")
    cluster.taken()
    states = dict(line.split() for line in cluster.slurm("sinfo", "--noheader", "--format=%R %a").splitlines())
    assert states == dict.fromkeys(("main", "burst", "mix", "extra"), "up")
    assert cluster.job(job) == "RUNNING"


def test_refused_files_leave_open_what_they_would_have_taken_away(cluster: ElasticCluster) -> None:
    cluster.off("el-3")
    cluster.configure(elastic_stack(most=3, partitions=("main", "burst")), "Bogus=1\n")
    wait_for("a refusal", lambda: "REFUSED" in cluster.said())
    assert re.search(r" State=UP ", cluster.slurm("scontrol", "--oneliner", "show", "partition", "mix"))
    assert cluster.state("el-3") == "IDLE+CLOUD+POWERED_DOWN"
    assert "Bogus" not in cluster.containers["t-slurmctld-0/slurmctld"].run("cat", "/var/spool/slurmctld/conf/slurm.conf", user=SLURM)


def test_files_wait_while_slurmctld_is_silent(cluster: ElasticCluster) -> None:
    controller = cluster.containers["t-slurmctld-0/slurmctld"]
    cluster.off("el-3")
    controller.stop()
    cluster.configure(elastic_stack(most=3))
    wait_for("a word", lambda: "wait for: an answer of slurmctld" in cluster.said(), deadline_s=60)
    cluster.slurmctld()
    cluster.taken()
    assert cluster.state("el-3") == ""


def test_stopped_node_that_outlasts_slurmd_timeout_comes_back(cluster: ElasticCluster) -> None:
    """slurmctld appends to the reason that the stop hook gave, and sets the node down."""
    cluster.up("fix-1")
    cluster.containers["fix-1/slurmd"].run(*STOP, timeout_s=60)
    cluster.remove("fix-1")

    def is_down() -> bool:  # an answer of the old slurmd that was on its way may bring the node back once
        cluster.slurm("scontrol", "update", "NodeName=fix-1", "State=DOWN", "Reason=slipway: pod stopping : Not responding")
        return cluster.state("fix-1").startswith("DOWN+CLOUD+DRAIN")

    wait_for("the node to be down", is_down)
    worker = cluster.worker("fix-1")
    wait_for("the node", lambda: cluster.state("fix-1") == "IDLE+CLOUD", deadline_s=60)
    wait_for("a word", lambda: "lifted the drain of Slipway's own: slipway: pod stopping : Not responding" in worker.log)


def test_slurm_conf_that_is_empty_is_a_fault_and_closes_nothing(cluster: ElasticCluster) -> None:
    cluster.volume("slurm", {"slurm.conf": ""})
    wait_for("a word", lambda: "wait for: names of nodes and partitions that can be read" in cluster.said())
    states = dict(line.split() for line in cluster.slurm("sinfo", "--noheader", "--format=%R %a").splitlines())
    assert states == dict.fromkeys(("main", "burst", "mix"), "up")
    cluster.configure(elastic_stack())
    cluster.taken()
