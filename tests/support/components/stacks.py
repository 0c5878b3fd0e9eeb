"""The two example stacks as the components get them: checked, and with their defaults worked out."""

from typing import Any

from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.models.node_set import Remedies
from tests.support.components.program import ROOT, stack_config
from tests.support.configs.stacks import cluster

DEV, H100 = (load_cluster(stack_config(stack), ROOT, f"Pulumi.{stack}.yaml") for stack in ("dev", "h100"))

SERVED = cluster(
    "dev",
    {
        "deletionProtection": True,
        "storage.nfsServer": {"size": "1Ti", "storageClass": "fast", "clusterIP": "10.96.20.49"},
        "storage.sharedRoot": {"nfsServer": True},
        "storage.home": {"nfsServer": True},
        "storage.mounts": [{"name": "data", "mountPath": "/data", "nfsServer": True}],
    },
)
"""With an NFS server of its own."""


def repairing(remedies: Remedies | None, **parts: Any) -> Cluster:
    """The stack `dev` with these remedies in all its node sets, and with other `parts`."""
    node_sets = tuple(each.model_copy(update={"remedies": remedies}) for each in DEV.node_sets)
    return DEV.model_copy(update={"node_sets": node_sets, **parts})
