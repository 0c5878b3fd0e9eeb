"""Health checks on real workers: what slurmd runs beside users' jobs, as HealthCheckProgram, Prolog and Epilog, and what becomes of it; and
the end of a check that is a job.

The faults are a simulated GPU whose device file is gone, and a line in the machine's own kernel log.
"""

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from names import paths
from slurm.check_results import read_results
from slurm.instances import read_instance
from slurm.prologs import CHECKS
from tests.support.patience import seconds
from tests.support.slurm.checks_cluster import NODES, ChecksCluster, often, running
from tests.support.slurm.image_pods import PodError, wait_for
from tests.support.slurm.image_stack import ALICE, SLURM

CLASSES = {"nvme": "nvme", "network": "infiniband"}
GPU = {"name": "gpu", "check": "gpu", "nodeSets": ["gpu"], "maxDrained": 1}
AGE_S = 10
"""So old a line of the kernel's log may be: a job starts sooner after it."""
KERNEL = {"name": "kernel", "check": "kernel", "nodeSets": ["gpu"], "contexts": ["prolog"]}
NOTHING = [{"name": name, "check": name, "nodeSets": ["gpu"], "contexts": ["prolog"]} for name in ("nvme", "network")]


QUOTED = 'rack "7 B", row 2'
SEND = """
import json, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
from socket import create_connection

def send(report):
    sealed = subprocess.run(["munge"], input=json.dumps(report), capture_output=True, text=True, check=True).stdout
    connection = create_connection(("t-slurmctld", 6823))
    connection.sendall(sealed.encode())
    return connection.makefile().readline()

with ThreadPoolExecutor(8) as pool:
    print("".join(pool.map(send, json.loads(sys.argv[1]))), end="")
"""
"""Sends reports at once, as root of a node; prints the answers."""
WRITE = """
import json, sys
from programs.node_checks.slurm import Slurm
from programs.node_checks.updates import Update

updates = [Update(tuple(nodes), extra, drain) for nodes, extra, drain in json.loads(sys.argv[1])]
print(json.dumps({node: str(error) for node, error in Slurm().write(updates).items()}))
"""
"""Writes updates as the collector does; prints what Slurm refuses."""


@pytest.fixture(scope="module")
def started(image_root: Path) -> Iterator[ChecksCluster]:
    with running(Path("/var/tmp/slipway-checks"), "swchk-", image_root) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: ChecksCluster) -> Iterator[ChecksCluster]:
    """As each test starts: no check, no drain, nothing noted, all GPUs."""
    yield started
    started.reset()


def declared(cluster: ChecksCluster, *contexts: str, nodes: Sequence[str] = NODES) -> None:
    """The check of GPUs in these contexts, once these nodes run it."""
    cluster.declare({**GPU, "contexts": list(contexts)}, **often())
    cluster.all_have_files()
    for node in nodes:
        cluster.forget(node)  # a look of the last test may have ended after its teardown
        wait_for(f"a first look of {node}", lambda: cluster.has_looked(node), 60)  # noqa: B023 - called at once
    cluster.idle()


def test_prolog_failure_on_a_second_node_requeues_the_job_and_is_recorded(
    cluster: ChecksCluster,
) -> None:
    declared(cluster, "prolog")
    cluster.lose_gpu("gpu-1")
    job = cluster.batch("--nodes=2", script="srun hostname")
    wait_for("the drain", lambda: "DRAIN" in cluster.node("gpu-1")["state"])
    found = "3 GPU devices, 4 declared"
    assert cluster.node("gpu-1")["reason"] == f"slipway: check gpu: {found}"
    wait_for("the job in the queue", lambda: (now := cluster.job(job))["restart_cnt"] == 1 and now["job_state"] == ["PENDING"])
    assert cluster.job(job)["hold"] is False
    assert cluster.comment(job) == f"did not start on gpu-1: check gpu: {found}"
    noted = cluster.noted("gpu-1")
    assert noted is not None
    assert noted.failure is not None
    assert (noted.failure.found, noted.failure.kind, noted.failure.drains) == (found, "hardware", True)
    assert cluster.node("gpu-0")["state"] == ["IDLE", "CLOUD"]


