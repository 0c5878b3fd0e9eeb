"""The accounts, users and QOS of the config in Slurm's database: their ConfigMap, and the sidecar of slurmdbd that keeps them there.

What the sidecar does is in programs/account_sync. The pod that it is part of is in `accounting`.
"""

from typing import TypedDict

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
from components.shared_mounts import SharedMount
from components.users import users_mount
from configs.models.cluster import Cluster
from configs.render import accounts
from names import paths

_PATH = "/etc/slipway/accounts"


class AccountsArgs(TypedDict):
    """What is kept in Slurm's database."""

    file: str
    """Name of the file, for the program that reads it."""
    text: str
    """The wanted accounts, users and QOS."""
    slurm_config: str
    """Name of the ConfigMap with slurm.conf."""


def accounts_args(cluster: Cluster) -> AccountsArgs:
    return {
        "file": accounts.FILE,
        "text": accounts.render(cluster, has_directory=cluster.login.ldap is not None),
        "slurm_config": slurm_config_name(cluster.name),
    }


def build_accounts(pods: PodDefaults, args: AccountsArgs) -> Manifest:
    """The wanted accounts, under a fixed name, so that a change is taken over within seconds and restarts nothing."""
    cluster = pods["cluster"]
    return config_map(object_name(cluster, "accounts"), pods["namespace"], labels(cluster, "slurmdbd"), {args["file"]: args["text"]})


def accounts_sidecar(pods: PodDefaults, args: AccountsArgs, identity: SharedMount | None) -> Manifest:
    """The sidecar that keeps Slurm's accounts. Beside slurmdbd, because there is never more than one of it, and munge is there."""
    return container(
        pods,
        "accounts",
        "",
        [
            *(mount("accounts", _PATH, read_only=True), *program_mounts("account_sync")),
            *(mount("slurm-config", paths.SLURM, read_only=True), users_mount(identity)),
            *(mount("accounts-tmp", "/tmp"), *MUNGE_SOCKET),  # noqa: S108 - a mount of the pod's own
        ],
        command=program_command("account_sync", f"{_PATH}/{args['file']}"),
        workingDir=paths.PACKAGES,
        requests=("10m", "32Mi"),
        # SlurmUser: only Slurm's own user and root may change accounts.
        securityContext=confined(SLURM_UID),
    )


def accounts_volumes(pods: PodDefaults, args: AccountsArgs) -> list[Manifest]:
    """The volumes of the sidecar's own, but for its program's: those of all programs of a pod are made at once."""
    return [
        config_volume("accounts", object_name(pods["cluster"], "accounts")),
        config_volume("slurm-config", args["slurm_config"]),
        empty_volume("accounts-tmp"),
    ]
