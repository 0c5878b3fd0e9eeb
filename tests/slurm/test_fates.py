"""The fate of jobs that a preview tells, against what a real slurmctld does: the queue as its program gives it, and jobs that wait."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from changes.configuration import parse
from changes.jobs import Job, read_queue, stranded
from names import ports
from slurm.tokens import mint
from tests.support.slurm.elastic_cluster import NAMES, ElasticCluster, elastic_stack
from tests.support.slurm.image_pods import Machine, wait_for

FOLDER = Path("/var/tmp/slipway-fates-pods")
GET = """
import sys, urllib.request
print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={"X-SLURM-USER-TOKEN": sys.argv[2]}), timeout=30).read().decode())
"""


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[ElasticCluster]:
    """slurmctld, slurmrestd with the lists of jobs, and one worker."""
    machine = Machine(FOLDER, image_root, "swft-")
    machine.close()
    FOLDER.mkdir(mode=0o755)
    stack = elastic_stack()
    stack["nodeSets"][0]["features"] = ["a", "b"]
    made = ElasticCluster(machine, stack=stack, names={**NAMES, "t-slurmctld-0": ["t-slurmctld"], "t-slurmrestd": [], "fix-0": []})
    try:
        made.start_with_rest()
        yield made
    finally:
        machine.close()
        shutil.rmtree(FOLDER, ignore_errors=True)


def queue(cluster: ElasticCluster, port: int = ports.QUEUE) -> dict[str, Job]:
    """The jobs by number, as a preview reads them."""
    token = mint((cluster.machine.folder / "volume-jwt" / "jwt_hs256.key").read_bytes(), "slurm", time.time(), 60)
    url = f"http://{cluster.machine.addresses['t-slurmrestd']}:{port}/queue/"
    said = cluster.containers["t-slurmctld-0/reconfigure"].run("python3", "-c", GET, url, token)
    return {job.number: job for job in read_queue(json.loads(said))}


def conf(cluster: ElasticCluster) -> str:
    """The slurm.conf that slurmctld has been given."""
    return files(cluster)["slurm.conf"]


def test_queue_tells_what_runs_where_until_when_and_what_waits_for_what(cluster: ElasticCluster) -> None:
    running = cluster.running("--partition=main", "--nodelist=fix-0", "--time=60")
    waiting = cluster.submit("--partition=main", "--nodelist=fix-0", "--hold", "--time=1-2", "--constraint=[a|b]", "--array=3-9")
    try:
        found = queue(cluster)
        assert (found[running].nodes, found[running].user, found[running].is_waiting) == (frozenset({"fix-0"}), "alice", False)
        assert found[running].ends_at == cluster.ends_at(running)
        array = found[f"{waiting}_[3-9]"]
        assert (array.limit_min, array.asks_for, array.features, array.partitions) == (1560, frozenset({"fix-0"}), "[a|b]", ("main",))
        assert (array.nodes, array.ends_at, array.is_waiting) == (frozenset(), None, True)
    finally:
        cluster.slurm("scancel", running, waiting)
    wait_for("an idle node", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=60)


@pytest.mark.parametrize("says", [pytest.param("", id="silent"), pytest.param("GET /queue/ HTTP/1.1\r\n", id="half-a-request")])
@pytest.mark.parametrize("port", [ports.RUNNING_JOBS, ports.QUEUE, ports.CONFIG_SYNC])
def test_lists_and_the_report_are_read_beside_300_connections_of_another(cluster: ElasticCluster, port: int, says: str) -> None:
    """tests/unit/test_listeners.py has more ways to hold every listener; these are the programs as they are deployed."""
    with cluster.machine.held("t-slurmctld-0" if port == ports.CONFIG_SYNC else "t-slurmrestd", port, says):
        if port == ports.CONFIG_SYNC:
            assert cluster.report()["state"] == "live"
        else:
            assert queue(cluster, port) == {}


def test_node_with_other_cores_keeps_its_size_until_drained_and_idle(cluster: ElasticCluster) -> None:
    """Slurm itself would abort the job (docs/explain/slurm-facts.md)."""
    before = conf(cluster)
    job = cluster.running("--partition=main", "--nodelist=fix-0", "--mem=50")
    try:
        cluster.volume("slurm", {**files(cluster), "slurm.conf": smaller(before).replace("KillWait=30", "KillWait=31")})
        cluster.taken()
        assert cluster.report()["held"] == "fix-0"
        assert "1 node keeps its size until no job can be on it: fix-0" in cluster.report()["message"]
        assert "KillWait                = 31 sec" in cluster.slurm("scontrol", "show", "config")
        assert (cluster.job(job), cluster.job(job, "Restarts")) == ("RUNNING", "0")
        assert (cpus(cluster, "fix-0"), cpus(cluster, "fix-1")) == ("2", "1")
        cluster.slurm("scontrol", "update", "NodeName=fix-0", "State=DRAIN", "Reason=smaller")
        cluster.slurm("scancel", job)
        wait_for("a smaller node", lambda: cpus(cluster, "fix-0") == "1", deadline_s=60)
        wait_for("nobody with another size", lambda: not cluster.report()["held"])
        cluster.slurm("scontrol", "update", "NodeName=fix-0", "State=UNDRAIN")
    finally:
        cluster.slurm("scancel", job)
        cluster.slurm("scontrol", "update", "NodeName=fix-0", "State=DRAIN", "Reason=as before")
        cluster.volume("slurm", {**files(cluster), "slurm.conf": before})
        wait_for("the size before", lambda: cpus(cluster, "fix-0") == "2", deadline_s=60)
        cluster.slurm("scontrol", "update", "NodeName=fix-0", "State=UNDRAIN")
    wait_for("an idle node", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=60)


def test_shorter_time_limit_strands_exactly_the_jobs_that_were_foretold(cluster: ElasticCluster) -> None:
    before = conf(cluster)
    line = next(line for line in before.splitlines() if line.startswith("PartitionName=main "))
    maxtime = next(word for word in line.split() if word.startswith("MaxTime="))
    after = before.replace(line, line.replace(maxtime, "MaxTime=30"))
    busy = cluster.running("--partition=main", "--nodelist=fix-0", "--time=45", "--exclusive")
    long, short = (cluster.submit("--partition=main", "--nodelist=fix-0", f"--time={minutes}") for minutes in (40, 20))
    try:
        told = stranded(queue(cluster).values(), parse(before), parse(after))
        assert [(job.number, job.user) for job in told] == [(long, "alice")]
        cluster.volume("slurm", {**files(cluster), "slurm.conf": after})
        wait_for("the reason", lambda: cluster.job(long, "Reason") == "PartitionTimeLimit", deadline_s=120)
        assert cluster.job(short, "Reason") != "PartitionTimeLimit"
        assert cluster.job(busy, "JobState") == "RUNNING"
    finally:
        cluster.slurm("scancel", busy, long, short)
        cluster.volume("slurm", {**files(cluster), "slurm.conf": before})
    wait_for("an idle node", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=60)


def smaller(text: str) -> str:
    """A slurm.conf with one core fewer in each node of `fix`."""
    return re.sub(r"^(NodeName=fix.*) CPUs=2 (.*) CoresPerSocket=2 ", r"\1 CPUs=1 \2 CoresPerSocket=1 ", text, flags=re.MULTILINE)


def cpus(cluster: ElasticCluster, node: str) -> str:
    """How many slurmctld takes the node to have."""
    found = re.search(r" CPUTot=(\d+)", cluster.node(node))
    return found[1] if found else ""


def files(cluster: ElasticCluster) -> dict[str, str]:
    """Slurm's files as they are offered now."""
    return {file.name: file.read_text() for file in (cluster.machine.folder / "volume-slurm").iterdir() if file.is_file()}
