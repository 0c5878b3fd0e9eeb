"""Backup and restore of the accounting database and of slurmctld's state, with the real programs: what is lost comes back, what is not empty
stays, and nothing half-done counts."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.database_cluster import DatabaseCluster, running
from tests.slurm.image_cluster import MYSQL
from tests.slurm.image_pods import wait_for

FOLDER = Path("/var/tmp/slipway-database-pods")


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[DatabaseCluster]:
    with running(FOLDER, "swdb-", image_root) as made:
        yield made


@pytest.fixture(autouse=True)
def idle(cluster: DatabaseCluster) -> None:
    wait_for("an idle worker", cluster.ready, deadline_s=90)


def lose_database(cluster: DatabaseCluster) -> None:
    """The volume is gone, and Kubernetes has made a new one; slurmdbd and slurmctld never stopped."""
    cluster.stop("t-mariadb-0/mariadb", signal="KILL")
    shutil.rmtree(FOLDER / "volume-mysql")
    cluster.empty("mysql", MYSQL)


def back_up(cluster: DatabaseCluster) -> str:
    """A backup of the database; gives its name."""
    job = cluster.backup()
    assert cluster.finish(job) == 0, job.log
    return cluster.made("database")[-1].removesuffix(".sql.zst")


def lose_state(cluster: DatabaseCluster) -> None:
    """slurmctld's disk is gone."""
    cluster.stop("t-slurmctld-0/slurmctld", "t-slurmctld-0/reconfigure", signal="KILL")
    shutil.rmtree(FOLDER / "volume-state")
    cluster.empty("state", 64030)


def test_lost_database_is_restored_and_sacct_shows_the_old_jobs(cluster: DatabaseCluster) -> None:
    old = cluster.run_job()
    back_up(cluster)
    lose_database(cluster)
    restore = cluster.database_restore()
    wait_for("the question", lambda: "WAITING: the database is empty, but there are 1 backups" in restore.log)
    cluster.decide("latest")
    assert cluster.finish(restore) == 0
    cluster.mariadb()
    wait_for("the old record", lambda: cluster.accounted(old) == "COMPLETED", deadline_s=90)
    new = cluster.run_job()
    assert cluster.accounted(old) == cluster.accounted(new) == "COMPLETED"
    cluster.decide("")
