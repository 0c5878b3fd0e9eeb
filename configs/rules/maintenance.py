"""Rules of maintenance: that jobs are warned before they are requeued."""

from configs.faults import Fault
from configs.models.cluster import Cluster

_LEAST_S = 60
"""A job is requeued only after a round that has seen its warning: four rounds of 15 s."""


def check_maintenance(cluster: Cluster) -> list[Fault]:
    """Faults of the settings for maintenance."""
    given = cluster.maintenance
    if given.warn_before_s >= given.requeue_before_s + _LEAST_S:
        return []
    message = (
        f"{given.warn_before_s} is not {_LEAST_S} more than requeueBeforeS ({given.requeue_before_s}): jobs would be requeued before they"
        " could save their work. Raise it."
    )
    return [Fault("cluster.maintenance.warnBeforeS", message, ("cluster.maintenance.requeueBeforeS",))]
