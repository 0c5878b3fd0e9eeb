"""Rules of mail and of receivers of news. No password crosses the network readable, and one part of the config names the sender. Each
receiver can be reached, and has news to get."""

from collections.abc import Iterator

from configs.faults import Fault, quoted
from configs.models.cluster import Cluster
from configs.models.monitoring import Receiver
from configs.models.notifications import NewsReceiver
from configs.rules.names import Names, check_distinct, check_references, check_unique
from slurm.conf import known
from slurm.people import is_name

_PATH = "cluster.notifications.smtp"
_RECEIVERS = "cluster.notifications.receivers"


def check_notifications(cluster: Cluster, names: Names) -> list[Fault]:
    """Faults of `notifications`."""
    return [*_check_smtp(cluster), *_check_receivers(cluster, names)]


def check_address(path: str, receiver: Receiver | NewsReceiver, cluster: Cluster) -> Iterator[Fault]:
    """Faults of where a receiver is: of alerts, or of news."""
    kind, of_kind = receiver.kind, (f"{path}.kind",)
    is_mail = kind == "mail"
    if is_mail and not receiver.to:
        yield Fault(f"{path}.to", "is missing: a mail needs at least one address.", of_kind)
    if not is_mail and receiver.to:
        yield Fault(f"{path}.to", f"are addresses of mail, and this is a {kind}. Leave them out, or say kind: mail.", of_kind)
    if is_mail and receiver.url_secret is not None:
        yield Fault(f"{path}.urlSecret", "does nothing with kind: mail. Leave it out; the relay is notifications.smtp.", of_kind)
    if not is_mail and receiver.url_secret is None:
        message = "is missing: name a Secret whose key `url` has the address. The address itself would be readable in the ConfigMap."
        yield Fault(f"{path}.urlSecret", message, of_kind)
    if is_mail and cluster.notifications.smtp is None:
        yield Fault(f"{path}.kind", "mail needs a relay: give notifications.smtp.", ("cluster.notifications.smtp",))


def _check_receivers(cluster: Cluster, names: Names) -> Iterator[Fault]:
    receivers = cluster.notifications.receivers
    yield from check_unique(_RECEIVERS, "receiver", [receiver.name for receiver in receivers])
    for at, receiver in enumerate(receivers):
        path = f"{_RECEIVERS}[{at}]"
        yield from check_address(path, receiver, cluster)
        yield from check_distinct(f"{path}.to", receiver.to)
        yield from _check_events(path, receiver, cluster)
        yield from _check_filters(path, receiver, cluster, names)


def _check_events(path: str, receiver: NewsReceiver, cluster: Cluster) -> Iterator[Fault]:
    if not receiver.events:
        yield Fault(f"{path}.events", "is empty, so that the receiver gets no news. Name events, or remove the receiver.")
    yield from check_distinct(f"{path}.events", receiver.events)
    if {"jobEnd", "jobFail"} <= set(receiver.events):
        yield Fault(f"{path}.events", "names jobFail, which jobEnd includes. Leave one of the two out.")
    if not receiver.is_told_of_jobs:
        for key, value in (("accounts", receiver.accounts), ("users", receiver.users), ("onlyAsked", receiver.only_asked)):
            if value and receiver.events:
                message = "is about jobs, and no event here is one of a job. Leave it out, or add jobEnd."
                yield Fault(f"{path}.{key}", message, (f"{path}.events",))
    elif not cluster.accounting.enabled:
        message = "names events of jobs, which come from accounting, and `enabled` is false. Leave them out; users have --mail-type."
        yield Fault(f"{path}.events", message, ("cluster.accounting.enabled",))
    for key, flags in cluster.slurm.settings.items() if receiver.only_asked else ():
        if known(key, ("AccountingStoreFlags",)) and "job_comment" not in str(flags):
            message = f"goes by the comments of jobs, and slurm.settings.{key} leaves out job_comment. Add it, or leave onlyAsked out."
            yield Fault(f"{path}.onlyAsked", message, (f"cluster.slurm.settings.{key}",))


def _check_filters(path: str, receiver: NewsReceiver, cluster: Cluster, names: Names) -> Iterator[Fault]:
    accounting, has_directory = cluster.accounting, cluster.login.ldap is not None
    accounts = None
    if accounting.is_kept and names.accounts is not None:
        accounts = names.accounts | ({accounting.default_account} if accounting.default_account else set[str]()) | {"root"}
    yield from check_references(f"{path}.accounts", "account of accounting.accounts", receiver.accounts, accounts)
    yield from check_references(f"{path}.users", "user of login.users", receiver.users, None if has_directory else names.users)
    for at, name in enumerate(receiver.users if has_directory else ()):
        if not is_name(name):
            message = "is not a name that a user can have here: lower-case letters, digits and any of _ . -, first a letter."
            yield Fault(f"{path}.users[{at}]", f"{quoted(name)} {message}")
    partitions = frozenset(partition.name for partition in cluster.partitions)
    yield from check_references(f"{path}.partitions", "partition", receiver.partitions, partitions)


def _check_smtp(cluster: Cluster) -> list[Fault]:
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
        usual_tls = "tls" if smtp.port == 465 else "starttls"
        message = f"{smtp.port} is the port of `tls: {usual_tls}`, and `tls` is {smtp.tls}: each side would wait for the other. Change one."
        faults.append(Fault(f"{_PATH}.port", message, (f"{_PATH}.tls",)))
    for key in cluster.slurm.settings:
        if name := known(key, ("MailProg", "MailDomain")):
            message = f"is set by notifications.smtp. Leave {name} out, or remove notifications.smtp."
            faults.append(Fault(f"cluster.slurm.settings.{key}", message, (_PATH,)))
    return faults
