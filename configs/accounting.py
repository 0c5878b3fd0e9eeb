"""Config of the accounting database: the cluster's own or another, what slurmdbd keeps, backups of it and of slurmctld's state, and the
generations of the cluster's keys."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from configs.fields import (
    AccountName,
    DatabaseName,
    Flag,
    Host,
    Line,
    Model,
    ObjectName,
    Port,
    Positive,
    PurgeAge,
    RestorePoint,
    StorageUser,
    Whole,
    at_most,
)
from configs.limits import Account, Enforce, Qos
from configs.storage import Disk, Source

ArchivedRecord = Literal["events", "jobs", "jobScript", "jobEnv", "resvs", "steps", "suspend", "txn", "usage"]


class ExternalDatabase(Model):
    """A MariaDB or MySQL server that somebody else runs."""

    host: Host
    port: Port = 3306
    database: DatabaseName = "slurm_acct_db"
    """It exists, or `user` may make it."""
    user: StorageUser = "slurm"
    """A user of the database with all rights on it."""
    password_secret: ObjectName
    """A Secret in the cluster's namespace, with the password in its key `password`."""
    tls: Flag = True
    """Encrypted, and the server's certificate and name checked."""
    ca_secret: ObjectName | None = None
    """A Secret with the certificate of who signed the server's, in its key `ca.crt`. Default: the public ones that Debian ships."""


class Purge(Model):
    """How long slurmdbd keeps records: a number with a unit, as in 12months, 30days or 48hours. What is left out stays for ever."""

    events: PurgeAge | None = None
    """Of nodes: down, drained."""
    jobs: PurgeAge | None = None
    job_script: PurgeAge | None = None
    """Default: as long as the job."""
    job_env: PurgeAge | None = None
    """Default: as long as the job."""
    resvs: PurgeAge | None = None
    steps: PurgeAge | None = None
    suspend: PurgeAge | None = None
    txn: PurgeAge | None = None
    """Of changes that administrators made."""
    usage: PurgeAge | None = None
    """The sums that sreport shows."""


class Archive(Model):
    """Files that slurmdbd writes what it purges to; `sacctmgr archive load` reads them again."""

    records: Annotated[tuple[ArchivedRecord, ...], Field(min_length=1)]
    """Which of them, in the words of `purge`."""
    volume: Source


class Accounting(Model):
    """slurmdbd with a MariaDB server of its own, or with an external one, and what is kept in it: accounts, users and QOS."""

    enabled: Flag = True
    storage: Disk | None = None
    """The disk of the cluster's own database. Default, without `external`: one of 5Gi."""
    external: ExternalDatabase | None = None
    purge: Purge = Purge()
    archive: Archive | None = None
    enforce: tuple[Enforce, ...] = ()
    """Slurm's AccountingStorageEnforce; default: nothing. associations: only users of accounts may submit; the others include that."""
    accounts: tuple[Account, ...] = ()
    """Slurm's accounts. Those that an administrator makes beside them are left alone."""
    qos: tuple[Qos, ...] = ()
    default_account: AccountName | None = None
    """Account of all users who are in no other; made where `accounts` does not have it."""

    @property
    def is_kept(self) -> bool:
        """True when the file says anything of accounts, an empty list too: that takes away what was there before."""
        return self.enabled and not self.model_fields_set.isdisjoint({"enforce", "accounts", "qos", "default_account"})

    @property
    def disk(self) -> Disk:
        """The disk of the cluster's own database."""
        return self.storage or Disk()


class Backup(Model):
    """Backups of the accounting database and of slurmctld's state, both on one volume, each cluster in a folder of its own name."""

    volume: Source
    schedule: Line = "30 2 * * *"
    """When the database is dumped: cron's five fields, in the time zone of the Kubernetes controller manager."""
    keep: Annotated[Positive, AfterValidator(at_most(1000))] = 14
    """So many backups stay; of slurmctld's state also the last one of so many days."""
    state_interval_s: Annotated[Whole, Field(ge=60, le=86_400)] = 600
    """Time between copies of slurmctld's state, in seconds."""
    restore_from: RestorePoint | None = None
    """What an empty database, or an empty disk of slurmctld, is filled from: `latest`, the newest backup up to a time such as
    2026-01-31T02-30-00Z, or `nothing`. Without it they wait for this word as long as there are backups. Never touches what is not empty."""


class Keys(Model):
    """Generations of the cluster's keys: one more makes a new key. docs/accounting.md says what restarts; jobs run on."""

    munge: Annotated[Positive, AfterValidator(at_most(1000))] = 1
    jwt: Annotated[Positive, AfterValidator(at_most(1000))] = 1
    database: Annotated[Positive, AfterValidator(at_most(1000))] = 1
    """The password of the accounting database; of an external one, raise it when its Secret has changed."""
    keep: tuple[Literal["munge", "jwt"], ...] = ()
    """Keys that stay as they are in the cluster, whatever their generation. docs/pulumi.md says for which stacks."""
    spread_s: Annotated[Whole, Field(ge=10, le=240)] = 120
    """Time in which all kubelets bring a changed Secret to pods, in seconds: their syncFrequency, a minute by default, twice."""
