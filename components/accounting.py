"""Accounting of one cluster: slurmdbd and the MariaDB server it writes to. Slurm works on while either is away, and sends later.

The server is the cluster's own, on its own disk, or an external database; then only slurmdbd is made here.
"""

from typing import NotRequired, TypedDict

import pulumi

from components import network
from components.accounts import AccountsArgs, accounts_args, accounts_sidecar, accounts_volumes, build_accounts
from components.backup import DATABASE_PROGRAMS, BackupArgs, backup_args, build_database_restore, build_folders, restore_volumes
from components.claims import claim_retention, claim_template
from components.database import (
    ExternalDatabaseArgs,
    client_env,
    client_mounts,
    client_volumes,
    external_database,
    password_secret,
)
from components.generations import newest_key, pod_marks
from components.labels import Manifest, labels, metadata, object_name, selector
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
    pod_template,
    program_mounts,
    program_volumes,
    scripts_volume,
    secret_volume,
    service,
    tcp_probe,
)
from components.shared_mounts import SharedMount, build_mount, build_volume
from components.users import identity_volume, users_mount, users_name, users_volume
from configs.models.cluster import Cluster
from configs.models.storage import Disk
from configs.render import slurm
from names import annotations, paths, ports

_PING = (
    "bash",
    "-c",
    f"MYSQL_PWD=$(<{paths.DATABASE_PASSWORD}/password) "
    "mariadb --no-defaults --host=127.0.0.1 --user=slurm --connect-timeout=5 -e 'SELECT 1'",
)
"""A login as slurmdbd's own. A mere connection would fill the server's log with warnings."""


_CONVERSION_S = 24 * 3600
"""Seconds that slurmdbd has for its start."""


class AccountingArgs(TypedDict):
    """What accounting needs to know."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    slurmdbd_conf: str
    """Text of slurmdbd.conf without its password, which the start script adds."""
    users: str
    """Name of the ConfigMap with the cluster's users."""
    identity: NotRequired[SharedMount]
    """The shared volume, where users come from LDAP: from its folder `identity` instead of the ConfigMap."""
    jwt_secret: str
    """Name of the Secret with the key that signs tokens."""
    storage: NotRequired[Disk]
    """The disk of the cluster's own database; left out where `external` is given."""
    external: NotRequired[ExternalDatabaseArgs]
    """A database that somebody else runs."""
    archive: NotRequired[SharedMount]
    """Where slurmdbd writes what it purges to, in a folder of the cluster's name."""
    backup: NotRequired[BackupArgs]
    """Backups that an empty database is restored from."""
    password_generation: int
    """The password's generation: a higher number makes a new password; MariaDB and slurmdbd restart with it."""
    jwt_generation: int
    """The JWT key's generation: slurmdbd restarts with a new key."""
    accounts: NotRequired[AccountsArgs]
    """The wanted accounts, users and QOS; without it only administrators change them."""
    deletion_protection: bool
    """True: database and password cannot be deleted by a change of the stack, and the disk outlives it."""


def accounting_args(cluster: Cluster, pods: PodDefaults) -> AccountingArgs:
    """slurmdbd with a database of its own or an external database. Where the config declares accounts, also what keeps them in Slurm."""
    made: AccountingArgs = {
        "pods": pods,
        "slurmdbd_conf": slurm.render_slurmdbd(cluster),
        "users": users_name(cluster.name),
        "jwt_secret": object_name(cluster.name, "jwt"),
        "password_generation": cluster.keys.database,
        "jwt_generation": cluster.keys.jwt,
        "deletion_protection": cluster.deletion_protection,
    }
    if (identity := identity_volume(cluster)) is not None:
        made["identity"] = identity
    if (external := external_database(cluster)) is not None:
        made["external"] = external
    else:
        made["storage"] = cluster.accounting.disk
    if (archive := archive_mount(cluster)) is not None:
        made["archive"] = archive
    if cluster.backup is not None:
        made["backup"] = backup_args(cluster, pods, cluster.backup)
    if cluster.accounting.is_kept:
        made["accounts"] = accounts_args(cluster)
    return made


def archive_mount(cluster: Cluster) -> SharedMount | None:
    """Where slurmdbd's archives go, if anywhere."""
    archive = cluster.accounting.archive
    return SharedMount("archive", slurm.ARCHIVE, archive.volume) if archive and cluster.accounting.enabled else None


