"""Backups of the accounting database and slurmctld's state on one volume, and the containers that restore them.

A CronJob dumps the database. Only slurmctld's pod can mount its disk, so a sidecar there copies the state. An init container restores, only
into an empty database or disk, and waits until `restore_from` is set.
"""

from collections.abc import Mapping

import pulumi

from components.database import client_env, client_mounts, client_volumes
from components.labels import Manifest, labels, object_name
from components.objects import config_map, declare
from components.pods import (
    MYSQL_UID,
    SLURM_UID,
    PodDefaults,
    config_volume,
    confined,
    container,
    empty_volume,
    mount,
    program_command,
    program_mounts,
    program_volumes,
    root_context,
    scripts_volume,
)
from components.shared_mounts import SharedMount, build_mount, build_volume
from components.workloads import cron_job
from configs.models.backup import Backup as BackupConfig
from configs.models.cluster import Cluster
from names import paths, variables

DATABASE_PROGRAMS = ("backup", "database")
"""Programs that back up or restore the database; the pods mount their volumes."""
STATE_PROGRAMS = ("backup",)
"""Programs that back up or restore slurmctld's state."""
_DUMP_S = 6 * 3600
"""Time limit for a large database on a slow volume."""


def backup_mount(backup: BackupConfig) -> SharedMount:
    """The volume of the backups."""
    return SharedMount("backup", paths.BACKUP, backup.volume)


class Backup(pulumi.ComponentResource):
    """The CronJob of the database's backup, and the ConfigMap that restores wait for. A change of either restarts nothing."""

    restore_from: pulumi.Output[str]
    """The backup that an empty database or disk is restored from; empty while it is undecided."""

    def __init__(
        self, name: str, cluster: Cluster, pods: PodDefaults, backup: BackupConfig, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("slipway:index:Backup", name, {}, opts)
        declare(build_decision(cluster, backup), pulumi.ResourceOptions(parent=self))
        if cluster.accounting.enabled:
            declare(build_cron_job(cluster, pods, backup), pulumi.ResourceOptions(parent=self))
        self.restore_from = pulumi.Output.from_input(backup.restore_from or "")
        self.register_outputs({"restore_from": self.restore_from})


def build_decision(cluster: Cluster, backup: BackupConfig) -> Manifest:
    """The ConfigMap that waiting restores read: a change reaches them in about a minute."""
    name = object_name(cluster.name, "restore")
    return config_map(name, cluster.namespace, labels(cluster.name, "backup"), {"from": backup.restore_from or ""})


def build_cron_job(cluster: Cluster, pods: PodDefaults, backup: BackupConfig) -> Manifest:
    """The CronJob that dumps the database. By hand: `kubectl create job --from=cronjob/<cluster>-backup NAME`."""
    volume = backup_mount(backup)
    dump = container(
        pods,
        "backup",
        "",
        [
            *(*client_mounts(cluster), build_mount(volume), mount("tmp", "/tmp")),  # noqa: S108 - a mount of the pod's own
            *program_mounts(*DATABASE_PROGRAMS),
        ],
        {
            **client_env(cluster),
            variables.BACKUP_KEEP: str(backup.keep),
            variables.STATE_BACKUP_S: str(backup.state_interval_s),
        },
        command=program_command("backup", module="database_backup"),
        workingDir=paths.PACKAGES,
        requests=("100m", "64Mi"),
        securityContext=confined(MYSQL_UID),
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    pod: Manifest = {
        "restartPolicy": "Never",
        "initContainers": [build_folders(pods, volume, backup_folders(cluster.name))],
        "containers": [dump],
        # Readable by the pod's user without an fsGroup, which would change the owner of the files on the backup volume.
        "volumes": [
            *client_volumes(cluster, 0o444),
            build_volume(cluster.name, volume),
            empty_volume("tmp"),
            *(scripts_volume(pods), *program_volumes(pods, *DATABASE_PROGRAMS)),
        ],
    }
    return cron_job(
        pods,
        "backup",
        pod,
        backup.schedule,
        _DUMP_S,
        startingDeadlineSeconds=3600,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=3,
    )


def backup_folders(cluster: str) -> dict[str, int]:
    """A cluster's folders on the backup volume, and their owners."""
    return {f"{paths.BACKUP}/{cluster}/database": MYSQL_UID, f"{paths.BACKUP}/{cluster}/state": SLURM_UID}


def build_folders(pods: PodDefaults, volume: SharedMount, folders: Mapping[str, int]) -> Manifest:
    """The init container that creates folders on a volume for users other than root."""
    return container(
        pods,
        f"{volume.name}-folders",
        "own-folders.sh",
        [build_mount(volume)],
        {variables.FOLDERS: " ".join(f"{folder}:{uid}" for folder, uid in folders.items())},
        securityContext=root_context("CHOWN", "DAC_OVERRIDE", "FOWNER"),
    )


def build_database_restore(
    pods: PodDefaults, backup: BackupConfig, mounts: list[Manifest], env: Mapping[str, str] | None = None
) -> list[Manifest]:
    """The init containers that create the folders and restore a database, which `mounts` reach."""
    return _restore(pods, backup, "database_restore", MYSQL_UID, [*mounts, *program_mounts(*DATABASE_PROGRAMS)], env)


def build_state_restore(pods: PodDefaults, backup: BackupConfig, state: Manifest) -> list[Manifest]:
    """The init containers that create the folders and restore slurmctld's disk; `state` is its mount."""
    return _restore(pods, backup, "state_restore", SLURM_UID, [state, *program_mounts(*STATE_PROGRAMS)])


def _restore(
    pods: PodDefaults, backup: BackupConfig, module: str, uid: int, mounts: list[Manifest], env: Mapping[str, str] | None = None
) -> list[Manifest]:
    volume = backup_mount(backup)
    restore = container(
        pods,
        "restore",
        "",
        [*mounts, {**build_mount(volume), "readOnly": True}, mount("restore", paths.RESTORE, read_only=True)],
        env,
        command=program_command("backup", module=module),
        workingDir=paths.PACKAGES,
        securityContext=confined(uid),
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    return [build_folders(pods, volume, backup_folders(pods["cluster"])), restore]


def restore_volumes(pods: PodDefaults, backup: BackupConfig) -> list[Manifest]:
    """The volumes of the containers that restore."""
    cluster = pods["cluster"]
    return [build_volume(cluster, backup_mount(backup)), config_volume("restore", object_name(cluster, "restore"))]


def build_state_backup(pods: PodDefaults, backup: BackupConfig, state: Manifest) -> Manifest:
    """The sidecar of slurmctld that copies its state; `state` is the mount of its disk."""
    return container(
        pods,
        "state-backup",
        "",
        [{**state, "readOnly": True}, build_mount(backup_mount(backup)), *program_mounts(*STATE_PROGRAMS)],
        {variables.STATE_BACKUP_S: str(backup.state_interval_s), variables.BACKUP_KEEP: str(backup.keep)},
        command=program_command("backup", module="state_backup"),
        workingDir=paths.PACKAGES,
        requests=("10m", "32Mi"),
        securityContext=confined(SLURM_UID),
    )
