"""The disks of the daemons, as claims of their own: a StatefulSet takes the claim that has its name, and a larger size grows the disk.

Kubernetes changes no claim template, so the sets alone could not. What becomes of the data is in the sets (claim_retention) and here.
"""

from collections.abc import Mapping
from typing import NotRequired, TypedDict, cast

import pulumi

from components.claims import claim_template
from components.labels import Manifest, labels, metadata, object_name
from components.nfs_server import COMPONENT as NFS
from components.objects import SKIP_AWAIT, declare
from components.observability import COMPONENT as PROMETHEUS
from configs.models.cluster import Cluster
from configs.models.nfs_server import NfsServer
from configs.models.storage import Disk
from names import annotations

_FORCE = {"pulumi.com/patchForce": "true"}
"""In a stack from before this rule, Kubernetes' own controller has made the claim, and has its fields."""
_CLASS = "spec.storageClassName"
"""Changes of it are ignored, as in the set: another class would be another disk. The mark tells a preview of them."""


class DisksArgs(TypedDict):
    """The disks of one cluster."""

    cluster: str
    """Name of the cluster."""
    namespace: str
    """Namespace of the claims."""
    deletion_protection: bool
    """True where `destroy` keeps them."""
    state: Disk
    """Of slurmctld."""
    database: NotRequired[Disk]
    """Of the cluster's own MariaDB."""
    metrics: NotRequired[Disk]
    """Of the cluster's own Prometheus."""
    nfs: NotRequired[NfsServer]
    """Of the cluster's own NFS server."""


_OF = {"state": ("slurmctld", "state"), "database": ("mariadb", "data"), "metrics": (PROMETHEUS, "data"), "nfs": (NFS, "data")}
"""For each disk the component whose set has it, and its name in the set."""


def disks_args(cluster: Cluster) -> DisksArgs:
    """The disks that the config asks for."""
    args: DisksArgs = {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "deletion_protection": cluster.deletion_protection,
        "state": cluster.storage.state,
    }
    if cluster.accounting.enabled and cluster.accounting.external is None:
        args["database"] = cluster.accounting.disk
    if cluster.monitoring is not None and cluster.monitoring.prometheus == "Own":
        args["metrics"] = cluster.monitoring.storage
    if (server := cluster.storage.nfs_server) is not None:
        args["nfs"] = server
    return args


class Disks(pulumi.ComponentResource):
    """Claims of the daemons. A larger size grows a disk in use, where its storage class can; Kubernetes refuses a smaller one."""

    def __init__(self, name: str, args: DisksArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Disks", name, {}, opts)
        protected = args["deletion_protection"]
        kept = pulumi.ResourceOptions(parent=self, protect=protected, retain_on_delete=protected, ignore_changes=[_CLASS])
        for manifest in build_claims(args):
            declare(manifest, kept)
        self.register_outputs({})


def build_claims(args: DisksArgs) -> list[Manifest]:
    """One claim for each disk, under the name that the set's only pod looks for."""
    disks = cast(Mapping[str, Disk | NfsServer], args)
    return [_claim(args, component, name, disks[disk]) for disk, (component, name) in _OF.items() if disk in disks]


def _claim(args: DisksArgs, component: str, name: str, disk: Disk | NfsServer) -> Manifest:
    # Not waited for: with WaitForFirstConsumer a claim binds only when the set's pod asks for it.
    full_name = f"{name}-{object_name(args['cluster'], component)}-0"
    mark = {annotations.STORAGE_CLASS: disk.storage_class} if disk.storage_class is not None else {}
    about = metadata(full_name, args["namespace"], labels(args["cluster"], component), {**SKIP_AWAIT, **_FORCE, **mark})
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": claim_template(name, disk)["spec"]}
