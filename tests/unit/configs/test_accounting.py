"""Accounting, backups and keys in a stack file: what slurmdbd is told, and mistakes, each one fault at its place."""

# ruff: noqa: E501 - a table reads best with a row on a line

from typing import Any

import pytest

from configs.render.slurm import render_slurmdbd
from tests.support.configs.stacks import GONE, cluster
from tests.unit.configs.found_faults import faults

EXTERNAL = {"host": "db.example", "passwordSecret": "acct"}
VOLUME = {"nfs": {"server": "10.0.0.5", "path": "/archive"}}
ACCOUNTING = "cluster.accounting"


def external(**more: Any) -> dict[str, Any]:
    return {"accounting": {"external": {**EXTERNAL, **more}}}


def archive(*records: str, purge: dict[str, str] | None = None) -> dict[str, Any]:
    return {"accounting": {"purge": purge or {}, "archive": {"records": [*records], "volume": VOLUME}}}


def backup(**more: Any) -> dict[str, Any]:
    return {"backup": {"volume": VOLUME, **more}}


FAULTS = [
    pytest.param({"accounting.external": EXTERNAL}, f"{ACCOUNTING}.storage", "Keep one of storage and external", id="two-databases"),
    pytest.param(external(host="localhost"), f"{ACCOUNTING}.external.host", "slurmdbd's own pod", id="database-on-loopback"),
    pytest.param(external(host="a b"), f"{ACCOUNTING}.external.host", "is not a host name", id="database-without-a-name"),
    pytest.param(external(tls=False, caSecret="ca"), f"{ACCOUNTING}.external.caSecret", "is for TLS, and tls is false", id="certificate-without-tls"),
    pytest.param(external(port=70000), f"{ACCOUNTING}.external.port", "more than 65535", id="port-too-high"),
    pytest.param(external(database="a-b"), f"{ACCOUNTING}.external.database", "is not a database's name", id="database-that-needs-quotes"),
    pytest.param({"accounting": {"external": {"host": "db"}}}, f"{ACCOUNTING}.external.passwordSecret", "is missing", id="no-password"),
    pytest.param({"accounting": {"purge": {"jobs": "12"}}}, f"{ACCOUNTING}.purge.jobs", "12months, 30days or 48hours", id="age-without-unit"),
    pytest.param({"accounting": {"purge": {"jobs": "2weeks"}}}, f"{ACCOUNTING}.purge.jobs", "12months, 30days or 48hours", id="unknown-unit"),
    pytest.param({"accounting": {"purge": {"jobs": "0days"}}}, f"{ACCOUNTING}.purge.jobs", "is not an age", id="no-age"),
    pytest.param({"accounting": {"purge": {"job": "1month"}}}, f"{ACCOUNTING}.purge.job", 'Did you mean "jobs"?', id="unknown-record"),
    pytest.param(archive("steps", purge={"jobs": "1month"}), f"{ACCOUNTING}.archive.records[0]", "never purged, so nothing is archived", id="archived-but-never-purged"),
    pytest.param(archive("jobs", "jobs", purge={"jobs": "1month"}), f"{ACCOUNTING}.archive.records[1]", "is listed twice", id="archived-twice"),
    pytest.param(archive(purge={"jobs": "1month"}), f"{ACCOUNTING}.archive.records", "is empty; at least one", id="archive-of-nothing"),
    pytest.param({"accounting": {"purge": {"jobs": "1month"}, "archive": {"records": ["jobs"], "volume": {}}}}, f"{ACCOUNTING}.archive.volume", "has no source", id="archive-without-a-place"),
    pytest.param(backup(schedule="daily"), "cluster.backup.schedule", "five fields", id="schedule-in-a-word"),
    pytest.param(backup(keep=0), "cluster.backup.keep", "0 is less than 1", id="no-backup-stays"),
    pytest.param(backup(stateIntervalS=5), "cluster.backup.stateIntervalS", "5 is less than 10", id="copies-without-pause"),
    pytest.param(backup(restoreFrom="yesterday"), "cluster.backup.restoreFrom", "latest, nothing, or a time", id="restore-in-words"),
    pytest.param(backup(volume={}), "cluster.backup.volume", "has no source", id="backups-without-a-place"),
    pytest.param(backup(volume={"hostPath": "/var/lib/slipway/dev/home"}), "cluster.backup.volume", "same place as cluster.storage.home", id="backups-among-homes"),
    pytest.param({"keys": {"munge": 0}}, "cluster.keys.munge", "0 is less than 1", id="generation-zero"),
    pytest.param({"keys": {"database": 2}, "accounting": {"enabled": False}}, "cluster.keys.database", "no database while accounting.enabled is false", id="password-of-no-database"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "path", "part"), FAULTS)
def test_mistake_is_one_fault_at_its_place(edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("dev", edits)
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]


def test_host_path_keeps_no_backups_of_a_protected_cluster() -> None:
    found = faults("h100", {"backup": {"volume": {"hostPath": "/srv/backup"}}})
    assert [each for each, _ in found] == ["cluster.backup.volume.hostPath"]


@pytest.mark.parametrize(
    ("edits", "wanted"),
    [
        pytest.param({}, ["StorageHost=dev-mariadb", "StorageUser=slurm", "StorageLoc=slurm_acct_db"], id="own"),
        pytest.param(
            external(port=3307, database="acct", user="slurm-dev", caSecret="ca"),
            ["StorageHost=db.example", "StoragePort=3307", "StorageUser=slurm-dev", "StorageLoc=acct", "StorageParameters=SSL_CA=/etc/slipway/mariadb-ca/ca.crt"],
            id="external",
        ),
        pytest.param(external(), ["StorageParameters=SSL_CA=/etc/ssl/certs/ca-certificates.crt"], id="external-with-a-public-certificate"),
        pytest.param(
            {"accounting": {"purge": {"jobs": "12months", "jobScript": "1month", "txn": "30days", "resvs": "48hours", "usage": "24months"}}},
            ["PurgeJobAfter=12months", "PurgeJobScriptAfter=1month", "PurgeTXNAfter=30days", "PurgeResvAfter=48hours", "PurgeUsageAfter=24months"],
            id="purges",
        ),
        pytest.param(
            archive("jobs", "jobScript", purge={"jobs": "1month"}),
            ["ArchiveDir=/archive/dev", "ArchiveJobs=yes", "ArchiveJobScript=yes", "ArchiveJobEnv=no", "ArchiveSteps=no", "ArchiveTXN=no"],
            id="archive",
        ),
    ],
)  # fmt: skip
def test_slurmdbd_is_told(edits: dict[str, Any], wanted: list[str]) -> None:
    lines = render_slurmdbd(cluster("dev", edits)).splitlines()
    assert [line for line in wanted if line not in lines] == []


def test_database_without_tls_is_told_no_certificate() -> None:
    assert "StorageParameters" not in render_slurmdbd(cluster("dev", external(tls=False)))


def test_own_database_has_its_disk_when_none_is_given() -> None:
    assert cluster("dev", {"accounting.storage": GONE}).accounting.disk.size == "5Gi"