def test_srun_whose_prolog_fails_says_why_and_the_next_one_runs_elsewhere(cluster: ChecksCluster) -> None:
    declared(cluster, "prolog")
    cluster.lose_gpu("gpu-0")
    said = cluster.alice("srun", "--chdir=/tmp", "hostname")
    assert "did not start on gpu-0: check gpu: 3 GPU devices, 4 declared" in said
    assert "Prolog failure on node gpu-0" in said
    assert cluster.alice("srun", "--chdir=/tmp", "hostname") == "gpu-1"


def test_jobs_still_start_once_the_check_holds_its_maximum_of_nodes(cluster: ChecksCluster) -> None:
    declared(cluster, "prolog")
    for node in NODES:
        cluster.lose_gpu(node)
    cluster.alice("srun", "--chdir=/tmp", "--nodelist=gpu-0", "hostname")
    assert "DRAIN" in cluster.node("gpu-0")["state"]
    assert cluster.alice("srun", "--chdir=/tmp", "hostname") == "gpu-1"
    assert "DRAIN" not in cluster.node("gpu-1")["state"]
    noted = cluster.noted("gpu-1")
    assert noted is not None
    assert noted.failure is not None
    assert not noted.failure.drains


def test_gpu_lost_under_a_job_and_its_return_are_noted_within_an_interval(cluster: ChecksCluster) -> None:
    declared(cluster, "interval")
    job = cluster.batch("--nodelist=gpu-1", script="sleep 3000")
    wait_for("the job", lambda: cluster.job(job)["job_state"] == ["RUNNING"])
    wait_for("a pass", lambda: (noted := cluster.noted("gpu-1")) is not None and noted.result == "passed")
    cluster.lose_gpu("gpu-1")
    wait_for("the failure", lambda: (noted := cluster.noted("gpu-1")) is not None and noted.failure is not None)
    noted = cluster.noted("gpu-1")
    assert noted is not None
    assert noted.failure is not None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (read_instance(noted.failure.machine), noted.failure.seen) == (("machine-of-gpu-1", boot), noted.at)
    cluster.find_gpu("gpu-1")
    wait_for("the pass", lambda: (noted := cluster.noted("gpu-1")) is not None and noted.failure is None)
    assert cluster.job(job)["job_state"] == ["RUNNING"]


def test_kernel_log_of_a_broken_gpu_drains_but_a_jobs_own_xid_does_not(cluster: ChecksCluster) -> None:
    """All on this machine see the line, so nothing else that runs here may have this check. The container has the device as workers have:
    they are privileged."""
    worker = cluster.containers["gpu-1/slurmd"]
    worker.run("bash", "-c", "[[ -e /dev/kmsg ]] || mknod /dev/kmsg c 1 11")
    cluster.declare({**KERNEL, "settings": {"maxAgeS": seconds(AGE_S)}})
    wait_for("a first look", lambda: cluster.has_looked("gpu-1"), 60)
    cluster.idle()
    xid = "NVRM: Xid (PCI:0000:3f:00): %s, pid=4711, name=python3, %s"
    worker.run("bash", "-c", 'printf "$1\\n" 31 "MMU Fault" > /dev/kmsg', "-", xid)
    assert cluster.alice("srun", "--chdir=/tmp", "--nodelist=gpu-1", "hostname") == "gpu-1"
    worker.run("bash", "-c", 'printf "$1\\n" 79 "GPU has fallen off the bus." > /dev/kmsg', "-", xid)
    said = cluster.alice("srun", "--chdir=/tmp", "--nodelist=gpu-1", "hostname")
    found = "GPU 0000:3f:00: Xid 79 (GPU has fallen off the bus)"
    assert f"did not start on gpu-1: check kernel: {found}" in said
    node = cluster.node("gpu-1")
    assert "DRAIN" in node["state"]
    assert node["reason"] == f"slipway: check kernel: {found}"
    failure = (read_results(node["extra"]) or {})["kernel"].failure
    assert failure is not None
    assert (failure.found, failure.kind, failure.drains) == (found, "hardware", True)


def test_checks_of_absent_hardware_are_skipped_and_drain_nothing(cluster: ChecksCluster) -> None:
    cluster.declare(*NOTHING)
    wait_for("a first look", lambda: cluster.has_looked("gpu-1"), 60)
    expected = {name: "skipped" for name, folder in CLASSES.items() if not any(Path("/sys/class", folder).glob("*"))}
    noted = {name: each.result for name, each in (read_results(cluster.node("gpu-1")["extra"]) or {}).items() if name in expected}
    assert noted == expected
    assert "DRAIN" not in cluster.node("gpu-1")["state"]


