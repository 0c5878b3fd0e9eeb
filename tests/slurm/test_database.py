"""Backup and restore of the accounting database and of slurmctld's state, and the database's purges and archives, with the real programs
and jobs: what is lost comes back, what is not empty stays, and nothing half-done counts."""

import base64
import contextlib
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.support.cluster.guides import commands
from tests.support.patience import seconds
from tests.support.slurm.database_cluster import UNTIL_TOLD, DatabaseCluster, running
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_stack import MYSQL, SLURM

FOLDER = Path("/var/tmp/slipway-database-pods")
SQL = ("mariadb", "--no-defaults", "--socket=/run/mysqld/mysqld.sock", "--user=mysql")
ACCOUNTING = (*SQL, "slurm_acct_db")
ENDING = {"database": ".sql.zst", "state": ".tar.zst"}


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[DatabaseCluster]:
    with running(FOLDER, "swdb-", image_root) as made:
        yield made


@pytest.fixture(autouse=True)
def idle(cluster: DatabaseCluster) -> None:
    cluster.make_idle()


def lose_database(cluster: DatabaseCluster) -> None:
    """The volume is gone, and Kubernetes has made a new one; slurmdbd and slurmctld never stopped."""
    cluster.stop("t-mariadb-0/mariadb", signal="KILL")
    shutil.rmtree(FOLDER / "volume-mysql")
    cluster.empty("mysql", MYSQL)


def lose_state(cluster: DatabaseCluster) -> None:
    """slurmctld's disk is gone, and with it its pod; the workers and their jobs never stopped."""
    cluster.stop("t-slurmctld-0/slurmctld", "t-slurmctld-0/reconfigure", signal="KILL")
    shutil.rmtree(FOLDER / "volume-state")
    cluster.empty("state", SLURM)


def back_up(cluster: DatabaseCluster) -> str:
    """A backup of the database; gives its name."""
    job = cluster.backup()
    code, log = cluster.finish(job)
    assert code == 0, log
    return cluster.made("database")[-1].removesuffix(ENDING["database"])


@contextlib.contextmanager
def locked_tables(cluster: DatabaseCluster) -> Generator[None]:
    """While this holds, a dump cannot come to its end."""
    server = cluster.containers["t-mariadb-0/mariadb"]
    command = [*cluster.machine.runc, "exec", "--user", f"{MYSQL}:{MYSQL}", server.id, *ACCOUNTING]
    session = subprocess.Popen([*command, "--execute", "LOCK TABLES txn_table WRITE; SELECT SLEEP(300)"], stdout=subprocess.DEVNULL)
    ask = ["--skip-column-names", "--execute", "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"]
    sleeping = wait_for("the lock", lambda: server.run(*ACCOUNTING, *ask, user=MYSQL).strip())
    try:
        yield
    finally:
        server.run(*ACCOUNTING, "--execute", f"KILL {sleeping}", user=MYSQL)
        session.wait(seconds(30))


def test_lost_database_is_restored_and_sacct_shows_the_old_jobs(cluster: DatabaseCluster) -> None:
    old = cluster.run_job()
    name = back_up(cluster)
    lose_database(cluster)
    restore = cluster.database_restore()
    asked = f"WAITING: the database is empty, but there are 1 backups, the newest {name}"
    wait_for("the question", lambda: asked in restore.log)
    cluster.decide("latest")
    code, log = cluster.finish(restore)
    assert (code, f"restored {name}" in log) == (0, True)
    cluster.mariadb()
    wait_for("the old record", lambda: cluster.accounted(old) == "COMPLETED", deadline_s=90)
    new = cluster.run_job()
    assert [cluster.accounted(job) for job in (old, new)] == ["COMPLETED", "COMPLETED"]


def test_script_and_comment_of_a_job_are_kept_by_default(cluster: DatabaseCluster) -> None:
    job = cluster.submit("echo what-was-run", "--wait", "--comment=for-the-paper")
    wait_for("its record", lambda: cluster.accounted(job) == "COMPLETED", deadline_s=60)
    assert "echo what-was-run" in cluster.slurm("sacct", "--batch-script", "--jobs", job)
    assert "for-the-paper" in cluster.slurm("sacct", "--noheader", "--allocations", "--parsable2", "--jobs", job, "--format", "comment")


