"""Mail about jobs: a container beside slurmctld that sends the mails on slurmctld's disk. Only it has the relay's credentials.

A change of the relay restarts slurmctld's pod; a change of the Secrets does not.
"""

from components.labels import Manifest
from components.pods import SLURM_UID, PodDefaults, confined, container, mount, program_command, program_mounts, secret_volume
from configs.models.notifications import Smtp
from names import paths
from programs.mail.settings import Settings, to_json

_CREDENTIALS_PATH = "/etc/slipway/mail-credentials"
_CA_PATH = "/etc/slipway/mail-ca"


def build_settings(smtp: Smtp) -> Settings:
    """The argument of the program, from the config."""
    return Settings(
        host=smtp.host,
        port=smtp.port,
        sender=smtp.sender,
        tls=smtp.tls,
        ca_file=f"{_CA_PATH}/ca.crt" if smtp.ca_secret is not None else "",
        credentials=_CREDENTIALS_PATH if smtp.credentials_secret is not None else "",
    )


def build_mail(pods: PodDefaults, smtp: Smtp, state: Manifest) -> Manifest:
    """The container that sends mails. `state` is the mount of slurmctld's disk, where they wait."""
    mounts = [
        state,
        *([mount("mail-credentials", _CREDENTIALS_PATH, read_only=True)] if smtp.credentials_secret is not None else []),
        *([mount("mail-ca", _CA_PATH, read_only=True)] if smtp.ca_secret is not None else []),
        *program_mounts("mail"),
    ]
    return container(
        pods,
        "mail",
        "",
        mounts,
        requests=("10m", "24Mi"),
        command=program_command("mail", to_json(build_settings(smtp))),
        workingDir=paths.PACKAGES,
        securityContext=confined(SLURM_UID),
    )


def mail_volumes(smtp: Smtp) -> list[Manifest]:
    """The volumes of the Secrets."""
    secrets = [("mail-credentials", smtp.credentials_secret), ("mail-ca", smtp.ca_secret)]
    return [secret_volume(name, secret) for name, secret in secrets if secret]
