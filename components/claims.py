"""Disks of daemons' own: claims that a StatefulSet makes."""

from typing import NotRequired, TypedDict

from components.labels import Manifest
from configs.models.node_set import VolumeClaim
from configs.models.storage import Disk


class ClaimArgs(TypedDict):
    """A disk of a daemon's own."""

    size: str
    """Its size, for instance `5Gi`."""
    storage_class: NotRequired[str]
    """Its storage class; the cluster's default where left out."""


def claim_args(disk: Disk | VolumeClaim) -> ClaimArgs:
    """The disk of a daemon or of a worker; without a class, the Kubernetes cluster's default class."""
    args: ClaimArgs = {"size": disk.size}
    if disk.storage_class is not None:
        args["storage_class"] = disk.storage_class
    return args


def claim_template(name: str, claim: ClaimArgs) -> Manifest:
    """The claim that a StatefulSet makes for its pod."""
    spec: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": claim["size"]}}}
    if "storage_class" in claim:
        spec["storageClassName"] = claim["storage_class"]
    return {"metadata": {"name": name}, "spec": spec}


def claim_retention(deletion_protection: bool) -> Manifest:
    """Whether a StatefulSet's claims outlive it; scaling never removes a claim."""
    return {"whenDeleted": "Retain" if deletion_protection else "Delete", "whenScaled": "Retain"}