def test_database_with_records_is_never_touched(cluster: DatabaseCluster) -> None:
    job = cluster.run_job()
    cluster.decide("latest")
    code, log = cluster.finish(cluster.database_restore())
    assert (code, "the data folder is there; nothing to restore" in log) == (0, True)
    assert cluster.accounted(job) == "COMPLETED"


def test_restore_that_is_killed_begins_anew(cluster: DatabaseCluster) -> None:
    old = cluster.run_job()
    backup = cluster.backups / "database" / f"{back_up(cluster)}{ENDING['database']}"
    whole = backup.read_bytes()
    # An import that comes to its end only when it is killed.
    held = cluster.containers["t-mariadb-0/mariadb"].run("bash", "-c", "zstd --quiet <<< 'DO SLEEP(600);' | base64", user=MYSQL)
    backup.write_bytes(base64.b64decode(held) + whole)
    lose_database(cluster)
    cluster.decide("latest")
    half = cluster.database_restore()
    wait_for("the import", lambda: "restoring /backup" in half.log, deadline_s=60)
    half.stop("KILL")
    backup.write_bytes(whole)
    assert not (FOLDER / "volume-mysql/data").exists()
    assert (FOLDER / "volume-mysql/data.partial").exists()
    code, log = cluster.finish(cluster.database_restore())
    assert code == 0, log
    cluster.mariadb()
    wait_for("the old record", lambda: cluster.accounted(old) == "COMPLETED", deadline_s=90)


def test_damaged_backup_is_named_and_leaves_nothing_behind(cluster: DatabaseCluster) -> None:
    old = cluster.run_job()
    good = back_up(cluster)
    soon = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(time.time() + 200))  # the newest, and not yet of the future
    damaged = cluster.backups / "database" / f"{soon}.sql.zst"
    whole = (cluster.backups / "database" / f"{good}.sql.zst").read_bytes()
    damaged.write_bytes(whole[:-40])
    shutil.chown(damaged, MYSQL, MYSQL)
    lose_database(cluster)
    cluster.decide("latest")
    code, log = cluster.finish(cluster.database_restore())
    assert (code != 0, f"FAILED: {damaged.name}" in log.replace("/backup/t/database/", "")) == (True, True), log
    assert not (FOLDER / "volume-mysql/data").exists()
    cluster.decide(good)
    code, log = cluster.finish(cluster.database_restore())
    damaged.unlink()
    assert (code, f"restored {good}" in log) == (0, True)
    cluster.mariadb()
    wait_for("the old record", lambda: cluster.accounted(old) == "COMPLETED", deadline_s=90)


def test_backup_from_the_future_stops_no_other_and_is_never_restored(cluster: DatabaseCluster) -> None:
    old = cluster.run_job()
    first = back_up(cluster)
    wait_for("another second, as it is a backup's name", lambda: time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime()) > first)
    future = cluster.backups / "database" / "2999-01-01T00-00-00Z.sql.zst"
    future.write_bytes(b"not even a dump")
    shutil.chown(future, MYSQL, MYSQL)
    code, log = cluster.finish(cluster.backup())
    assert (code, f"dated in the future, by a clock that was wrong: {future.name.partition('.')[0]}" in log) == (1, True), log
    newest = cluster.made("database")[-2].removesuffix(ENDING["database"])
    assert newest > first
    lose_database(cluster)
    cluster.decide("latest")
    code, log = cluster.finish(cluster.database_restore())
    future.unlink()
    assert (code, f"restored {newest}" in log) == (0, True), log
    cluster.mariadb()
    wait_for("the old record", lambda: cluster.accounted(old) == "COMPLETED", deadline_s=90)


def test_killed_backup_leaves_older_ones_and_the_next_one_is_whole(cluster: DatabaseCluster) -> None:
    back_up(cluster)
    before = cluster.made("database")
    folder = cluster.backups / "database"
    with locked_tables(cluster):
        job = cluster.backup()
        wait_for("a dump under way", lambda: [*folder.glob(".partial-*")])
        job.stop("KILL")
    assert cluster.made("database") == before
    back_up(cluster)
    assert [*folder.glob(".partial-*")] == []


def test_second_backup_waits_for_no_first_one(cluster: DatabaseCluster) -> None:
    with locked_tables(cluster):
        first = cluster.backup()
        wait_for("a dump under way", lambda: [*(cluster.backups / "database").glob(".partial-*")])
        code, log = cluster.finish(cluster.backup(pod="t-other"))
        assert (code, "another backup" in log) == (1, True)
    assert cluster.finish(first)[0] == 0