class Accounting(pulumi.ComponentResource):
    """slurmdbd and MariaDB, one pod each. A change of slurmdbd.conf restarts slurmdbd alone; Slurm keeps what it could not send."""

    slurmdbd_address: pulumi.Output[str]
    """Host and port of slurmdbd inside the cluster."""
    database_secret: pulumi.Output[str]
    """Name of the Secret with the `password` of the database's user."""

    def __init__(self, name: str, args: AccountingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Accounting", name, {}, opts)
        cluster, namespace = args["pods"]["cluster"], args["pods"]["namespace"]
        needs = [declare(build_config(args), pulumi.ResourceOptions(parent=self))]
        if "external" not in args:
            needs.append(self._declare_database(args))
        declare(service(args["pods"], "slurmdbd", ports.SLURMDBD), pulumi.ResourceOptions(parent=self))
        declare(network.policy(args["pods"], "slurmdbd"), pulumi.ResourceOptions(parent=self))
        if "accounts" in args:
            needs.append(declare(build_accounts(args["pods"], args["accounts"]), pulumi.ResourceOptions(parent=self)))
        declare(build_slurmdbd(args), pulumi.ResourceOptions(parent=self, depends_on=needs))
        self.slurmdbd_address = pulumi.Output.from_input(f"{object_name(cluster, 'slurmdbd')}.{namespace}:{ports.SLURMDBD}")
        self.database_secret = pulumi.Output.from_input(password_secret(cluster, args.get("external")))
        self.register_outputs({"slurmdbd_address": self.slurmdbd_address, "database_secret": self.database_secret})

    def _declare_database(self, args: AccountingArgs) -> pulumi.CustomResource:
        """The cluster's own MariaDB, which comes after the Secret with its password and before slurmdbd."""
        cluster, namespace = args["pods"]["cluster"], args["pods"]["namespace"]
        kept = pulumi.ResourceOptions(parent=self, protect=args["deletion_protection"])
        name = object_name(cluster, "mariadb")
        data = {"password": newest_key(f"{name}-password", args["password_generation"], 40, kept)}
        made = declare(secret(name, namespace, labels(cluster, "mariadb"), data), kept)
        declare(service(args["pods"], "mariadb", ports.MARIADB), pulumi.ResourceOptions(parent=self))
        declare(network.policy(args["pods"], "mariadb"), pulumi.ResourceOptions(parent=self))
        lasting = pulumi.ResourceOptions(parent=self, protect=args["deletion_protection"], depends_on=[made], ignore_changes=[CLAIMS])
        return declare(build_mariadb(args), lasting)


def build_config(args: AccountingArgs) -> Manifest:
    """The ConfigMap with slurmdbd.conf, under a fixed name."""
    cluster = args["pods"]["cluster"]
    name = object_name(cluster, "slurmdbd-config")
    return config_map(name, args["pods"]["namespace"], labels(cluster, "slurmdbd"), {"slurmdbd.conf": args["slurmdbd_conf"]})


def build_mariadb(args: AccountingArgs) -> Manifest:
    """The StatefulSet of MariaDB: one replica on its own disk."""
    pods = args["pods"]
    cluster = pods["cluster"]
    data, run, tmp = mount("data", paths.MARIADB), mount("run", paths.MARIADB_RUN), mount("tmp", "/tmp")  # noqa: S108 - a mount of the pod's own
    backup = args.get("backup")
    mariadb = container(
        pods,
        "mariadb",
        "mariadb.sh",
        [data, mount("password", paths.DATABASE_PASSWORD, read_only=True), run, tmp],
        requests=("50m", "256Mi"),
        limit=DAEMON_MEMORY,
        ports=[{"name": "mariadb", "containerPort": ports.MARIADB}],
        securityContext=confined(MYSQL_UID),
        startupProbe=exec_probe(*_PING, periodSeconds=2, failureThreshold=300),
        livenessProbe=exec_probe(*_PING, periodSeconds=20, timeoutSeconds=10, failureThreshold=6),
        readinessProbe=exec_probe(*_PING, periodSeconds=10, timeoutSeconds=10),
    )
    pod: Manifest = {
        # InnoDB writes its pages out on a clean stop; killed before, it recovers from its log at the next start.
        "terminationGracePeriodSeconds": 120,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "securityContext": {"fsGroup": MYSQL_UID, "fsGroupChangePolicy": "OnRootMismatch"},
        "containers": [mariadb],
        "volumes": [
            *(secret_volume("password", object_name(cluster, "mariadb")), empty_volume("run"), empty_volume("tmp"), scripts_volume(pods)),
            *program_volumes(pods, *(DATABASE_PROGRAMS if backup else ())),
            *(restore_volumes(backup) if backup else ()),
        ],
    }
    if backup:
        # An init container has no probe that would end a long restore; and nobody reaches the database before it is whole.
        pod["initContainers"] = build_database_restore(backup, [data, run, tmp])
    return _stateful_set(
        pods,
        "mariadb",
        pod,
        {
            "volumeClaimTemplates": [claim_template("data", args.get("storage", Disk()))],
            "persistentVolumeClaimRetentionPolicy": claim_retention(args["deletion_protection"]),
        },
        pod_marks(database=args["password_generation"]),
    )


def build_slurmdbd(args: AccountingArgs) -> Manifest:
    """The StatefulSet of slurmdbd: never two at once, and nothing on disk."""
    pods, external, backup, archive = args["pods"], args.get("external"), args.get("backup"), args.get("archive")
    cluster = pods["cluster"]
    slurmdbd = container(
        pods,
        "slurmdbd",
        "slurmdbd.sh",
        [
            *(mount("config", paths.SLURMDBD, read_only=True), mount("etc", paths.SLURM), *MUNGE_SOCKET),
            *(users_mount(args.get("identity")), *client_mounts(external)),
            *(mount("jwt", paths.JWT, read_only=True), mount("run", "/run"), mount("tmp", "/tmp")),  # noqa: S108
            *([build_mount(archive)] if archive else []),
            *program_mounts("database"),
        ],
        env=client_env(cluster, external),
        requests=("20m", "64Mi"),
        limit=DAEMON_MEMORY,
        ports=[{"name": "slurmdbd", "containerPort": ports.SLURMDBD}],
        securityContext=confined(SLURM_UID),
        # It listens only once the database answers and its tables are made, or converted from an older release. A large database takes
        # hours for that, and a conversion that is cut off begins again.
        startupProbe=tcp_probe(ports.SLURMDBD, periodSeconds=1, failureThreshold=_CONVERSION_S),
        livenessProbe=tcp_probe(ports.SLURMDBD, periodSeconds=10, failureThreshold=6),
        readinessProbe=tcp_probe(ports.SLURMDBD, periodSeconds=2),
    )
    before: list[Manifest] = []
    if archive:
        before.append(build_folders(pods, archive, {f"{archive.mount_path}/{cluster}": SLURM_UID}))
    if backup and external:
        reach = [*client_mounts(external), mount("tmp", "/tmp")]  # noqa: S108
        before += build_database_restore(backup, reach, client_env(cluster, external))
    accounts = args.get("accounts")
    programs = ["munged", *(DATABASE_PROGRAMS if backup and external else ("database",)), *(["account_sync"] if accounts else [])]
    pod: Manifest = {
        "terminationGracePeriodSeconds": 60,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "securityContext": {"fsGroup": SLURM_UID},
        "initContainers": [munged(pods), *before],
        "containers": [slurmdbd, *([accounts_sidecar(pods, accounts, args.get("identity"))] if accounts else [])],
        "volumes": [
            config_volume("config", object_name(cluster, "slurmdbd-config")),
            users_volume(cluster, args["users"], args.get("identity")),
            *(*client_volumes(cluster, external), secret_volume("jwt", args["jwt_secret"])),
            *(accounts_volumes(pods, accounts) if accounts else []),
            *program_volumes(pods, *programs),
            *(empty_volume("etc", in_memory=True), empty_volume("run"), empty_volume("tmp"), scripts_volume(pods), *munge_volumes(pods)),
            *([build_volume(cluster, archive)] if archive else []),
            *(restore_volumes(backup) if backup and external else []),
        ],
    }
    # slurmdbd takes over a changed file by a restart, which costs nothing; the annotation causes the restart.
    config = {annotations.CONFIG: content_name("slurmdbd", {"conf": args["slurmdbd_conf"]})}
    keys = pod_marks(database=args["password_generation"], jwt=args["jwt_generation"])
    return _stateful_set(pods, "slurmdbd", pod, {}, {**config, **keys})


def _stateful_set(pods: PodDefaults, component: str, pod: Manifest, more: Manifest, annotations: dict[str, str] | None = None) -> Manifest:
    name = object_name(pods["cluster"], component)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(name, pods["namespace"], labels(pods["cluster"], component)),
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "selector": {"matchLabels": selector(pods["cluster"], component)},
            "template": pod_template(pods, component, pod, annotations=annotations),
            **more,
        },
    }
