"""A queue of many waiting jobs."""

import asyncio
import resource
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from controllers.slurm.client import SlurmClient
from controllers.slurm.snapshot import Poller
from tests.support.patience import patience
from tests.support.slurm.elastic_cluster import NAMES, ElasticCluster, elastic_stack
from tests.support.slurm.image_pods import Machine, wait_for
from tests.support.slurm.image_stack import ALICE
from tests.support.slurm.rest_client import ask

FOLDER = Path("/var/tmp/slipway-queue-pods")
PREFIX = "swq-"
TASKS = 1_000
READ_S = 8.0
"""Longer than a reading may be old."""


@contextmanager
def queue(image_root: Path, jobs: int) -> Generator[ElasticCluster]:
    """slurmctld, slurmrestd with the list of running jobs, one worker, and that many waiting jobs, a multiple of `TASKS`."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()
    FOLDER.mkdir(mode=0o755)
    stack = elastic_stack()
    stack["slurm"] |= {"maxJobCount": jobs + 10_000}
    names = {"t-slurmctld-0": ["t-slurmctld"], "t-slurmrestd": [], "fix-0": []}
    made = ElasticCluster(machine, stack=stack, names={**NAMES, **names})
    try:
        made.start_with_rest()
        fill(made, jobs)
        yield made
    finally:
        machine.close()
        shutil.rmtree(FOLDER, ignore_errors=True)


def fill(cluster: ElasticCluster, jobs: int) -> None:
    """Queues arrays, and makes a record of its own of each of their tasks, as a change of some of them does."""
    script = ("--output=/dev/null", "--chdir=/tmp", "--wrap=true")
    for _ in range(jobs // TASKS):
        array = cluster.slurm("sbatch", "--parsable", "--partition=burst", "--hold", f"--array=0-{TASKS - 1}", *script, user=ALICE).strip()
        cluster.slurm("scontrol", "update", f"JobId={array}_[0-{TASKS - 2}]", "Name=split")
    wait_for("the queue", lambda: cluster.slurm("squeue", "--noheader").count("\n") >= jobs, deadline_s=120)


def assert_known(cluster: ElasticCluster) -> None:
    """Readings stay fresh and small, and have the job that runs."""
    job = cluster.running("--partition=main", "--nodelist=fix-0", "--time=60")

    async def follow(client: SlurmClient) -> tuple[float, list[str], str]:
        poller = Poller(client, time.monotonic)
        await poller.fresh()
        polling = asyncio.create_task(poller.run())
        oldest, end = 0.0, time.monotonic() + READ_S
        while time.monotonic() < end:
            oldest = max(oldest, poller.age_s())
            await asyncio.sleep(0.05)
        polling.cancel()
        assert poller.snapshot is not None
        return oldest, [one.text for one in poller.snapshot.jobs_by_node.get("fix-0", ())], poller.snapshot.jobs_error

    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    oldest, jobs, error = ask(cluster, follow, prefix=PREFIX)
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1000
    assert (jobs, error) == ([job], "")
    assert oldest < 5 * patience(), "Slurm is called silent after 15 s"
    assert grown_mb < 100, "the controller is to stay below 400 MB"
    status = cluster.containers["t-slurmrestd/slurmrestd"].run("sh", "-c", "grep VmHWM /proc/1/status")
    assert int(status.split()[1]) < 200_000, "slurmrestd never gives memory back"
