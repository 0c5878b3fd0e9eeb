"""Accounting of one cluster: slurmdbd, and its MariaDB server unless the database is external.

While either is down, Slurm continues and sends its records later.
"""

import pulumi

from components import network
from components.accounts import accounts_sidecar, accounts_volumes, build_accounts
from components.backup import DATABASE_PROGRAMS, build_database_restore, build_folders, restore_volumes
from components.claims import claim_retention, claim_template
from components.database import client_env, client_mounts, client_volumes, password_secret
from components.generations import newest_key, pod_marks
from components.labels import Manifest, jwt_secret_name, labels, object_name
from components.objects import CLAIMS, config_map, content_name, declare, secret
from components.pods import (
    DAEMON_MEMORY,
    MUNGE_SOCKET,
    MYSQL_UID,
    SLURM_UID,
    PodDefaults,
    config_volume,
    confined,
    container,
    empty_volume,
    exec_probe,
    lost_node_tolerations,
    mount,
    munge_volumes,
    munged,
    program_mounts,
    program_volumes,
    scripts_volume,
    secret_volume,
    service,
    tcp_probe,
)
from components.shared_mounts import SharedMount, build_mount, build_volume
from components.users import users_mount, users_volume
from components.workloads import stateful_set
from configs.models.cluster import Cluster
from configs.render import slurm
from names import annotations, paths, ports

_PING = (
    "bash",
    "-c",
    f"MYSQL_PWD=$(<{paths.DATABASE_PASSWORD}/password) "
    "mariadb --no-defaults --host=127.0.0.1 --user=slurm --connect-timeout=5 -e 'SELECT 1'",
)
"""A login like slurmdbd's. A connection without a login would fill the server's log with warnings."""
_CONVERSION_S = 24 * 3600
"""Time limit of slurmdbd's start."""


def archive_mount(cluster: Cluster) -> SharedMount | None:
    """The volume of slurmdbd's archives, if there is one."""
    archive = cluster.accounting.archive
    return SharedMount("archive", slurm.ARCHIVE, archive.volume) if archive and cluster.accounting.enabled else None


class Accounting(pulumi.ComponentResource):
    """slurmdbd and MariaDB, one pod each. A change of slurmdbd.conf restarts only slurmdbd; Slurm keeps unsent records."""

    slurmdbd_address: pulumi.Output[str]
    """Host and port of slurmdbd inside the cluster."""
    database_secret: pulumi.Output[str]
    """Name of the Secret with the `password` of the database's user."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Accounting", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        needs = [declare(build_config(cluster), child)]
        if cluster.accounting.external is None:
            needs.append(self._declare_database(cluster, pods))
        declare(service(pods, "slurmdbd", ports.SLURMDBD), child)
        declare(network.policy(pods, "slurmdbd"), child)
        if cluster.accounting.is_kept:
            needs.append(declare(build_accounts(cluster), child))
        declare(build_slurmdbd(cluster, pods), pulumi.ResourceOptions(parent=self, depends_on=needs))
        self.slurmdbd_address = pulumi.Output.from_input(f"{object_name(cluster.name, 'slurmdbd')}.{cluster.namespace}:{ports.SLURMDBD}")
        self.database_secret = pulumi.Output.from_input(password_secret(cluster))
        self.register_outputs({"slurmdbd_address": self.slurmdbd_address, "database_secret": self.database_secret})

    def _declare_database(self, cluster: Cluster, pods: PodDefaults) -> pulumi.CustomResource:
        """The cluster's own MariaDB, after the Secret with its password."""
        child, protected = pulumi.ResourceOptions(parent=self), cluster.deletion_protection
        protecting = pulumi.ResourceOptions(parent=self, protect=protected)
        name = object_name(cluster.name, "mariadb")
        data = {"password": newest_key(f"{name}-password", cluster.keys.database, 40, protecting)}
        password = declare(secret(name, cluster.namespace, labels(cluster.name, "mariadb"), data), protecting)
        declare(service(pods, "mariadb", ports.MARIADB), child)
        declare(network.policy(pods, "mariadb"), child)
        lasting = pulumi.ResourceOptions(parent=self, protect=protected, depends_on=[password], ignore_changes=[CLAIMS])
        return declare(build_mariadb(cluster, pods), lasting)


def build_config(cluster: Cluster) -> Manifest:
    """The ConfigMap with slurmdbd.conf; its name is fixed. The start script adds the password."""
    files = {"slurmdbd.conf": slurm.render_slurmdbd(cluster)}
    return config_map(object_name(cluster.name, "slurmdbd-config"), cluster.namespace, labels(cluster.name, "slurmdbd"), files)


