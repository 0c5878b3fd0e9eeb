"""Rules of how the nodes of a set come and go: how many there are, how they are updated and drained, the disks they keep."""

from configs.faults import Fault, quoted
from configs.models.cluster import Cluster
from configs.models.node_set import NodeSet
from configs.rules.names import check_unique
from configs.rules.storage import check_place
from configs.rules.taken import POD_VOLUMES, is_of, node_claims, own_claims


def check_lifecycle(path: str, node_set: NodeSet, cluster: Cluster) -> list[Fault]:
    """Faults of one node set."""
    return _check_count(path, node_set) + _check_replacing(path, node_set) + _check_claims(path, node_set, cluster)


def _check_count(path: str, node_set: NodeSet) -> list[Fault]:
    """Faults of how many nodes: a set is fixed or elastic, and wholly so."""
    size, least, most = node_set.size, node_set.min, node_set.max
    about = (path,)  # another key may be meant for one of the three
    if size is None and least is None and most is None:
        return [Fault(f"{path}.size", "neither size (fixed) nor min and max (elastic) is given. Say how many nodes there are.", about)]
    if size is not None and (least is not None or most is not None):
        other = " and ".join(key for key, value in (("min", least), ("max", most)) if value is not None)
        return [Fault(f"{path}.size", f"stands beside {other}: a set is fixed (size) or elastic (min and max). Keep one.", about)]
    if size is None and least is None:
        return [Fault(f"{path}.min", "is missing: an elastic set has min and max. 0 lets all its nodes go.", about)]
    if size is None and most is None:
        return [Fault(f"{path}.max", "is missing: an elastic set has min and max. For a fixed set, say size.", about)]
    if least is not None and most is not None and least > most:
        return [Fault(f"{path}.min", f"{least} is more than max ({most}). Lower it, or raise max.", (f"{path}.max",))]
    return []


def _check_replacing(path: str, node_set: NodeSet) -> list[Fault]:
    """Faults of how nodes are updated and drained."""
    faults: list[Fault] = []
    update, drain = node_set.update, node_set.drain
    if update.type == "Maintenance" and update.reservation is None:
        message = "is missing: type Maintenance updates nodes while a reservation of Slurm is active. Give its name."
        faults.append(Fault(f"{path}.update.reservation", message, (f"{path}.update",)))
    if update.type != "Maintenance" and update.reservation is not None:
        message = f"goes with type: Maintenance only; {update.type} would not wait for it. Say so, or leave it out."
        faults.append(Fault(f"{path}.update.reservation", message, (f"{path}.update",)))
    if drain.action != "Wait" and drain.deadline_s is None:
        message = f"is missing: {drain.action} needs to know how long the jobs may still run. Say it in seconds, or take action: Wait."
        faults.append(Fault(f"{path}.drain.deadlineS", message, (f"{path}.drain",)))
    if drain.action == "Wait" and drain.deadline_s is not None:
        message = "goes with action: Requeue or Cancel; Wait has no end. Take one of them, or leave it out."
        faults.append(Fault(f"{path}.drain.deadlineS", message, (f"{path}.drain",)))
    return faults


def _check_claims(path: str, node_set: NodeSet, cluster: Cluster) -> list[Fault]:
    """Faults of the nodes' own disks: their names and places in the pods."""
    claims = node_set.volume_claims
    faults = check_unique(f"{path}.volumeClaims", "volume claim", [claim.name for claim in claims])
    shared = cluster.mounts_of(node_set)
    places = {f"cluster.storage.mounts[{at}]": mount.mount_path for at, mount in enumerate(cluster.storage.mounts) if mount in shared}
    for at, claim in enumerate(claims):
        own = f"{path}.volumeClaims[{at}]"
        if claim.name in POD_VOLUMES or claim.name.startswith("mount-"):
            faults.append(Fault(f"{own}.name", f"{quoted(claim.name)} is the name of a volume that workers have. Take another."))
        faults += check_place(f"{own}.mountPath", claim.mount_path, places, is_disk=True)
        places[own] = claim.mount_path
    return faults


def check_claim_names(cluster: Cluster) -> list[Fault]:
    """Faults of claims that would have one name in the namespace: `<claim>-<set>-<ordinal>` is ambiguous, as names may hold dashes."""
    faults: list[Fault] = []
    first: dict[str, tuple[int, int]] = {}
    own = own_claims(cluster)
    sources = {"storage.sharedRoot": cluster.storage.shared_root, "storage.home": cluster.storage.home}
    sources |= {f"storage.mounts[{at}]": mount for at, mount in enumerate(cluster.storage.mounts)}
    sources |= {"backup.volume": cluster.backup.volume} if cluster.backup else {}
    sources |= {"accounting.archive.volume": cluster.accounting.archive.volume} if cluster.accounting.archive else {}
    given = {f"cluster.{path}.claim": source.claim for path, source in sources.items() if source.claim is not None}
    for at, position, base in node_claims(cluster):
        path = f"cluster.nodeSets[{at}].volumeClaims[{position}].name"
        before, earlier = first.setdefault(base, (at, position))
        if before != at:
            other = f"cluster.nodeSets[{before}].volumeClaims[{earlier}]"
            faults.append(Fault(path, f"the disk of its first node would be called {base}-0, as that of {other}. Take another name."))
        for name, what in own.items():
            if is_of(base, name):
                faults.append(Fault(path, f"the disk of a node would be called {name}, which is the name of {what}. Take another."))
        for where, name in given.items():
            if is_of(base, name):
                faults.append(Fault(where, f"{quoted(name)} would be the disk of a node, by {path}. Take another claim."))
    return faults + [Fault(where, f"{quoted(name)} is {own[name]}. Take another claim.") for where, name in given.items() if name in own]
