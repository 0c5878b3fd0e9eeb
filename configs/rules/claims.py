"""Rules of node sets' own disks: their places in the pods, and claim names that no other part of the stack has.

tests/unit/components/test_names.py compares the names listed here with those that the components make.
"""

import re
from collections.abc import Iterable, Mapping

from configs.faults import Fault, quoted
from configs.models.cluster import Cluster
from configs.models.node_set import NodeSet
from configs.models.shapes import shape_of
from configs.render.shared_root import SCRATCH
from configs.rules.names import check_unique
from configs.rules.storage import check_place, volumes_of

POD_VOLUMES = frozenset(
    """
    containers gpu-jobs home munge-key names node-host-keys place program-munged program-node-checks program-worker root run shared-root shm
    slurm spool tmp user-keys users
    """.split()  # noqa: SIM905 - words read better than a dozen quotes
)
"""Volumes that a worker's pod may have, whatever the config says today; those of storage.mounts are `mount-<name>`."""


DISKS = {"slurmctld": "state", "mariadb": "data", "nfs": "data", "prometheus": "data"}
"""Programs with a disk of their own, and its name: the claim is called `<disk>-<cluster>-<program>-0`."""


def check_claims(cluster: Cluster) -> list[Fault]:
    """Faults of the disks that node sets claim for their nodes."""
    faults = _check_names(cluster)
    for at, node_set in enumerate(cluster.node_sets):
        faults += _check_places(f"cluster.nodeSets[{at}]", node_set, cluster)
    return faults


def own_claims(cluster: Cluster) -> dict[str, str]:
    """The claims that the stack may make, by name, each with its purpose; those of node sets are left out."""
    storage = cluster.storage
    claims = {f"{disk}-{cluster.name}-{program}-0": f"the disk of {program}" for program, disk in DISKS.items()}
    sources = {"shared-root": storage.shared_root, "home": storage.home}
    sources |= {f"mount-{mount.name}": mount for mount in storage.mounts}
    if cluster.backup is not None:
        sources["backup"] = cluster.backup.volume
    if cluster.accounting.archive is not None:
        sources["archive"] = cluster.accounting.archive.volume
    return claims | {f"{cluster.name}-{name}": f"the volume {name}" for name, source in sources.items() if source.claim is None}


def _node_claims(cluster: Cluster) -> Iterable[tuple[int, int, str]]:
    """The positions of node set and volume claim, and the name of its claims without `-<ordinal>`."""
    for at, node_set in enumerate(cluster.node_sets):
        for position, claim in enumerate(node_set.volume_claims):
            yield at, position, f"{claim.name}-{node_set.name}"


def _is_of(base: str, name: str) -> bool:
    return re.fullmatch(rf"{re.escape(base)}-\d+", name) is not None


def _check_places(path: str, node_set: NodeSet, cluster: Cluster) -> list[Fault]:
    claims = node_set.volume_claims
    faults = check_unique(f"{path}.volumeClaims", "volume claim", [claim.name for claim in claims])
    shared = cluster.mounts_of(node_set)
    places = {f"cluster.storage.mounts[{at}]": mount.mount_path for at, mount in enumerate(cluster.storage.mounts) if mount in shared}
    for at, claim in enumerate(claims):
        claim_path = f"{path}.volumeClaims[{at}]"
        if claim.name in POD_VOLUMES or claim.name.startswith("mount-"):
            faults.append(Fault(f"{claim_path}.name", f"{quoted(claim.name)} is the name of a volume that workers have. Take another."))
        faults += check_place(f"{claim_path}.mountPath", claim.mount_path, places, is_disk=True)
        places[claim_path] = claim.mount_path
    return [*faults, *_check_job_disks(path, node_set, cluster, places)]


def _check_job_disks(path: str, node_set: NodeSet, cluster: Cluster, places: Mapping[str, str]) -> list[Fault]:
    """Faults of jobs' own folders: another mount at /scratch, or a /tmp in memory that is larger than the node's memory."""
    faults: list[Fault] = []
    taken = [where for where, place in places.items() if place == SCRATCH or place.startswith(f"{SCRATCH}/")]
    if node_set.scratch is not None and taken:
        message = f"jobs have their own {SCRATCH}, which {taken[0]} has already. Give that another place, or leave scratch out."
        faults.append(Fault(f"{path}.scratch", message, (taken[0],)))
    tmp = node_set.tmp
    if tmp is not None and tmp.medium == "Memory" and tmp.size_mib > (memory_mib := shape_of(cluster, node_set).memory_mib):
        message = f"{tmp.size_mib} MiB in memory is more than a node has ({memory_mib}). Lower it, or say medium: Disk."
        faults.append(Fault(f"{path}.tmp.sizeMiB", message, (f"{path}.memoryMiB", f"{path}.pool", "cluster.nodePools")))
    return faults


def _check_names(cluster: Cluster) -> list[Fault]:
    """Faults of claims that would share a name: `<claim>-<set>-<ordinal>` is ambiguous, as names may contain dashes."""
    faults: list[Fault] = []
    first: dict[str, tuple[int, int]] = {}
    stack_claims = own_claims(cluster)
    user_claims = {f"{path}.claim": source.claim for path, source in volumes_of(cluster).items() if source.claim is not None}
    for at, position, base in _node_claims(cluster):
        path = f"cluster.nodeSets[{at}].volumeClaims[{position}].name"
        before, earlier = first.setdefault(base, (at, position))
        if before != at:
            first_path = f"cluster.nodeSets[{before}].volumeClaims[{earlier}]"
            faults.append(Fault(path, f"the disk of its first node would be called {base}-0, as that of {first_path}. Take another name."))
        for name, what in stack_claims.items():
            if _is_of(base, name):
                faults.append(Fault(path, f"the disk of a node would be called {name}, which is the name of {what}. Take another."))
        for where, name in user_claims.items():
            if _is_of(base, name):
                faults.append(Fault(where, f"{quoted(name)} would be the disk of a node, by {path}. Take another claim."))
    return faults + [
        Fault(where, f"{quoted(name)} is {stack_claims[name]}. Take another claim.")
        for where, name in user_claims.items()
        if name in stack_claims
    ]
