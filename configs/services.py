"""Config of what runs beside Slurm's core: images, the Kubernetes to deploy to, health checks."""

from collections.abc import Mapping
from typing import Literal

from configs.fields import (
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
    wait_for_drains: Flag = False
    """True: `pulumi up` waits until a removed node set is drained, and fails after `slurm.resumeTimeoutS` and five minutes."""


class Images(Model):
    """The images of the pods."""

    slurm: ImageReference | None = None
    """Image of every Slurm role. Default: localhost/slipway/slurm with the content tag of images/slurm."""
    controllers: ImageReference | None = None
    """Image of the controllers. Default: localhost/slipway/controllers with the content tag of images/controllers and controllers/."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    pull_secrets: tuple[ObjectName, ...] = ()
    """Names of Secrets in the cluster's namespace."""


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
