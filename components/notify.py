"""News of jobs and nodes: a container beside slurmctld that tells webhooks and mail addresses. Alone it has the addresses of webhooks.

A change of filters restarts nothing: the kubelet brings the new settings within a minute. Another webhook is another Secret to mount, and
restarts slurmctld's pod. A Secret that is missing keeps no pod from starting: its webhook is told once it is there.
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
"""What the container runs: the words about jobs, and the spool of mails, are in programs/mail."""
_SETTINGS_PATH = "/etc/slipway/notify-settings"
_FILE = "receivers.json"
_INTERVAL_S = 15
"""Seconds between two readings of Slurm; one that is slow makes its own pause longer (slurm/ended.py)."""


def build_receivers(receivers: Iterable[NewsReceiver]) -> list[Receiver]:
    """The receivers in the form that the program reads."""
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
    """The ConfigMap of the receivers. Mutable: the program reads it again and again."""
    return config_map(_settings_name(cluster), namespace, labels(cluster, "notify"), {_FILE: to_json(build_receivers(receivers))})


def build_notify(pods: PodDefaults, receivers: Iterable[NewsReceiver], state: Manifest, users: Manifest) -> Manifest:
    """The container. `state` is the mount of slurmctld's disk, where messages wait, `users` that by which squeue names users."""
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
        # SlurmUser: where PrivateData hides jobs, others do not see all of them.
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
