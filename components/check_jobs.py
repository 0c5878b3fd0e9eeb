"""Which health checks the NodeSet controller starts as jobs on a node set: after repairs, and before nodes take their first jobs."""

from configs.models.cluster import Cluster
from configs.models.health_checks import looks_at
from configs.models.node_set import NodeSet
from configs.render.health_checks import checks_in
from names import annotations

CHECKS_BEFORE_JOBS = {annotations.CHECKS_BEFORE_JOBS: "true"}
"""The annotation of worker pods that drain their node before slurmd starts, until health checks have passed on the machine."""


def starts_checks(node_set: NodeSet) -> bool:
    """True if the controller starts health checks on nodes of the set."""
    return node_set.remedies is not None or bool(node_set.checks_before_jobs)


def check_jobs(cluster: Cluster, node_set: NodeSet) -> tuple[str, ...]:
    """Names of the checks that the controller may start there; each has a CronJob."""
    names = (check.name for check in checks_in(cluster, "job") if looks_at(check, node_set))
    return tuple(names) if starts_checks(node_set) else ()
