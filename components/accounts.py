"""The accounts, users and QOS of the config: their ConfigMap, and the sidecar of slurmdbd that writes them to Slurm's database
(programs/account_sync).
"""

from components.labels import Manifest, labels, object_name, slurm_config_name
from components.objects import config_map
from components.pods import (
    MUNGE_SOCKET,
    SLURM_UID,
    PodDefaults,
    config_volume,
    confined,
    container,
    empty_volume,
    mount,
    program_command,
    program_mounts,
)
from components.users import users_mount
from configs.models.cluster import Cluster
from configs.render.accounts import settings_of
from names import paths
from programs.account_sync.settings import FILE, Settings, WantedAccount, WantedQos, to_json

_PATH = "/etc/slipway/accounts"
_SLURM_USER = "slurm"


def build_settings(cluster: Cluster) -> Settings:
    """The program's settings, from the config."""
    accounting = cluster.accounting
    return Settings(
        cluster=cluster.name,
        qos={qos.name: WantedQos(qos.description, settings_of(qos)) for qos in accounting.qos},
        accounts={
            account.name: WantedAccount(
                parent=account.parent,
                description=account.description,
                organization=account.organization,
                settings=settings_of(account),
                users=account.users,
                groups=account.groups,
                per_user={name: settings_of(association) for name, association in account.per_user.items()},
            )
            for account in accounting.accounts
        },
        defaults={user: account.name for account in accounting.accounts for user in account.default_for},
        # If associations are enforced, Slurm's own user needs one too: its jobs are the health checks.
        daemons=(_SLURM_USER,) if accounting.enforce else (),
        default_account=accounting.default_account or "",
        people=tuple(user.name for user in cluster.login.users),
        has_directory=cluster.login.ldap is not None,
    )


def build_accounts(cluster: Cluster) -> Manifest:
    """The ConfigMap of the declared accounts. Its name is fixed, so a change is applied without a restart."""
    files = {FILE: to_json(build_settings(cluster))}
    return config_map(object_name(cluster.name, "accounts"), cluster.namespace, labels(cluster.name, "slurmdbd"), files)


def accounts_sidecar(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """The sidecar that syncs Slurm's accounts. It runs beside slurmdbd, which has exactly one pod and munge."""
    return container(
        pods,
        "accounts",
        "",
        [
            *(mount("accounts", _PATH, read_only=True), *program_mounts("account_sync")),
            *(mount("slurm-config", paths.SLURM, read_only=True), users_mount(cluster)),
            *(mount("accounts-tmp", "/tmp"), *MUNGE_SOCKET),  # noqa: S108 - a mount of the pod's own
        ],
        command=program_command("account_sync", f"{_PATH}/{FILE}"),
        workingDir=paths.PACKAGES,
        requests=("10m", "32Mi"),
        # SlurmUser: only Slurm's own user and root may change accounts.
        securityContext=confined(SLURM_UID),
    )


def accounts_volumes(cluster: Cluster) -> list[Manifest]:
    """The volumes of the sidecar's own, but for its program's: those of all programs of a pod are made at once."""
    return [
        config_volume("accounts", object_name(cluster.name, "accounts")),
        config_volume("slurm-config", slurm_config_name(cluster.name)),
        empty_volume("accounts-tmp"),
    ]
