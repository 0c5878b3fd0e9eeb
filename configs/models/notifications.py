"""Config of what the cluster tells people: mail about their jobs, through an SMTP relay. What a mail says is in programs/mail."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import Host, Matching, Model, ObjectName, Port

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


class Notifications(Model):
    """What the cluster tells people by itself."""

    smtp: Smtp | None = None
    """The relay for mail about jobs. Default: none, and `--mail-type` is refused."""
