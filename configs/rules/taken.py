"""Names that the stack's own parts have, in a worker's pod and in the namespace: what users name must not meet them.

tests/unit/components/test_names.py compares these lists with what the components make.
"""

import re
from collections.abc import Iterable

from configs.models.cluster import Cluster

POD_VOLUMES = frozenset(
    """
    home munge-key node-host-keys program-munged program-worker root run shared-root shm slurm spool tmp user-keys users
    """.split()  # noqa: SIM905 - words read better than a dozen quotes
)
"""Volumes that a worker's pod may have, whatever the config says today; those of storage.mounts are `mount-<name>`."""

PROGRAMS = frozenset({"identity", "login", "mariadb", "nfs", "nodeset-controller", "slurmctld", "slurmd", "slurmdbd", "slurmrestd"})
"""The cluster's own programs: their pods, Services and disruption budgets are called `<cluster>-<program>`."""

DISKS = {"slurmctld": "state", "mariadb": "data", "nfs": "data"}
"""Programs with a disk of their own, and its name: the claim is called `<disk>-<cluster>-<program>-0`."""


def own_claims(cluster: Cluster) -> dict[str, str]:
    """The claims that the stack makes or may make, by name, each with what it is for; those of node sets are left out."""
    storage = cluster.storage
    made = {f"{disk}-{cluster.name}-{program}-0": f"the disk of {program}" for program, disk in DISKS.items()}
    sources = {"shared-root": storage.shared_root, "home": storage.home}
    sources |= {f"mount-{mount.name}": mount for mount in storage.mounts}
    if cluster.backup is not None:
        sources["backup"] = cluster.backup.volume
    if cluster.accounting.archive is not None:
        sources["archive"] = cluster.accounting.archive.volume
    return made | {f"{cluster.name}-{name}": f"the volume {name}" for name, source in sources.items() if source.claim is None}


def node_claims(cluster: Cluster) -> Iterable[tuple[int, int, str]]:
    """Positions of node set and volume claim, and what the claims of its nodes are called before `-<ordinal>`."""
    for at, node_set in enumerate(cluster.node_sets):
        for position, claim in enumerate(node_set.volume_claims):
            yield at, position, f"{claim.name}-{node_set.name}"


def is_of(base: str, name: str) -> bool:
    """True when a name is `<base>-<ordinal>`."""
    return re.fullmatch(rf"{re.escape(base)}-\d+", name) is not None
