"""Config of what runs beside Slurm's core: images, the Kubernetes to deploy to, accounting, health checks."""

from collections.abc import Mapping
from typing import Literal

from configs.fields import (
    AccountName,
    CheckName,
    ClusterText,
    Count,
    Flag,
    ImageReference,
    LimitName,
    Line,
    MaxUnavailable,
    Model,
    Name,
    ObjectName,
    Seconds,
)
from configs.limits import Account, Enforce, Qos
from configs.storage import Disk

CheckKind = Literal["disk", "memory", "clock", "gpu"]

CHECK_SETTINGS: Mapping[CheckKind, Mapping[str, int]] = {
    "disk": {"minFreeMiB": 1024, "minFreePercent": 0},
    "memory": {"minAvailablePercent": 50, "maxUncorrectableErrors": 0, "maxCorrectableErrors": 1000},
    "clock": {"maxOffsetS": 5},
    "gpu": {"maxUncorrectableErrors": 0},
}
"""The limits that each kind of check knows, with their defaults."""


class Kubernetes(Model):
    """Which cluster the provider talks to. The kubeconfig comes from KUBECONFIG or the provider's own default."""

    context: ClusterText | None = None
    cluster_identifier: ClusterText | None = None
    """What tells this Kubernetes cluster from others for the provider: a change replaces everything. Default: the cluster's name."""
    install_crds: Flag = True
    """False where somebody else brings the kind NodeSet, or another stack in the same Kubernetes cluster does."""


class Images(Model):
    """The images of the pods."""

    slurm: ImageReference | None = None
    """Image of every Slurm role. Default: localhost/slipway/slurm with the content tag of images/slurm."""
    controllers: ImageReference | None = None
    """Image of the controllers. Default: localhost/slipway/controllers with the content tag of images/controllers and controllers/."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    pull_secrets: tuple[ObjectName, ...] = ()
    """Names of Secrets in the cluster's namespace."""


class Accounting(Model):
    """slurmdbd with MariaDB, and what is kept in it: accounts, users and QOS."""

    enabled: Flag = True
    storage: Disk = Disk()
    """The database's disk."""
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


class HealthCheck(Model):
    """One check, run as a Slurm job on each idle node of the sets at each tick of the schedule."""

    name: CheckName
    check: CheckKind
    schedule: Line
    """Cron's five fields, in the time zone of the Kubernetes controller manager."""
    node_sets: tuple[Name, ...]
    timeout_s: Seconds = 60
    """After so many seconds the check counts as unknown."""
    max_drained: MaxUnavailable = "25%"
    """Nodes that this check may hold drained at once: a number, or a percentage of its nodes, at least one."""
    settings: dict[LimitName, Count] = {}
    """Limits of the check; `CHECK_SETTINGS` lists them with their defaults."""