def build_mariadb(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """The StatefulSet of MariaDB: one replica on its own disk."""
    data_mount, run_mount, tmp_mount = mount("data", paths.MARIADB), mount("run", paths.MARIADB_RUN), mount("tmp", "/tmp")  # noqa: S108 - a mount of the pod's own
    backup = cluster.backup
    mariadb = container(
        pods,
        "mariadb",
        "mariadb.sh",
        [data_mount, mount("password", paths.DATABASE_PASSWORD, read_only=True), run_mount, tmp_mount],
        requests=("50m", "256Mi"),
        limit=DAEMON_MEMORY,
        ports=[{"name": "mariadb", "containerPort": ports.MARIADB}],
        securityContext=confined(MYSQL_UID),
        startupProbe=exec_probe(*_PING, periodSeconds=2, failureThreshold=300),
        livenessProbe=exec_probe(*_PING, periodSeconds=20, timeoutSeconds=10, failureThreshold=6),
        readinessProbe=exec_probe(*_PING, periodSeconds=10, timeoutSeconds=10),
    )
    pod: Manifest = {
        # InnoDB flushes its pages on a clean stop. If it is killed first, it recovers from its log at the next start.
        "terminationGracePeriodSeconds": 120,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "securityContext": {"fsGroup": MYSQL_UID, "fsGroupChangePolicy": "OnRootMismatch"},
        "containers": [mariadb],
        "volumes": [
            *(
                secret_volume("password", object_name(cluster.name, "mariadb")),
                empty_volume("run"),
                empty_volume("tmp"),
                scripts_volume(pods),
            ),
            *program_volumes(pods, *(DATABASE_PROGRAMS if backup else ())),
            *(restore_volumes(pods, backup) if backup else ()),
        ],
    }
    if backup:
        # An init container has no probe that would end a long restore, and no client connects before the restore is complete.
        pod["initContainers"] = build_database_restore(pods, backup, [data_mount, run_mount, tmp_mount])
    return stateful_set(
        pods,
        "mariadb",
        pod,
        pod_marks(database=cluster.keys.database),
        volumeClaimTemplates=[claim_template("data", cluster.accounting.disk)],
        persistentVolumeClaimRetentionPolicy=claim_retention(cluster.deletion_protection),
    )


def build_slurmdbd(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """The StatefulSet of slurmdbd: never two pods at once, and no disk."""
    archive, is_kept = archive_mount(cluster), cluster.accounting.is_kept
    # The cluster's own database is restored in its own pod.
    backup = cluster.backup if cluster.accounting.external is not None else None
    slurmdbd = container(
        pods,
        "slurmdbd",
        "slurmdbd.sh",
        [
            *(mount("config", paths.SLURMDBD, read_only=True), mount("etc", paths.SLURM), *MUNGE_SOCKET),
            *(users_mount(cluster), *client_mounts(cluster)),
            *(mount("jwt", paths.JWT, read_only=True), mount("run", "/run"), mount("tmp", "/tmp")),  # noqa: S108
            *([build_mount(archive)] if archive else []),
            *program_mounts("database"),
        ],
        env=client_env(cluster),
        requests=("20m", "64Mi"),
        limit=DAEMON_MEMORY,
        ports=[{"name": "slurmdbd", "containerPort": ports.SLURMDBD}],
        securityContext=confined(SLURM_UID),
        # It listens only after the database answers and its tables are created, or converted from an older release. For a large database
        # that takes hours, and an interrupted conversion starts again.
        startupProbe=tcp_probe(ports.SLURMDBD, periodSeconds=1, failureThreshold=_CONVERSION_S),
        livenessProbe=tcp_probe(ports.SLURMDBD, periodSeconds=10, failureThreshold=6),
        readinessProbe=tcp_probe(ports.SLURMDBD, periodSeconds=2),
    )
    init_containers: list[Manifest] = []
    if archive:
        init_containers.append(build_folders(pods, archive, {f"{archive.mount_path}/{cluster.name}": SLURM_UID}))
    if backup:
        restore_mounts = [*client_mounts(cluster), mount("tmp", "/tmp")]  # noqa: S108
        init_containers += build_database_restore(pods, backup, restore_mounts, client_env(cluster))
    programs = ["munged", *(DATABASE_PROGRAMS if backup else ("database",)), *(["account_sync"] if is_kept else [])]
    pod: Manifest = {
        "terminationGracePeriodSeconds": 60,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "securityContext": {"fsGroup": SLURM_UID},
        "initContainers": [munged(pods), *init_containers],
        "containers": [slurmdbd, *([accounts_sidecar(cluster, pods)] if is_kept else [])],
        "volumes": [
            config_volume("config", object_name(cluster.name, "slurmdbd-config")),
            users_volume(cluster),
            *(*client_volumes(cluster), secret_volume("jwt", jwt_secret_name(cluster.name))),
            *(accounts_volumes(cluster) if is_kept else []),
            *program_volumes(pods, *programs),
            *(empty_volume("etc", in_memory=True), empty_volume("run"), empty_volume("tmp"), scripts_volume(pods), *munge_volumes(pods)),
            *([build_volume(cluster.name, archive)] if archive else []),
            *(restore_volumes(pods, backup) if backup else []),
        ],
    }
    # slurmdbd applies a changed file by a restart, which is harmless; the annotation causes the restart.
    config = {annotations.CONFIG: content_name("slurmdbd", {"conf": slurm.render_slurmdbd(cluster)})}
    keys = pod_marks(database=cluster.keys.database, jwt=cluster.keys.jwt)
    return stateful_set(pods, "slurmdbd", pod, {**config, **keys})
