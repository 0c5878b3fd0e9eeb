"""The disks of the daemons as declared claims, so that a larger size grows the disk. A StatefulSet adopts the claim with the right name.

Kubernetes never changes a claim template. Both the sets (claim_retention) and these claims decide whether the data is retained.
"""

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
"""In older stacks, Kubernetes' StatefulSet controller created the claim and manages its fields."""
_CLASS = "spec.storageClassName"
"""Its changes are ignored, as in the set: another class would be another disk. An annotation shows them to previews."""


class Disks(pulumi.ComponentResource):
    """Claims of the daemons. A larger size grows a disk in use if its storage class allows that; Kubernetes refuses a smaller one."""

    def __init__(self, name: str, cluster: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Disks", name, {}, opts)
        protected = cluster.deletion_protection
        protecting = pulumi.ResourceOptions(parent=self, protect=protected, retain_on_delete=protected, ignore_changes=[_CLASS])
        for manifest in build_claims(cluster):
            declare(manifest, protecting)
        self.register_outputs({})


def build_claims(cluster: Cluster) -> list[Manifest]:
    """One claim for each disk in the config, with the name that the set's only pod uses."""
    monitoring, server = cluster.monitoring, cluster.storage.nfs_server
    claims = [_claim(cluster, "slurmctld", "state", cluster.storage.state)]
    if cluster.accounting.enabled and cluster.accounting.external is None:
        claims.append(_claim(cluster, "mariadb", "data", cluster.accounting.disk))
    if monitoring is not None and monitoring.prometheus == "Own":
        claims.append(_claim(cluster, PROMETHEUS, "data", monitoring.storage))
    if server is not None:
        claims.append(_claim(cluster, NFS, "data", server))
    return claims


def _claim(cluster: Cluster, component: str, name: str, disk: Disk | NfsServer) -> Manifest:
    """The claim of a component's set; `name` is the name of its claim template."""
    # Not awaited: with WaitForFirstConsumer, a claim binds only when the set's pod uses it.
    full_name = f"{name}-{object_name(cluster.name, component)}-0"
    mark = {annotations.STORAGE_CLASS: disk.storage_class} if disk.storage_class is not None else {}
    about = metadata(full_name, cluster.namespace, labels(cluster.name, component), {**SKIP_AWAIT, **_FORCE, **mark})
    spec = claim_template(name, disk)["spec"]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}
