"""Rules of backups: a schedule that Kubernetes understands. Their volume is one of `storage`'s."""

from configs.faults import Fault
from configs.models.cluster import Cluster
from configs.rules.schedules import schedule_mistake


def check_backup(cluster: Cluster) -> list[Fault]:
    """Faults of the schedule."""
    if cluster.backup is not None and (mistake := schedule_mistake(cluster.backup.schedule)):
        return [Fault("cluster.backup.schedule", mistake)]
    return []
