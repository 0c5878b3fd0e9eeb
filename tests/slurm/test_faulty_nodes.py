"""Health checks beside jobs on nodes with real faults: a mount that does not answer, a check that hangs itself, and a disk that fills. The
tests are the NodeSet controller: they lift a drain once nothing that is noted holds the node.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm.check_results import CheckResult, failures, read_results
from slurm.prologs import CHECKS
from tests.support.patience import seconds
from tests.support.slurm.checks_cluster import ChecksCluster, running
from tests.support.slurm.image_pods import Container, PodError, wait_for

FOLDER = Path("/var/tmp/slipway-faulty")
NODE = "gpu-1"
CHECK: dict[str, Any] = {"nodeSets": ["gpu"], "contexts": ["interval", "prolog"], "passes": 1}
JOBS_TMP = "/var/spool/slipway/tmp"
SILENT = """
import ctypes, os, signal, struct, sys
path, fuse, system = sys.argv[1].encode(), os.open("/dev/fuse", os.O_RDWR), ctypes.CDLL(None)
if system.mount(b"silent", path, b"fuse", 0, f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other".encode()):
    sys.exit("cannot mount")
def end(*_):
    system.umount2(path, 2)  # MNT_DETACH
    os.unlink("/run/silent.pid")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
while asked := os.read(fuse, 1 << 20):
    _, operation, number = struct.unpack_from("<IIQ", asked)
    if operation == 26:
        answer = struct.pack("<IIIIHHIIHH32x", 7, 31, 4096, 0, 8, 8, 4096, 1, 1, 0)
        os.write(fuse, struct.pack("<IiQ", 16 + len(answer), 0, number) + answer)
        open("/run/silent.pid", "w").write(str(os.getpid()))
"""
"""A file system that answers how it begins (FUSE_INIT, 26) and nothing else. Who has asked it is in state D until this process ends, and no
signal ends that, as with a server that is away."""


@pytest.fixture(scope="module")
def started(image_root: Path) -> Iterator[ChecksCluster]:
    with running(FOLDER, "swflt-", image_root) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: ChecksCluster) -> Iterator[ChecksCluster]:
    """As each test starts: no fault, nothing noted, no drain."""
    yield started
    speak(started)
    started.cancel_all()
    started.slurm("scontrol", "update", f"NodeName={NODE}", "Extra={}")
    started.slurm("scontrol", "update", f"NodeName={NODE}", "State=RESUME", check=False)
    started.idle()


def worker(cluster: ChecksCluster) -> Container:
    return cluster.containers[f"{NODE}/slurmd"]


def declare(cluster: ChecksCluster, name: str, **more: Any) -> None:
    """This one check, once the node has it. slurmd itself looks before jobs only, so that each look is one that the test knows of."""
    cluster.declare({**CHECK, "name": name, "check": name, **more}, HealthCheckInterval="3600")
    rendered = (cluster.path("slurm")[0] / CHECKS).read_text().strip()
    wait_for("the check", lambda: worker(cluster).run("bash", "-c", f"cat /run/slurm/conf/{CHECKS} || true").strip() == rendered, 60)
    cluster.forget(NODE)
    cluster.idle()


def silence(cluster: ChecksCluster, path: str) -> None:
    """Lays a file system that does not answer over a folder of the node."""
    begin = '[[ -e /dev/fuse ]] || mknod /dev/fuse c 10 229; rm -f /run/silent.pid; mkdir -p "$1"'
    worker(cluster).run("bash", "-c", begin, "-", path)
    worker(cluster).run("bash", "-c", 'setsid python3 -c "$1" "$2" </dev/null >/run/silent.log 2>&1 &', "-", SILENT, path)
    wait_for("the silent file system", lambda: worker(cluster).run("bash", "-c", "cat /run/silent.pid || true").strip().isdigit())


def speak(cluster: ChecksCluster) -> None:
    """Takes it away again, where there is one: whoever waits for it gets an error."""
    worker(cluster).run("bash", "-c", '[[ ! -e /run/silent.pid ]] || kill "$(cat /run/silent.pid)"')
    wait_for("no silent file system", lambda: worker(cluster).run("bash", "-c", "ls /run/silent.pid 2>/dev/null || true") == "")


def look(cluster: ChecksCluster) -> None:
    """What slurmd does every minute."""
    worker(cluster).run("env", f"SLURMD_NODENAME={NODE}", f"/run/slurm/conf/{CHECKS}", timeout_s=60)


def noted(cluster: ChecksCluster) -> dict[str, CheckResult]:
    return read_results(cluster.node(NODE)["extra"]) or {}


def hostname(cluster: ChecksCluster) -> str:
    """What a user's job on the node prints, or Slurm about it."""
    return cluster.alice("srun", "--chdir=/tmp", f"--nodelist={NODE}", "hostname")


def lift(cluster: ChecksCluster) -> None:
    """Lifts the drain as the NodeSet controller does: once no check says that the node fails."""
    assert failures(noted(cluster)) == {}
    cluster.slurm("scontrol", "update", f"NodeName={NODE}", "State=RESUME")
    cluster.idle()


def test_hanging_mount_drains_its_node_by_the_deadline_until_it_answers(cluster: ChecksCluster) -> None:
    limit_s = seconds(2)
    declare(cluster, "mounts", timeoutS=60 + limit_s, settings={"maxAnswerS": limit_s})
    assert hostname(cluster) == NODE
    silence(cluster, "/home")
    found = f"/home does not answer within {limit_s} s"
    assert f"did not start on {NODE}: check mounts: {found}" in hostname(cluster)
    node = cluster.node(NODE)
    assert "DRAIN" in node["state"]
    assert node["reason"] == f"slipway: check mounts: {found}"
    look(cluster)
    assert noted(cluster)["mounts"].result == "failed"
    speak(cluster)
    look(cluster)
    lift(cluster)
    assert hostname(cluster) == NODE


def test_check_that_hangs_is_unknown_ends_its_runner_and_drains_nothing(cluster: ChecksCluster) -> None:
    limit_s = seconds(2)
    declare(cluster, "disk", timeoutS=limit_s)
    silence(cluster, JOBS_TMP)
    look(cluster)
    assert noted(cluster)["disk"].result == "unknown"
    assert f"check disk unknown: did not end within {limit_s} s" in cluster.containers["t-slurmctld-0/checks"].log
    assert "DRAIN" not in cluster.node(NODE)["state"]
    speak(cluster)
    look(cluster)
    assert noted(cluster)["disk"].result == "passed"


@pytest.fixture
def small_disk(cluster: ChecksCluster) -> Iterator[str]:
    """64 MiB for the /tmp of all jobs of the node."""
    worker(cluster).run("mkdir", "-p", JOBS_TMP)
    worker(cluster).run("mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "none", JOBS_TMP)
    yield JOBS_TMP
    cluster.cancel_all()
    wait_for("the end of all jobs' files", lambda: gone(cluster), 60)


def gone(cluster: ChecksCluster) -> bool:
    """True once the disk is unmounted."""
    try:
        worker(cluster).run("umount", JOBS_TMP)
    except PodError:  # a job's files are still being removed
        return False
    return True


def test_full_disk_drains_its_node_until_it_is_emptied(cluster: ChecksCluster, small_disk: str) -> None:
    declare(cluster, "disk", settings={"minFreeMiB": 32})
    assert hostname(cluster) == NODE
    worker(cluster).run("fallocate", "--length=48MiB", f"{small_disk}/full")
    found = f"{small_disk} has 16 MiB free, 32 wanted"
    said = hostname(cluster)
    assert f"did not start on {NODE}: check disk: {found}" in said
    assert cluster.node(NODE)["reason"] == f"slipway: check disk: {found}"
    assert cluster.alice("srun", "--chdir=/tmp", "hostname") == "gpu-0"
    worker(cluster).run("rm", f"{small_disk}/full")
    look(cluster)
    lift(cluster)
    assert hostname(cluster) == NODE
