"""Rules of mail about jobs: no password crosses the network readable, and one part of the config says who sends."""

from configs.faults import Fault
from configs.models.cluster import Cluster
from slurm.conf import known

_PATH = "cluster.notifications.smtp"


def check_notifications(cluster: Cluster) -> list[Fault]:
    """Faults of `notifications`."""
    smtp = cluster.notifications.smtp
    if smtp is None:
        return []
    faults: list[Fault] = []
    if smtp.tls == "none":
        if smtp.credentials_secret is not None:
            message = "would send its password readable: `tls` is none. Take starttls or tls, or leave the credentials out."
            faults.append(Fault(f"{_PATH}.credentialsSecret", message, (f"{_PATH}.tls",)))
        if smtp.ca_secret is not None:
            message = "has nothing to verify: `tls` is none. Leave it out, or take starttls or tls."
            faults.append(Fault(f"{_PATH}.caSecret", message, (f"{_PATH}.tls",)))
    if (smtp.port, smtp.tls) in ((465, "starttls"), (587, "tls")):
        other = "tls" if smtp.port == 465 else "starttls"
        message = f"{smtp.port} is the port of `tls: {other}`, and `tls` is {smtp.tls}: each side would wait for the other. Change one."
        faults.append(Fault(f"{_PATH}.port", message, (f"{_PATH}.tls",)))
    for key in cluster.slurm.settings:
        if name := known(key, ("MailProg", "MailDomain")):
            message = f"is set by notifications.smtp. Leave {name} out, or remove notifications.smtp."
            faults.append(Fault(f"cluster.slurm.settings.{key}", message, (_PATH,)))
    return faults