def test_full_volume_fails_the_backup_and_leaves_the_older_ones(cluster: DatabaseCluster) -> None:
    with small_volume(cluster, "database", MYSQL) as folder:
        (folder / "2020-01-01T00-00-00Z.sql.zst").write_bytes(b"old")
        fill(folder)
        code, log = cluster.finish(cluster.backup())
        assert (code, "FAILED: the dump of slurm_acct_db" in log) == (1, True), log
        assert sorted(each.name for each in folder.glob("[!f]*")) == [".lock", "2020-01-01T00-00-00Z.sql.zst"]


def test_backup_of_an_empty_database_takes_no_good_ones_place(cluster: DatabaseCluster) -> None:
    back_up(cluster)
    before = cluster.made("database")
    server = cluster.containers["t-mariadb-0/mariadb"]
    server.run(*SQL, "--execute", "CREATE DATABASE fresh; GRANT ALL ON fresh.* TO 'slurm'@'%'", user=MYSQL)
    code, log = cluster.finish(cluster.backup(SLIPWAY_MARIADB_DATABASE="fresh"))
    server.run(*SQL, "--execute", "DROP DATABASE fresh", user=MYSQL)
    assert (code, "has no tables; the older backups stay" in log) == (1, True), log
    assert cluster.made("database") == before


def test_backup_fails_when_the_state_of_slurmctld_was_not_copied_for_long(cluster: DatabaseCluster) -> None:
    for each in (cluster.backups / "state").glob("2*"):
        each.unlink()
    code, log = cluster.finish(cluster.backup(SLIPWAY_STATE_BACKUP_S="60"))
    assert (code, "slurmctld's state has no backup younger than 180 s" in log) == (1, True), log
    assert cluster.made("database")


def test_only_the_newest_backups_stay(cluster: DatabaseCluster) -> None:
    for year in range(2010, 2015):
        old = cluster.backups / "database" / f"{year}-01-01T00-00-00Z.sql.zst"
        old.touch()
    newest = back_up(cluster)
    assert len(cluster.made("database")) == cluster.keep
    assert cluster.made("database")[-1].startswith(newest)


def execute(cluster: DatabaseCluster, *statements: str) -> None:
    """Changes the accounting database by hand."""
    for statement in statements:
        cluster.containers["t-mariadb-0/mariadb"].run(*ACCOUNTING, "--execute", statement, user=MYSQL)


def make_old(cluster: DatabaseCluster, job: str, days: int) -> None:
    """The job ran so many days earlier."""
    jobs, steps = (
        ", ".join(f"time_{what} = time_{what} - {days} * 86400" for what in times)
        for times in (("submit", "eligible", "start", "end"), ("start", "end"))
    )
    execute(
        cluster,
        f"UPDATE t_step_table SET {steps} WHERE job_db_inx IN (SELECT job_db_inx FROM t_job_table WHERE id_job = {job})",
        f"UPDATE t_job_table SET {jobs} WHERE id_job = {job}",
    )


def start_with_a_purge(cluster: DatabaseCluster) -> None:
    """slurmdbd, which does not run, comes back as after two hours: what it does at the start of each is due."""
    due = ", ".join(["UNIX_TIMESTAMP() - 7200"] * 3)
    into = "t_last_ran_table (hourly_rollup, daily_rollup, monthly_rollup)"
    execute(cluster, "DELETE FROM t_last_ran_table", f"INSERT INTO {into} VALUES ({due})")
    cluster.slurmdbd()


def as_the_guide_says(cluster: DatabaseCluster, part: str, **words: str) -> str:
    """Runs the one command of docs/operate/accounting.md with this in it, in slurmdbd's container; `words` replace placeholders."""
    (command,) = (each for each in commands("docs/operate/accounting.md") if part in each)
    where, _, inside = command.partition(" -- ")
    assert where == "kubectl -n slurm exec dev-slurmdbd-0 -c slurmdbd"
    for word, meant in {"dev": "t", **words}.items():
        inside = re.sub(rf"\b{word}\b", meant, inside)
    return cluster.containers["t-slurmdbd-0/slurmdbd"].run(*shlex.split(inside), user=SLURM)


