"""The accounts, users and QOS of the config in Slurm's database: their ConfigMap, and the sidecar of slurmdbd that keeps them there.

What the sidecar does is in programs/account_sync. The pod that it is part of is in `accounting`.
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
from configs.render import accounts
from names import paths

_PATH = "/etc/slipway/accounts"


def build_accounts(cluster: Cluster) -> Manifest:
    """The wanted accounts, under a fixed name, so that a change is taken over within seconds and restarts nothing."""
    files = {accounts.FILE: accounts.render(cluster, has_directory=cluster.login.ldap is not None)}
    return config_map(object_name(cluster.name, "accounts"), cluster.namespace, labels(cluster.name, "slurmdbd"), files)


def accounts_sidecar(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """The sidecar that keeps Slurm's accounts. Beside slurmdbd, because there is never more than one of it, and munge is there."""
    return container(
        pods,
        "accounts",
        "",
        [
            *(mount("accounts", _PATH, read_only=True), *program_mounts("account_sync")),
            *(mount("slurm-config", paths.SLURM, read_only=True), users_mount(cluster)),
            *(mount("accounts-tmp", "/tmp"), *MUNGE_SOCKET),  # noqa: S108 - a mount of the pod's own
        ],
        command=program_command("account_sync", f"{_PATH}/{accounts.FILE}"),
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