def test_check_that_flaps_drains_its_node_once(cluster: ChecksCluster) -> None:
    cluster.declare({**GPU, "contexts": ["interval"]}, HealthCheckInterval="3600")  # slurmd itself does not look meanwhile
    script = f"/run/slurm/conf/{CHECKS}"
    worker = cluster.containers["gpu-1/slurmd"]
    rendered = (cluster.path("slurm")[0] / CHECKS).read_text().strip()
    # slurmd keeps the script of the test before until it has the new one.
    wait_for("the checks", lambda: worker.run("bash", "-c", f"cat {script} || true").strip() == rendered, 60)

    def look() -> str | None:
        """What slurmd does every minute; since when the node fails after that."""
        worker.run("env", "SLURMD_NODENAME=gpu-1", script)
        return cluster.failure_since("gpu-1")

    began: list[str | None] = []
    for _ in range(3):
        cluster.lose_gpu("gpu-1")
        began.append(look())
        cluster.find_gpu("gpu-1")
        began.append(look())
    assert began[0] is not None
    assert began == [began[0]] * 6
    assert look() == began[0]
    assert look() is None, "three passes in a row end it"


def test_epilog_notes_a_failure_and_lets_the_job_end(cluster: ChecksCluster) -> None:
    declared(cluster, "epilog")
    job = cluster.batch("--nodelist=gpu-1", script="sleep 3000")
    wait_for("the job", lambda: cluster.job(job)["job_state"] == ["RUNNING"])
    cluster.lose_gpu("gpu-1")
    cluster.slurm("scancel", job)
    wait_for("the failure", lambda: (noted := cluster.noted("gpu-1")) is not None and noted.failure is not None)
    wait_for("the node free of the job", lambda: cluster.node("gpu-1")["state"] == ["IDLE", "CLOUD"])


def test_job_starts_where_nobody_takes_what_the_prolog_has_found(cluster: ChecksCluster) -> None:
    declared(cluster, "prolog")
    cluster.lose_gpu("gpu-1")
    cluster.containers["t-slurmctld-0/checks"].stop("KILL")
    try:
        assert cluster.alice("srun", "--chdir=/tmp", "--nodelist=gpu-1", "hostname") == "gpu-1"
    finally:
        cluster.collect()
    cluster.idle()


def failed(node: str, found: str) -> dict[str, Any]:
    """A report of a node."""
    result = {"check": "gpu", "result": "failed", "found": found, "kind": "hardware", "maxDrained": 2}
    return {"node": node, "context": "prolog", "job": "", "results": [result]}


def test_reports_with_texts_of_their_own_are_noted_and_drained_together(cluster: ChecksCluster) -> None:
    """One of the texts fits into no line of scontrol: somebody else keeps quotes there."""
    cluster.slurm("scontrol", "update", "NodeName=gpu-1", f"Extra={json.dumps({'mine': QUOTED})}")
    reports = [failed(node, f"{at} of 4 GPUs are gone") for at, node in enumerate(NODES, 1)]
    said = cluster.containers["gpu-0/slurmd"].run("python3", "-c", SEND, json.dumps(reports))
    assert [json.loads(line)["refused"] for line in said.splitlines()] == [["gpu"]] * 2
    for at, node in enumerate(NODES, 1):
        assert cluster.node(node)["reason"] == f"slipway: check gpu: {at} of 4 GPUs are gone"
        noted = cluster.noted(node)
        assert noted is not None
        assert noted.failure is not None
        assert noted.failure.found == f"{at} of 4 GPUs are gone"
    assert json.loads(cluster.node("gpu-1")["extra"])["mine"] == QUOTED


def test_line_that_slurm_refuses_loses_no_other_line_of_its_round(cluster: ChecksCluster) -> None:
    extras = {node: json.dumps({"text": f"of {node} alone"}, separators=(",", ":")) for node in ("gpu-0", "gone-7", "gpu-1")}
    updates = [[[node], extra, None] for node, extra in extras.items()]
    updates += [[["gpu-0", "gone-7", "gpu-1"], None, "slipway: check gpu: 3 GPU devices, 4 declared"]]
    env = {"SLURM_CONF": "/etc/slurm/slurm.conf", "PYTHONPATH": paths.PACKAGES}
    said = cluster.containers["t-slurmctld-0/checks"].run("python3", "-c", WRITE, json.dumps(updates), user=SLURM, env=env)
    refused = json.loads(said)
    assert refused.keys() == {"gone-7"}
    assert "Invalid node name specified" in refused["gone-7"]
    for node in NODES:
        assert cluster.node(node)["extra"] == extras[node]
        assert cluster.node(node)["reason"] == "slipway: check gpu: 3 GPU devices, 4 declared"


