"""Mail about jobs: a container beside slurmctld that sends what slurmctld leaves on its disk. Alone it has the relay's credentials.

A change of the relay restarts slurmctld's pod; a change of the Secrets takes effect without.
"""

import json
from typing import NotRequired, TypedDict

from components.labels import Manifest
from components.pods import SLURM_UID, PodDefaults, confined, container, mount, program_command, program_mounts, secret_volume
from configs.models.notifications import Smtp
from names import paths

_CREDENTIALS_PATH = "/etc/slipway/mail-credentials"
_CA_PATH = "/etc/slipway/mail-ca"


class MailArgs(TypedDict):
    """The relay."""

    host: str
    """Host name or IP address."""
    port: int
    """TCP port."""
    sender: str
    """Address that mails come from."""
    tls: str
    """starttls, tls or none."""
    ca_secret: NotRequired[str]
    """Secret with `ca.crt`; the public CAs where left out."""
    credentials_secret: NotRequired[str]
    """Secret with `username` and `password`; no login where left out."""


def mail_args(smtp: Smtp) -> MailArgs:
    made: MailArgs = {"host": smtp.host, "port": smtp.port, "sender": smtp.sender, "tls": smtp.tls}
    if smtp.ca_secret is not None:
        made["ca_secret"] = smtp.ca_secret
    if smtp.credentials_secret is not None:
        made["credentials_secret"] = smtp.credentials_secret
    return made


def build_settings(mail: MailArgs) -> str:
    """Settings of the program, as JSON. The credentials are in their own files."""
    said = {
        "host": mail["host"],
        "port": mail["port"],
        "sender": mail["sender"],
        "tls": mail["tls"],
        "ca_file": f"{_CA_PATH}/ca.crt" if "ca_secret" in mail else "",
        "credentials": _CREDENTIALS_PATH if "credentials_secret" in mail else "",
    }
    return json.dumps(said, sort_keys=True)


def build_mail(pods: PodDefaults, mail: MailArgs, state: Manifest) -> Manifest:
    """The container that sends. `state` is the mount of slurmctld's disk, where the mails wait."""
    mounts = [
        state,
        *([mount("mail-credentials", _CREDENTIALS_PATH, read_only=True)] if "credentials_secret" in mail else []),
        *([mount("mail-ca", _CA_PATH, read_only=True)] if "ca_secret" in mail else []),
        *program_mounts("mail"),
    ]
    return container(
        pods,
        "mail",
        "",
        mounts,
        requests=("10m", "24Mi"),
        command=program_command("mail", build_settings(mail)),
        workingDir=paths.PACKAGES,
        securityContext=confined(SLURM_UID),
    )


def mail_volumes(mail: MailArgs) -> list[Manifest]:
    """The volumes of the Secrets."""
    secrets = [("mail-credentials", mail.get("credentials_secret")), ("mail-ca", mail.get("ca_secret"))]
    return [secret_volume(name, secret) for name, secret in secrets if secret]