def test_old_jobs_are_archived_and_restored_by_the_guides_command(cluster: DatabaseCluster) -> None:
    old, new = cluster.run_job(), cluster.run_job()
    whole = [f"{old}{step}|COMPLETED" for step in ("", ".batch", ".extern")]
    wait_for("its steps", lambda: cluster.accounted_steps(old) == whole)
    for each in cluster.archived:
        each.unlink()
    cluster.stop("t-slurmdbd-0/slurmdbd")
    make_old(cluster, old, days=3)
    start_with_a_purge(cluster)
    wait_for("the purge", lambda: cluster.accounted_steps(old) == [] and len(cluster.archived) == 3, deadline_s=90)
    assert cluster.accounted(new) == "COMPLETED"
    files = as_the_guide_says(cluster, "ls /archive").split()
    assert [re.sub(r"_archive_.*", "", file) for file in files] == ["t_job_script_table", "t_job_table", "t_step_table"]
    for file in files:
        as_the_guide_says(cluster, "archive load", FILE=file)
    assert cluster.accounted_steps(old) == whole
    shown = cluster.slurm("sacct", "--noheader", "--allocations", "--parsable2", "--jobs", old, "--format", "user,jobname,elapsedraw")
    assert shown.startswith("alice|wrap|")
    cluster.stop("t-slurmdbd-0/slurmdbd")
    start_with_a_purge(cluster)
    wait_for("the next purge", lambda: cluster.accounted_steps(old) == [] and len(cluster.archived) == 2 * len(files), deadline_s=90)
    assert cluster.accounted(new) == "COMPLETED"


def test_lost_state_is_restored_with_its_waiting_and_running_jobs(cluster: DatabaseCluster) -> None:
    runs = cluster.submit(UNTIL_TOLD, "--job-name=runs")
    waits = cluster.submit("true", "--job-name=waits", f"--dependency=afterok:{runs}")
    wait_for("the job's step", lambda: "bash" in cluster.slurm("squeue", "--steps", "--noheader", "--format", "%j", "--jobs", runs))
    saved = time.time()
    cluster.slurm("scontrol", "update", f"JobId={waits}", "Comment=seen")
    wait_for("saved state", lambda: cluster.saved_at() > saved)
    sidecar = cluster.state_backup()
    wait_for("a copy", lambda: cluster.made("state"))
    cluster.stop("t-slurmctld-0/state-backup")
    lose_state(cluster)
    cluster.decide("")
    restore = cluster.state_restore()
    wait_for("the question", lambda: "WAITING: slurmctld's disk is empty" in restore.log)
    cluster.decide("latest")
    code, log = cluster.finish(restore)
    assert (code, "restored 2" in log) == (0, True), log
    code, log = cluster.finish(cluster.state_restore())
    assert (code, "nothing to restore" in log) == (0, True), log
    cluster.slurmctld()
    cluster.reconfigure()
    wait_for("its jobs", lambda: (cluster.state(runs), cluster.state(waits)) == ("RUNNING", "PENDING"), deadline_s=60)
    cluster.tell(runs)
    wait_for("the waiting job's end", lambda: cluster.state(waits) == "COMPLETED", deadline_s=200)
    wait_for("their records", lambda: cluster.accounted(runs) == cluster.accounted(waits) == "COMPLETED", deadline_s=60)
    assert "FAILED" not in sidecar.log


def test_full_volume_leaves_older_copies_of_the_state_and_says_so(cluster: DatabaseCluster) -> None:
    with small_volume(cluster, "state", SLURM) as folder:
        old = folder / "2020-01-01T00-00-00Z.tar.zst"
        old.write_bytes(b"old")
        fill(folder)
        sidecar = cluster.state_backup()
        wait_for("a loud word", lambda: "FAILED: no backup of slurmctld's state" in sidecar.log)
        assert sidecar.process.poll() is None
        cluster.stop("t-slurmctld-0/state-backup")
        assert sorted(each.name for each in folder.glob("2*")) == [old.name]


@contextlib.contextmanager
def small_volume(cluster: DatabaseCluster, kind: str, owner: int) -> Generator[Path]:
    """A tiny file system in the place of a folder of backups."""
    folder = cluster.backups / kind
    options = f"size=64k,uid={owner},gid={owner},mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leaves no room but for names."""
    with (folder / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
