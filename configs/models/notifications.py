"""Config of the cluster's messages to people. Users get mail about their jobs, through an SMTP relay; webhooks and mail addresses get news
of jobs and nodes. The text of mails is in programs/mail, that of news in programs/notify."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import Flag, Host, Matching, Model, Name, ObjectName, Port, dns_label

_DOMAIN = r"[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9]([A-Za-z0-9-]{0,62}))*"
MailAddress = Annotated[
    StrictStr,
    AfterValidator(Matching(rf"[A-Za-z0-9._+-]{{1,64}}@{_DOMAIN}", "a mail address, such as slurm@example.com", 254, "slurm@example.com")),
]
MailDomain = Annotated[StrictStr, AfterValidator(Matching(_DOMAIN, "a mail domain, such as example.com", 189, "example.com"))]


class Smtp(Model):
    """The SMTP relay that mail about jobs goes through: what `--mail-type` asks for."""

    host: Host
    """Host name or IP address of the relay."""
    port: Port = Field(default=587, examples=[465])
    """TCP port of the relay."""
    sender: MailAddress
    """Address that the mails come from."""
    domain: MailDomain
    """Domain of users' addresses: mail for a job goes to `<user>@<domain>`, unless `--mail-user` gives another address."""
    tls: Literal["starttls", "tls", "none"] = Field(default="starttls", examples=["tls"])
    """How the connection is encrypted: `starttls`, after a plain greeting; `tls`, from the start, usually on port 465; `none`, not at all.
    The relay's certificate and name are checked."""
    ca_secret: ObjectName | None = Field(default=None, examples=["smtp-ca"])
    """Name of a Secret whose key `ca.crt` has the CA of the relay's certificate. Default: the public CAs that Debian ships."""
    credentials_secret: ObjectName | None = Field(default=None, examples=["smtp-credentials"])
    """Name of a Secret whose keys `username` and `password` the relay asks for. Default: no login."""


Event = Literal["jobEnd", "jobFail", "jobRequeue", "nodeDrain", "nodeResume"]
NewsName = Annotated[StrictStr, AfterValidator(dns_label(20, "vision-chat"))]
"""Part of the name of a volume, and of the word that users put into `--comment`."""


class NewsReceiver(Model):
    """A receiver of news of jobs and nodes: a webhook, or mail addresses. docs/operate/notifications.md shows what arrives."""

    name: NewsName
    """Name of the receiver."""
    kind: Literal["slack", "webhook", "mail"] = Field(default="slack", examples=["mail"])
    """slack: a webhook that takes Slack's format, as Slack, Mattermost and others do. webhook: JSON with the facts as fields. mail: through
    the relay of `notifications.smtp`."""
    url_secret: ObjectName | None = Field(default=None, examples=["vision-chat"])
    """With slack and webhook: name of a Secret in the cluster's namespace, whose key `url` has the address to send to."""
    to: tuple[MailAddress, ...] = Field(default=(), examples=[["vision@example.com"]])
    """With mail: the addresses."""
    events: tuple[Event, ...] = ("jobEnd",)
    """The news that it gets. jobEnd: each job that has ended. jobFail: those that neither completed nor were cancelled. jobRequeue: runs of
    jobs that were put back into the queue. nodeDrain: nodes that go out of service, with cause and evidence. nodeResume: nodes that are
    back."""
    accounts: tuple[Name, ...] = Field(default=(), examples=[["vision"]])
    """Jobs of these accounts. Default: of all."""
    users: tuple[Name, ...] = Field(default=(), examples=[["alice"]])
    """Jobs of these users. Default: of all."""
    partitions: tuple[Name, ...] = Field(default=(), examples=[["gpu"]])
    """Jobs and nodes of these partitions. Default: of all."""
    only_asked: Flag = False
    """True: only jobs whose user asks for it, with the word `notify:NAME` in `--comment`. With or without it, a receiver of jobs' events
    whose name a job's comment has also hears of drains of the nodes under that job."""

    @property
    def is_told_of_jobs(self) -> bool:
        """True when one of the events is one of jobs."""
        return any(event.startswith("job") for event in self.events)


class Notifications(Model):
    """What the cluster tells people by itself."""

    smtp: Smtp | None = None
    """The relay for mail about jobs. Default: none, and `--mail-type` is answered by a warning."""
    receivers: tuple[NewsReceiver, ...] = Field(
        default=(), examples=[[{"name": "vision", "urlSecret": "vision-chat", "accounts": ["vision"], "events": ["jobFail"]}]]
    )
    """Webhooks and mail addresses that get news of ended jobs and of nodes out of service. Default: none."""
