"""Config of what runs beside Slurm's core: images, the Kubernetes to deploy to, health checks."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import (
    ClusterText,
    Count,
    Flag,
    ImageReference,
    Line,
    Matching,
    MaxUnavailable,
    Model,
    Name,
    ObjectName,
    Seconds,
    dns_label,
)

CheckName = Annotated[StrictStr, AfterValidator(dns_label(20, "disk"))]
"""A CronJob is called `<cluster>-check-<name>`, and its name may have 52 characters."""
LimitName = Annotated[
    StrictStr, AfterValidator(Matching(r"[a-z][A-Za-z0-9]*", "the name of a limit, such as minFreeMiB", 64, "minFreeMiB"))
]


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
    """Context of the kubeconfig. Default: the kubeconfig's current one."""
    cluster_identifier: ClusterText | None = None
    """Name by which the provider tells this Kubernetes cluster from others; a change replaces every object. Default: the cluster's
    `name`."""
    install_crds: Flag = True
    """False: the custom resource definition of NodeSet comes from elsewhere, such as another stack in the same Kubernetes cluster."""
    wait_for_drains: Flag = False
    """True: `pulumi up` waits until a removed node set is drained, and fails after `slurm.resumeTimeoutS` and five minutes."""


class Images(Model):
    """The images of the pods."""

    slurm: ImageReference | None = None
    """Image of every Slurm role. Default: localhost/slipway/slurm with the content tag of images/slurm."""
    controllers: ImageReference | None = None
    """Image of the controllers. Default: localhost/slipway/controllers with the content tag of images/controllers and controllers/."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When the kubelet pulls the images: Kubernetes' imagePullPolicy."""
    pull_secrets: tuple[ObjectName, ...] = Field(default=(), examples=[["registry-login"]])
    """Names of image pull Secrets in the cluster's namespace."""


class HealthCheck(Model):
    """One check, run as a Slurm job on each idle node of the sets at each tick of the schedule."""

    name: CheckName
    """Name of the check, and part of its CronJob's name."""
    check: CheckKind
    """What is checked: free disk space, memory and its errors, the clock's offset, or the GPUs."""
    schedule: Line
    """When it runs: cron's five fields, in the time zone of the Kubernetes controller manager."""
    node_sets: tuple[Name, ...]
    """Names of the node sets whose nodes are checked."""
    timeout_s: Seconds = 60
    """Time for one run on one node, in seconds. After that the result counts as unknown."""
    max_drained: MaxUnavailable = "25%"
    """Most nodes that this check may hold drained at once: a number, or a percentage of its nodes (at least one node)."""
    settings: dict[LimitName, Count] = {}
    """Limits of the check. disk: minFreeMiB (1024), minFreePercent (0). memory: minAvailablePercent (50), maxUncorrectableErrors (0),
    maxCorrectableErrors (1000). clock: maxOffsetS (5). gpu: maxUncorrectableErrors (0). Default: the values in parentheses."""
