"""Claims that a StatefulSet or a node set makes for its pods."""

from components.labels import Manifest
from configs.models.nfs_server import NfsServer
from configs.models.node_set import VolumeClaim
from configs.models.storage import Disk


def claim_template(name: str, disk: Disk | NfsServer | VolumeClaim) -> Manifest:
    """The claim of each pod. Without a class, it has the Kubernetes cluster's default class."""
    spec: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": disk.size}}}
    if disk.storage_class is not None:
        spec["storageClassName"] = disk.storage_class
    return {"metadata": {"name": name}, "spec": spec}


def claim_retention(deletion_protection: bool) -> Manifest:
    """Whether a StatefulSet's claims outlive it. Scaling never removes a claim."""
    return {"whenDeleted": "Retain" if deletion_protection else "Delete", "whenScaled": "Retain"}
