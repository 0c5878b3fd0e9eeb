"""News of jobs and nodes: a container beside slurmctld that posts to webhooks and sends mail. Only it has the URLs of webhooks.

A change of filters restarts nothing: the kubelet updates the settings within a minute. A new webhook needs another Secret mounted, which
restarts slurmctld's pod. A pod starts even if a Secret is missing; its webhook gets news once it exists.
"""

from collections.abc import Iterable

from components.labels import Manifest, labels, object_name
from components.objects import config_map
from components.pods import (
    MUNGE_SOCKET,
    SLURM_UID,
    PodDefaults,
    config_volume,
    confined,
    container,
    mount,
    program_command,
    program_mounts,
    secret_volume,
)
from configs.models.notifications import NewsReceiver
from names import paths
from programs.notify.settings import Receiver, to_json

PROGRAMS = ("notify", "mail")
"""Programs of the container: programs/mail has the texts about jobs and the spool of mails."""
_SETTINGS_PATH = "/etc/slipway/notify-settings"
_FILE = "receivers.json"
_INTERVAL_S = 15
"""Seconds between two readings of Slurm; after a slow one, the pause is longer (slurm/ended.py)."""


def build_receivers(receivers: Iterable[NewsReceiver]) -> list[Receiver]:
    """The receivers in the program's settings."""
    return [
        Receiver(
            name=receiver.name,
            kind=receiver.kind,
            to=receiver.to,
            events=frozenset(receiver.events),
            accounts=frozenset(receiver.accounts),
            users=frozenset(receiver.users),
            partitions=frozenset(receiver.partitions),
            only_asked=receiver.only_asked,
        )
        for receiver in receivers
    ]


def build_notify_settings(cluster: str, namespace: str, receivers: Iterable[NewsReceiver]) -> Manifest:
    """The ConfigMap of the receivers. It is mutable: the program reads it repeatedly."""
    return config_map(_settings_name(cluster), namespace, labels(cluster, "notify"), {_FILE: to_json(build_receivers(receivers))})


def build_notify(pods: PodDefaults, receivers: Iterable[NewsReceiver], state: Manifest, users: Manifest) -> Manifest:
    """The container. `state` mounts slurmctld's disk, where messages wait; `users` mounts the users, for their names in squeue."""
    urls = [mount(_volume(name), f"{paths.NOTIFY_URLS}/{name}", read_only=True) for name in _secrets(receivers)]
    mounts = [
        mount("config", paths.SLURM, read_only=True),
        users,
        *MUNGE_SOCKET,
        state,
        mount("notify-settings", _SETTINGS_PATH, read_only=True),
        *urls,
        *program_mounts(*PROGRAMS),
    ]
    return container(
        pods,
        "notify",
        "",
        mounts,
        {"SLURM_CONF": paths.SLURM_CONF},
        requests=("10m", "32Mi"),
        command=program_command("notify", pods["cluster"], f"{_SETTINGS_PATH}/{_FILE}", str(_INTERVAL_S)),
        workingDir=paths.PACKAGES,
        # SlurmUser: if PrivateData hides jobs, others do not see all of them.
        securityContext=confined(SLURM_UID),
    )


def notify_volumes(pods: PodDefaults, receivers: Iterable[NewsReceiver]) -> list[Manifest]:
    """The volumes of the settings and of the Secrets."""
    secrets = [secret_volume(_volume(name), secret) for name, secret in _secrets(receivers).items()]
    for volume in secrets:
        volume["secret"]["optional"] = True
    return [config_volume("notify-settings", _settings_name(pods["cluster"])), *secrets]


def _secrets(receivers: Iterable[NewsReceiver]) -> dict[str, str]:
    """Names of the Secrets with the key `url`, by the names of their webhooks."""
    return {receiver.name: receiver.url_secret for receiver in receivers if receiver.url_secret is not None}


def _volume(name: str) -> str:
    return f"notify-url-{name}"


def _settings_name(cluster: str) -> str:
    return object_name(cluster, "notify")
