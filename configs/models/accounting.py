"""Config of the accounting database: the cluster's own or another, and what slurmdbd keeps."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.accounts import Account, AccountName, Enforce, Qos
from configs.models.fields import (
    Flag,
    Host,
    Matching,
    Model,
    ObjectName,
    Port,
)
from configs.models.storage import Disk, Source
from names import ports

DatabaseName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z][A-Za-z0-9_]*", "a database's name: letters, digits and underscores, first a letter", 64, "slurm_acct_db")
    ),
]
StorageUser = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z_][A-Za-z0-9_.@-]*", "a user of a database: letters, digits and any of _ . @ -, first a letter", 80, "slurm")
    ),
]
PurgeAge = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"([1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])(hours?|days?|months?)",
            "an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535",
            12,
            "12months",
        ),
    ),
]
"""slurmdbd takes a bare number for months, and hours, days and months by the start of the word. A larger
number would run into the bits that hold the unit. Source: slurmdb_parse_purge and SLURMDB_PURGE_BASE of 26.05."""

ArchivedRecord = Literal["events", "jobs", "jobScript", "jobEnv", "resvs", "steps", "suspend", "txn", "usage"]


class ExternalDatabase(Model):
    """A MariaDB or MySQL server that somebody else runs."""

    host: Host
    """Host name or IP address of the server."""
    port: Port = Field(default=ports.MARIADB, examples=[3307])
    """TCP port of the server."""
    database: DatabaseName = Field(default="slurm_acct_db", examples=["slurm_prod"])
    """Name of the database. It exists, or `user` may create it."""
    user: StorageUser = Field(default="slurm", examples=["slurmdbd"])
    """Database user with all rights on it."""
    password_secret: ObjectName = Field(examples=["slurm-db"])
    """Name of a Secret in the cluster's namespace whose key `password` has the user's password."""
    tls: Flag = True
    """True: the connection is encrypted, and the server's certificate and name are checked."""
    ca_secret: ObjectName | None = Field(default=None, examples=["slurm-db-ca"])
    """Name of a Secret whose key `ca.crt` has the CA of the server's certificate. Default: the public CAs that Debian ships."""


class Purge(Model):
    """How long slurmdbd keeps records: a number with a unit, such as 12months, 30days or 48hours. Kinds left out are kept for ever."""

    events: PurgeAge | None = None
    """Events of nodes, such as down and drained."""
    jobs: PurgeAge | None = None
    """Jobs."""
    job_script: PurgeAge | None = None
    """Batch scripts. Default: as long as the job."""
    job_env: PurgeAge | None = None
    """Environments of jobs. Default: as long as the job."""
    resvs: PurgeAge | None = None
    """Reservations."""
    steps: PurgeAge | None = None
    """Job steps."""
    suspend: PurgeAge | None = None
    """Suspensions of jobs."""
    txn: PurgeAge | None = None
    """Transactions: changes that administrators made."""
    usage: PurgeAge | None = None
    """Usage totals, which sreport shows."""


class Archive(Model):
    """Files to which slurmdbd writes the records that it purges; `sacctmgr archive load` reads them back."""

    records: Annotated[tuple[ArchivedRecord, ...], Field(min_length=1)] = Field(examples=[["jobs", "steps"]])
    """Kinds of records to archive, in the words of `purge`, which must have an age for each."""
    volume: Source = Field(examples=[{"claim": "slurm-archive"}])
    """Shared volume that the files are written to."""


class Accounting(Model):
    """slurmdbd with a MariaDB server of its own, or with an external one, and what is kept in it: accounts, users and QOS."""

    enabled: Flag = True
    """False: no slurmdbd and no database; there are neither accounts nor fair share."""
    storage: Disk | None = None
    """Disk of the cluster's own database. Default: one of 5Gi, unless `external` is set."""
    external: ExternalDatabase | None = None
    """A database server that exists already, in place of the cluster's own. Default: none."""
    purge: Purge = Purge()
    """How long records are kept."""
    archive: Archive | None = None
    """Files to which records are written when they are purged. Default: none."""
    enforce: tuple[Enforce, ...] = ()
    """Slurm's AccountingStorageEnforce. `associations`: only users of accounts may submit; the others include that. Default: nothing is
    enforced."""
    accounts: tuple[Account, ...] = Field(default=(), examples=[[{"name": "research", "fairshare": 80, "users": ["ada"]}]])
    """Slurm's accounts. Those that an administrator makes in addition are left alone."""
    qos: tuple[Qos, ...] = Field(default=(), examples=[[{"name": "urgent", "priority": 1000}]])
    """Slurm's QOS. Those that an administrator makes in addition are left alone; `normal` always exists."""
    default_account: AccountName | None = None
    """Account of all users who are in no other; made if `accounts` does not list it. Default: none."""

    @property
    def is_kept(self) -> bool:
        """True when the file says anything of accounts, an empty list too: that takes away what was there before."""
        return self.enabled and not self.model_fields_set.isdisjoint({"enforce", "accounts", "qos", "default_account"})

    @property
    def disk(self) -> Disk:
        """The disk of the cluster's own database."""
        return self.storage or Disk()
