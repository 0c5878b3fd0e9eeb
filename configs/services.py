"""Config of what runs beside Slurm's core: images, the Kubernetes to deploy to, accounting, health checks."""

from typing import Literal

from pydantic import Field

from configs.fields import CheckName, Flag, ImageReference, Line, Model, ObjectName, Seconds
from configs.storage import Disk

CheckKind = Literal["disk", "memory", "clock", "gpu"]


class Kubernetes(Model):
    """Which cluster the provider talks to. The kubeconfig comes from KUBECONFIG or the provider's own default."""

    context: Line | None = Field(default=None, min_length=1)
    cluster_identifier: Line | None = Field(default=None, min_length=1)
    """What tells this Kubernetes cluster from others for the provider: a change replaces everything. Default: the cluster's name."""


class Images(Model):
    """The images of the pods."""

    slurm: ImageReference | None = None
    """Image of every Slurm role. Default: localhost/slipway/slurm with the content tag of images/slurm."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    pull_secrets: tuple[ObjectName, ...] = ()
    """Names of Secrets in the cluster's namespace."""


class Accounting(Model):
    """slurmdbd with MariaDB."""

    enabled: Flag = True
    storage: Disk = Disk()
    """The database's disk."""


class HealthCheck(Model):
    """One check, run as a Slurm job on each idle node of the sets at each tick of the schedule."""

    name: CheckName
    check: CheckKind
    schedule: Line
    """Cron's five fields, in the time zone of the Kubernetes controller manager."""
    node_sets: tuple[str, ...]
    timeout_s: Seconds = 60
    """After so many seconds the check counts as unknown."""
    settings: dict[str, int] = {}
    """Limits of the check; `configs.checks.CHECK_SETTINGS` lists them with their defaults."""