def test_anyone_may_ask_whether_reports_are_noted(cluster: ChecksCluster) -> None:
    ask = (
        "from socket import create_connection; connection = create_connection(('t-slurmctld', 6823)); "
        "connection.sendall(b'status\\n'); print(connection.makefile().readline())"
    )
    assert json.loads(cluster.alice("python3", "-c", ask)) == {"notes": True}


def test_user_cannot_report_for_a_node(cluster: ChecksCluster) -> None:
    report: dict[str, Any] = {"node": "gpu-1", "context": "interval", "job": "", "results": []}
    ask = (
        "import json, socket, subprocess, sys; "
        "sealed = subprocess.run(['munge'], input=sys.argv[1], capture_output=True, text=True, check=True).stdout; "
        "connection = socket.create_connection(('t-slurmctld', 6823)); connection.sendall(sealed.encode()); "
        "print(connection.makefile().readline())"
    )
    said = cluster.alice("python3", "-c", ask, json.dumps(report))
    assert json.loads(said) == {"error": f"sealed by user {ALICE}, not by root of a node"}


def test_credential_is_taken_once(cluster: ChecksCluster) -> None:
    ask = (
        "import socket, subprocess\n"
        "sealed = subprocess.run(['munge'], input='{}', capture_output=True, text=True, check=True).stdout\n"
        "for _ in range(2):\n"
        "    connection = socket.create_connection(('t-slurmctld', 6823)); connection.sendall(sealed.encode())\n"
        "    print(connection.makefile().readline().strip())\n"
    )
    first, second = cluster.containers["gpu-0/slurmd"].run("python3", "-c", ask).splitlines()
    assert "no report" in first
    assert json.loads(second) == {"error": "Replayed credential"}


def test_jobs_run_on_a_worker_from_before_the_checks(cluster: ChecksCluster) -> None:
    """slurmctld sends the script to workers whose pods do not have its program yet."""
    old = cluster.containers["gpu-1/slurmd"]
    program = "/opt/slipway/programs/node_checks"
    old.run("mount", "-t", "tmpfs", "-o", "mode=755", "none", program)
    try:
        declared(cluster, "prolog", "interval", nodes=NODES[:1])
        cluster.lose_gpu("gpu-1")
        assert cluster.alice("srun", "--chdir=/tmp", "--nodelist=gpu-1", "hostname") == "gpu-1"
    finally:
        old.run("umount", program)
    with pytest.raises(PodError):
        old.run("test", "-e", "/run/slurm/slipway-checks.json")


def test_check_that_sigterm_ends_leaves_no_job_no_reservation_and_no_news(cluster: ChecksCluster) -> None:
    """One node is idle; the other one failed, and is looked at again in a reservation."""
    found = cluster.check_as_job("fans", "sh", "-c", "[ $(hostname) = gpu-0 ] || { echo fan 3; exit 1; }")
    assert found.ended() == 0
    found.stop()
    before = cluster.node("gpu-1")
    assert (before["reason"], "DRAIN" in before["state"]) == ("slipway: check fans: fan 3", True)

    run = cluster.check_as_job("fans", "sleep", str(seconds(50)))
    jobs = ("squeue", "--noheader", "--all", "--name=slipway-check-fans", "--states=RUNNING", "--format=%N")
    wait_for("a job on each node", lambda: sorted(cluster.slurm(*jobs).split()) == list(NODES), 60)
    assert "slipway-check-gpu-1" in cluster.slurm("scontrol", "show", "reservation")
    assert run.stop("TERM", timeout_s=25) == 128 + signal.SIGTERM
    wait_for("the end of the jobs", lambda: cluster.slurm(*jobs) == "", 10)
    assert "slipway-check" not in cluster.slurm("scontrol", "show", "reservation")
    after = cluster.node("gpu-1")
    assert (after["reason"], after["extra"], "DRAIN" in after["state"]) == (before["reason"], before["extra"], True)
    wait_for("no job", lambda: cluster.slurm("sinfo", "--noheader", "--Node", "--format=%N %T") == "gpu-0 idle\ngpu-1 drained", 30)
