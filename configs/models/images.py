"""Config of the images of the pods."""

from typing import Literal

from pydantic import Field

from configs.models.fields import ImageReference, Model, ObjectName


class Images(Model):
    """The images of the pods. The wheel of a release has other defaults: the images of that release, by their digests."""

    slurm: ImageReference | None = None
    """Image of every Slurm role. Default: localhost/slipway/slurm with the content tag of images/slurm."""
    root: ImageReference | None = None
    """Image that versions of the shared root are filled from, unless they name another source. Default: localhost/slipway/root with the
    content tag of images/root, images/slurm and examples."""
    controllers: ImageReference | None = None
    """Image of the controllers. Default: localhost/slipway/controllers with the content tag of images/controllers and controllers/."""
    observability: ImageReference | None = None
    """Image of Prometheus and Alertmanager, for `monitoring`. Default: localhost/slipway/observability with the content tag of
    images/observability."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When the kubelet pulls the images: Kubernetes' imagePullPolicy."""
    pull_secrets: tuple[ObjectName, ...] = Field(default=(), examples=[["registry-login"]])
    """Names of image pull Secrets in the cluster's namespace."""
