"""Rules of the cluster's keys: no generation of a key that does not exist."""

from configs.faults import Fault
from configs.models.cluster import Cluster


def check_keys(cluster: Cluster) -> list[Fault]:
    """Faults of the generations."""
    if cluster.keys.database > 1 and not cluster.accounting.enabled:
        message = "there is no database while accounting.enabled is false. Leave it out."
        return [Fault("cluster.keys.database", message, ("cluster.accounting.enabled",))]
    return []
