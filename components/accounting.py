"""Accounting of one cluster: slurmdbd and the MariaDB server it writes to. Slurm works on while either is away, and sends later.

One server on its own disk. For a database that exists already, leave this component out and point slurmdbd.conf at it.
"""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_random as random

from components.labels import Manifest, labels, metadata, object_name, selector
from components.objects import config_map, content_name, declare, encode, immutable_config_map, secret
from components.pods import (
    MARIADB_PORT,
    MUNGE_SOCKET,
    MYSQL_UID,
    SLURM_UID,
    SLURMDBD_PORT,
    ClaimArgs,
    PodDefaults,
    claim_retention,
    claim_template,
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
    scripts_volume,
    secret_volume,
    service,
    tcp_probe,
)

_PING = (
    "bash",
    "-c",
    "MYSQL_PWD=$(</etc/slipway/mariadb/password) mariadb --no-defaults --host=127.0.0.1 --user=slurm --connect-timeout=5 -e 'SELECT 1'",
)
"""A login as slurmdbd's own. A mere connection would fill the server's log with warnings."""


_PROGRAMS = "/opt/slipway"
_ACCOUNTS = "/etc/slipway/accounts"


class AccountsArgs(TypedDict):
    """What is kept in Slurm's database."""

    file: str
    """Name of the file, as its program is told."""
    text: str
    """The wanted accounts, users and QOS."""
    programs: dict[str, str]
    """The program that keeps them so, by file name."""
    slurm_config: str
    """Name of the ConfigMap with slurm.conf."""


class AccountingArgs(TypedDict):
    """What accounting needs to know."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    slurmdbd_conf: str
    """Text of slurmdbd.conf without its password, which the start script adds."""
    users: str
    """Name of the ConfigMap with the cluster's users."""
    jwt_secret: str
    """Name of the Secret with the key that signs tokens."""
    storage: ClaimArgs
    """The disk of the database."""
    accounts: NotRequired[AccountsArgs]
    """What Slurm's accounts, users and QOS are to be; without it nobody but administrators changes them."""
    deletion_protection: bool
    """True: database and password cannot be deleted by a change of the stack, and the disk outlives it."""


class Accounting(pulumi.ComponentResource):
    """slurmdbd and MariaDB, one pod each. A change of slurmdbd.conf restarts slurmdbd alone; Slurm keeps what it could not send."""

    slurmdbd_address: pulumi.Output[str]
    """Host and port of slurmdbd inside the cluster."""
    database_secret: pulumi.Output[str]
    """Name of the Secret with the `password` of the database user `slurm`."""

    def __init__(self, name: str, args: AccountingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Accounting", name, {}, opts)
        cluster, namespace = args["pods"]["cluster"], args["pods"]["namespace"]
        protected = args["deletion_protection"]
        kept = pulumi.ResourceOptions(parent=self, protect=protected)
        plain = pulumi.ResourceOptions(parent=self)
        secret_name = object_name(cluster, "mariadb")
        password = random.RandomPassword(f"{secret_name}-password", length=40, special=False, opts=kept)
        data = {"password": pulumi.Output.secret(password.result).apply(encode)}
        database_secret = declare(secret(secret_name, namespace, labels(cluster, "mariadb"), data), kept)
        config = declare(build_config(args), plain)
        declare(service(args["pods"], "mariadb", MARIADB_PORT), plain)
        declare(build_mariadb(args), pulumi.ResourceOptions(parent=self, protect=protected, depends_on=[database_secret]))
        declare(service(args["pods"], "slurmdbd", SLURMDBD_PORT), plain)
        needs = [database_secret, config, *(declare(each, plain) for each in build_accounts(args))]
        declare(build_slurmdbd(args), pulumi.ResourceOptions(parent=self, depends_on=needs))
        self.slurmdbd_address = pulumi.Output.from_input(f"{object_name(cluster, 'slurmdbd')}.{namespace}:{SLURMDBD_PORT}")
        self.database_secret = pulumi.Output.from_input(secret_name)
        self.register_outputs({"slurmdbd_address": self.slurmdbd_address, "database_secret": self.database_secret})


def build_config(args: AccountingArgs) -> Manifest:
    """The ConfigMap with slurmdbd.conf, under a fixed name."""
    cluster = args["pods"]["cluster"]
    name = object_name(cluster, "slurmdbd-config")
    return config_map(name, args["pods"]["namespace"], labels(cluster, "slurmdbd"), {"slurmdbd.conf": args["slurmdbd_conf"]})


def build_accounts(args: AccountingArgs) -> list[Manifest]:
    """The wanted accounts, under a fixed name, so that a change is taken over within seconds and restarts nothing; and the program."""
    if "accounts" not in args:
        return []
    accounts, cluster, namespace = args["accounts"], args["pods"]["cluster"], args["pods"]["namespace"]
    about = labels(cluster, "slurmdbd")
    return [
        config_map(object_name(cluster, "accounts"), namespace, about, {accounts["file"]: accounts["text"]}),
        immutable_config_map(_programs_prefix(cluster), namespace, about, accounts["programs"]),
    ]


def _programs_prefix(cluster: str) -> str:
    return object_name(cluster, "accounts-program")


def build_mariadb(args: AccountingArgs) -> Manifest:
    """The StatefulSet of MariaDB: one replica on its own disk."""
    pods = args["pods"]
    cluster = pods["cluster"]
    mariadb = container(
        pods,
        "mariadb",
        "mariadb.sh",
        [
            *(mount("data", "/var/lib/mysql"), mount("password", "/etc/slipway/mariadb", read_only=True)),
            *(mount("run", "/run/mysqld"), mount("tmp", "/tmp")),  # noqa: S108 - a mount of the pod's own
        ],
        requests=("50m", "256Mi"),
        ports=[{"name": "mariadb", "containerPort": MARIADB_PORT}],
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
        ],
    }
    return _stateful_set(
        pods,
        "mariadb",
        pod,
        {
            "volumeClaimTemplates": [claim_template("data", args["storage"])],
            "persistentVolumeClaimRetentionPolicy": claim_retention(args["deletion_protection"]),
        },
    )


