"""Backups, restores, external databases and key generations in the manifests."""

from typing import Any

import pytest

from components import accounting, backup, control_plane
from components.labels import Manifest
from configs.models.backup import Backup
from configs.models.cluster import Cluster
from tests.support.components.examples import BACKUP, EXTERNAL, PODS, edited_example
from tests.unit.components.structure import structural_faults

BACKED_UP = edited_example({"backup": BACKUP})
DECIDED = edited_example({"backup": {**BACKUP, "restoreFrom": "latest"}})
OUTSIDE = edited_example({"accounting": {"external": EXTERNAL}, "backup": BACKUP})
ARCHIVED = edited_example(
    {"accounting.purge": {"jobs": "12months"}, "accounting.archive": {"records": ["jobs"], "volume": {"claim": "archives"}}}
)


def backup_of(cluster: Cluster) -> Backup:
    assert cluster.backup is not None
    return cluster.backup


MADE: dict[str, Manifest] = {
    "slurmctld": control_plane.build_slurmctld(BACKED_UP, PODS),
    "mariadb": accounting.build_mariadb(BACKED_UP, PODS),
    "slurmdbd": accounting.build_slurmdbd(BACKED_UP, PODS),
    "slurmdbd-outside": accounting.build_slurmdbd(OUTSIDE, PODS),
    "slurmdbd-archive": accounting.build_slurmdbd(ARCHIVED, PODS),
    "backup": backup.build_cron_job(BACKED_UP, PODS, backup_of(BACKED_UP)),
    "backup-outside": backup.build_cron_job(OUTSIDE, PODS, backup_of(OUTSIDE)),
}
each = pytest.mark.parametrize("name", [*MADE])


def pod(manifest: Manifest) -> dict[str, Any]:
    spec = manifest["spec"]
    return (spec["jobTemplate"]["spec"] if manifest["kind"] == "CronJob" else spec)["template"]["spec"]


def containers(manifest: Manifest) -> dict[str, dict[str, Any]]:
    spec = pod(manifest)
    return {one["name"]: one for one in [*spec.get("initContainers", []), *spec["containers"]]}


def mounts(container: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["mountPath"]: one for one in container["volumeMounts"]}


def env(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"]}


@each
def test_structure_is_kubernetes_own(name: str) -> None:
    assert structural_faults(MADE[name]) == []


@each
def test_every_mount_has_its_volume_and_every_volume_a_mount(name: str) -> None:
    spec = MADE[name]["spec"]
    claims = {one["metadata"]["name"] for one in spec.get("volumeClaimTemplates", [])}
    volumes = [one["name"] for one in pod(MADE[name])["volumes"]]
    mounted = {one["name"] for container in containers(MADE[name]).values() for one in container["volumeMounts"]}
    assert len(set(volumes)) == len(volumes)
    assert mounted == {*volumes, *claims}


@pytest.mark.parametrize(
    ("name", "module", "uid"),
    [
        pytest.param("mariadb", "database_restore", 403, id="mariadb"),
        pytest.param("slurmdbd-outside", "database_restore", 403, id="external"),
        pytest.param("slurmctld", "state_restore", 64030, id="slurmctld"),
    ],
)
def test_restore_comes_before_the_daemon_and_cannot_write_to_the_backups(name: str, module: str, uid: int) -> None:
    spec = pod(MADE[name])
    before = [one["name"] for one in spec["initContainers"]]
    assert before[-2:] == ["backup-folders", "restore"]
    restore = containers(MADE[name])["restore"]
    assert restore["command"][-1] == f"programs.backup.{module}"
    assert restore["securityContext"]["runAsUser"] == uid
    assert mounts(restore)["/backup"]["readOnly"] is True
    assert "startupProbe" not in restore  # nothing may end a long one


def test_own_database_is_restored_by_its_own_pod_alone() -> None:
    assert "restore" not in containers(MADE["slurmdbd"])


def test_decision_to_restore_restarts_nothing() -> None:
    assert accounting.build_mariadb(DECIDED, PODS) == MADE["mariadb"]
    assert control_plane.build_slurmctld(DECIDED, PODS) == MADE["slurmctld"]
    assert backup.build_decision(BACKED_UP, backup_of(BACKED_UP))["data"] == {"from": ""}
    assert backup.build_decision(DECIDED, backup_of(DECIDED))["data"] == {"from": "latest"}


def test_only_the_folders_are_made_as_root_and_with_few_rights() -> None:
    for name, made in MADE.items():
        for container in containers(made).values():
            context = container["securityContext"]
            if context["runAsUser"] == 0:
                assert (name, container["command"][-1]) == (name, "/opt/slipway/scripts/own-folders.sh")
                assert context["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]}
            else:
                assert context["capabilities"] == {"drop": ["ALL"]}


def test_state_is_copied_where_its_disk_is_and_only_read() -> None:
    sidecar = containers(MADE["slurmctld"])["state-backup"]
    assert mounts(sidecar)["/var/spool/slurmctld"]["readOnly"] is True
    assert env(sidecar)["SLIPWAY_STATE_BACKUP_S"] == "600"


def test_slurmdbd_backup_and_restore_reach_an_external_database_alike() -> None:
    wanted = {
        "SLIPWAY_MARIADB_HOST": "db.example",
        "SLIPWAY_MARIADB_PORT": "3307",
        "SLIPWAY_MARIADB_USER": "slurm-dev",
        "SLIPWAY_MARIADB_DATABASE": "acct",
        "SLIPWAY_MARIADB_TLS": "/etc/slipway/mariadb-ca/ca.crt",
    }
    found = [containers(MADE["slurmdbd-outside"])[one] for one in ("slurmdbd", "restore")] + [containers(MADE["backup-outside"])["backup"]]
    for one in found:
        assert wanted.items() <= env(one).items()
        assert {"/etc/slipway/mariadb", "/etc/slipway/mariadb-ca"} <= mounts(one).keys()
    for name in ("slurmdbd-outside", "backup-outside"):
        secrets = {one["secret"]["secretName"] for one in pod(MADE[name])["volumes"] if "secret" in one}
        assert {"acct-password", "acct-ca"} <= secrets


def test_runs_of_the_backup_never_overlap_and_are_not_repeated() -> None:
    spec = MADE["backup"]["spec"]
    assert (spec["concurrencyPolicy"], spec["jobTemplate"]["spec"]["backoffLimit"]) == ("Forbid", 0)


@pytest.mark.parametrize(
    ("changed", "restarted"),
    [
        pytest.param("database", {"mariadb", "slurmdbd"}, id="database"),
        pytest.param("jwt", {"slurmctld", "slurmdbd"}, id="jwt"),
    ],
)
def test_new_generation_restarts_what_reads_the_key_at_its_start(changed: str, restarted: set[str]) -> None:
    def templates(generation: int) -> dict[str, Any]:
        cluster = edited_example({f"keys.{changed}": generation})
        made = {
            "mariadb": accounting.build_mariadb(cluster, PODS),
            "slurmdbd": accounting.build_slurmdbd(cluster, PODS),
            "slurmctld": control_plane.build_slurmctld(cluster, PODS),
        }
        return {name: one["spec"]["template"]["metadata"] for name, one in made.items()}

    before, after = templates(1), templates(2)
    assert {name for name in before if before[name] != after[name]} == restarted
    assert "generation" not in str(before)