def build_slurmdbd(args: AccountingArgs) -> Manifest:
    """The StatefulSet of slurmdbd: never two at once, and nothing on disk."""
    pods = args["pods"]
    cluster = pods["cluster"]
    slurmdbd = container(
        pods,
        "slurmdbd",
        "slurmdbd.sh",
        [
            *(mount("config", "/etc/slipway/slurmdbd", read_only=True), mount("etc", "/etc/slurm"), *MUNGE_SOCKET),
            *(mount("users", "/var/lib/extrausers", read_only=True), mount("password", "/etc/slipway/mariadb", read_only=True)),
            *(mount("jwt", "/etc/slipway/jwt", read_only=True), mount("run", "/run"), mount("tmp", "/tmp")),  # noqa: S108
        ],
        env={"SLIPWAY_MARIADB_HOST": object_name(cluster, "mariadb")},
        requests=("20m", "64Mi"),
        ports=[{"name": "slurmdbd", "containerPort": SLURMDBD_PORT}],
        securityContext=confined(SLURM_UID),
        # It listens only once the database answers, and its first start makes all tables.
        startupProbe=tcp_probe(SLURMDBD_PORT, periodSeconds=1, failureThreshold=900),
        livenessProbe=tcp_probe(SLURMDBD_PORT, periodSeconds=10, failureThreshold=6),
        readinessProbe=tcp_probe(SLURMDBD_PORT, periodSeconds=2),
    )
    kept = args.get("accounts")
    pod: Manifest = {
        "terminationGracePeriodSeconds": 60,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "securityContext": {"fsGroup": SLURM_UID},
        "initContainers": [munged(pods)],
        "containers": [slurmdbd, *([_accounts(pods, kept)] if kept else [])],
        "volumes": [
            *(config_volume("config", object_name(cluster, "slurmdbd-config")), config_volume("users", args["users"])),
            *(_accounts_volumes(cluster, kept) if kept else []),
            *(secret_volume("password", object_name(cluster, "mariadb")), secret_volume("jwt", args["jwt_secret"])),
            *(empty_volume("etc", in_memory=True), empty_volume("run"), empty_volume("tmp"), scripts_volume(pods), *munge_volumes(pods)),
        ],
    }
    # slurmdbd takes over a changed file by a restart, which costs nothing; the annotation makes it one.
    return _stateful_set(pods, "slurmdbd", pod, {}, {"slipway.dev/config": content_name("slurmdbd", {"conf": args["slurmdbd_conf"]})})


def _accounts(pods: PodDefaults, accounts: AccountsArgs) -> Manifest:
    """The sidecar that keeps Slurm's accounts. Beside slurmdbd, because there is never more than one of it, and munge is there."""
    return container(
        pods,
        "accounts",
        "",
        [
            *(mount("accounts", _ACCOUNTS, read_only=True), mount("accounts-programs", f"{_PROGRAMS}/accounts", read_only=True)),
            *(mount("slurm-config", "/etc/slurm", read_only=True), mount("users", "/var/lib/extrausers", read_only=True)),
            *(mount("accounts-tmp", "/tmp"), *MUNGE_SOCKET),  # noqa: S108 - a mount of the pod's own
        ],
        # The programs are a package.
        env={"PYTHONPATH": _PROGRAMS},
        command=["python3", "-B", "-m", "accounts.run", f"{_ACCOUNTS}/{accounts['file']}"],
        requests=("10m", "32Mi"),
        # SlurmUser: only Slurm's own user and root may change accounts.
        securityContext=confined(SLURM_UID),
    )


def _accounts_volumes(cluster: str, accounts: AccountsArgs) -> list[Manifest]:
    return [
        config_volume("accounts", object_name(cluster, "accounts")),
        config_volume("accounts-programs", content_name(_programs_prefix(cluster), accounts["programs"])),
        config_volume("slurm-config", accounts["slurm_config"]),
        empty_volume("accounts-tmp"),
    ]


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
