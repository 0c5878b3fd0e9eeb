"""Rules of node sets: how many nodes there are, how they are updated and drained, and what fits on which machine."""

import re
from collections import Counter

from configs.faults import Fault, closest, did_you_mean, quoted, repeats
from configs.models.cluster import Cluster
from configs.models.machines import Gpu, Machine
from configs.models.node_pool import NodePool
from configs.models.node_set import Gpus, NodeSet
from configs.models.shapes import Shape, known_machine, shape_on
from configs.models.slurm_keys import NODE_KEYS, OWN_NODE_KEYS
from configs.rules.names import PROGRAMS, RESERVED_BY_SLURM, Names, check_distinct, check_references, check_unique
from configs.rules.node_settings import check_node_settings
from configs.rules.remedies import check_checks_before_jobs, check_machine_causes, check_remedies
from configs.rules.slurm_types import check_settings
from configs.rules.slurm_words import NODE_VALUES

_MIG_SLICES = 7
"""Parts of a GPU's compute that NVIDIA's MIG hands out. Source: its MIG User Guide, Partitioning."""
_MIG_ROUNDING = 1.05
"""Names of profiles have whole gigabytes, rounded up: two of 3g.71gb fit into 143,771 MiB."""


def check_node_sets(cluster: Cluster, names: Names) -> list[Fault]:
    """Faults of the node sets: their names, their share of the machines, their references."""
    faults = check_unique("cluster.nodeSets", "node set", [node_set.name for node_set in cluster.node_sets])
    if not cluster.node_sets:
        faults.append(Fault("cluster.nodeSets", "is empty: the cluster would have no node."))
    named = {name for partition in cluster.partitions for name in partition.node_sets}
    ours = [node_set.name for node_set in cluster.node_sets]
    used = named | {closest(name, ours) for name in named if name not in ours}  # a misspelled name is reported where it is used
    for at, node_set in enumerate(cluster.node_sets):
        path = f"cluster.nodeSets[{at}]"
        faults += _check_name(f"{path}.name", node_set.name, cluster.name)
        faults += _check_count(path, node_set) + _check_replacing(path, node_set)
        faults += check_remedies(cluster, path, node_set)
        faults += check_checks_before_jobs(cluster, path, node_set)
        faults += check_machine_causes(path, node_set)
        if names.pools is not None and node_set.pool not in names.pools:
            hint = did_you_mean(node_set.pool, names.pools)
            faults.append(Fault(f"{path}.pool", f"no node pool is called {quoted(node_set.pool)}. {hint}"))
        if node_set.name not in used:
            message = f"no partition has the node set {quoted(node_set.name)}, so no job can reach it. Add it to one."
            faults.append(Fault(path, message, ("cluster.partitions", f"{path}.name")))
        faults += check_settings(f"{path}.slurmd", "node", node_set.slurmd, NODE_KEYS, OWN_NODE_KEYS, NODE_VALUES)
        faults += check_references(f"{path}.mounts", "mount of storage.mounts", node_set.mounts or (), names.mounts)
        if node_set.simulated_gpus and node_set.gpus is None:
            faults.append(Fault(f"{path}.simulatedGpus", "there are no GPUs to simulate. Describe them under gpus.", (f"{path}.gpus",)))
        faults += check_distinct(f"{path}.features", node_set.features)
    for at, pool in enumerate(cluster.node_pools):
        if (machine := known_machine(pool)) and cluster.node_pool(pool.name) is pool:
            faults += _check_pool_use(cluster, f"cluster.nodePools[{at}]", pool, machine)
    return faults


def _check_count(path: str, node_set: NodeSet) -> list[Fault]:
    """Faults of the number of nodes: a set is either fixed or elastic."""
    size, least, most = node_set.size, node_set.min, node_set.max
    about = (path,)  # another key may be meant for one of the three
    if size is None and least is None and most is None:
        return [Fault(f"{path}.size", "neither size (fixed) nor min and max (elastic) is given. Set size, or min and max.", about)]
    if size is not None and (least is not None or most is not None):
        elastic_keys = " and ".join(key for key, value in (("min", least), ("max", most)) if value is not None)
        message = f"cannot be combined with {elastic_keys}: a set is fixed (size) or elastic (min and max). Keep one."
        return [Fault(f"{path}.size", message, about)]
    if size is None and least is None:
        return [Fault(f"{path}.min", "is missing: an elastic set has min and max. 0 lets all its nodes go.", about)]
    if size is None and most is None:
        return [Fault(f"{path}.max", "is missing: an elastic set has min and max. For a fixed set, say size.", about)]
    if least is not None and most is not None and least > most:
        return [Fault(f"{path}.min", f"{least} is more than max ({most}). Lower it, or raise max.", (f"{path}.max",))]
    return []


def _check_replacing(path: str, node_set: NodeSet) -> list[Fault]:
    faults: list[Fault] = []
    update, drain = node_set.update, node_set.drain
    if update.type == "Maintenance" and update.reservation is None:
        message = "is missing: type Maintenance updates nodes while a reservation of Slurm is active. Give its name."
        faults.append(Fault(f"{path}.update.reservation", message, (f"{path}.update",)))
    if update.type != "Maintenance" and update.reservation is not None:
        message = f"is only valid with type: Maintenance; {update.type} does not wait for a reservation. Set that or remove this key."
        faults.append(Fault(f"{path}.update.reservation", message, (f"{path}.update",)))
    if drain.action != "Wait" and drain.deadline_s is None:
        message = f"is missing: {drain.action} needs to know how long the jobs may still run. Say it in seconds, or take action: Wait."
        faults.append(Fault(f"{path}.drain.deadlineS", message, (f"{path}.drain",)))
    if drain.action == "Wait" and drain.deadline_s is not None:
        message = "is only valid with action: Requeue or Cancel; Wait has no deadline. Set one of them or remove this key."
        faults.append(Fault(f"{path}.drain.deadlineS", message, (f"{path}.drain",)))
    return faults


def _check_name(path: str, name: str, cluster: str) -> list[Fault]:
    if re.search(r"-\d+$", name):
        shorter = re.sub(r"-(\d+)$", r"\1", name)
        return [Fault(path, f'{quoted(name)} ends like a node of a set. Its nodes would be "{name}-0" and so on; take "{shorter}".')]
    if name in RESERVED_BY_SLURM:
        return [Fault(path, f"{quoted(name)} has a meaning of its own in Slurm. Take another.")]
    if name in {f"{cluster}-{program}" for program in PROGRAMS}:
        return [Fault(path, f"{quoted(name)} is the name of one of the cluster's own programs. Take another.")]
    return []


def _check_pool_use(cluster: Cluster, path: str, pool: NodePool, machine: Machine) -> list[Fault]:
    """Faults of the node sets on one pool, alone and together."""
    faults: list[Fault] = []
    sound: list[tuple[int, NodeSet, Shape]] = []
    for at, node_set in enumerate(cluster.node_sets):
        if node_set.pool != pool.name:
            continue
        shape = shape_on(machine, node_set)
        set_faults = _check_share(f"cluster.nodeSets[{at}]", node_set, shape, pool, machine, path)
        set_faults += check_node_settings(f"cluster.nodeSets[{at}]", node_set, shape, (f"{path}.machine", f"{path}.hardware"))
        if not set_faults:
            set_faults = _check_size(f"cluster.nodeSets[{at}]", node_set, shape, pool, machine, path)
            sound += [(at, node_set, shape)] if not set_faults else []
        faults += set_faults
    return faults + _check_total(path, pool, machine, sound)


def _check_share(path: str, node_set: NodeSet, shape: Shape, pool: NodePool, machine: Machine, pool_path: str) -> list[Fault]:
    """Faults of one node of a set on one machine."""
    faults: list[Fault] = []
    source = (f"{pool_path}.machine", f"{pool_path}.hardware")
    who = f'a machine of pool "{pool.name}"'
    if shape.cpus > machine.cpus:
        faults.append(Fault(f"{path}.cpus", f"{shape.cpus} is more than {who} has ({machine.cpus}).", source))
    if node_set.memory_mib and node_set.memory_mib > machine.memory_mib:
        faults.append(Fault(f"{path}.memoryMiB", f"{node_set.memory_mib} is more than {who} has ({machine.memory_mib}).", source))
    elif node_set.kept_memory_mib >= shape.memory_mib:
        faults.append(Fault(f"{path}.slurmd.MemSpecLimit", f"keeps all memory of the node ({shape.memory_mib} MiB) from jobs. Lower it."))
    faults += _check_gpus(path, node_set, pool, machine, who, source)
    requests = node_set.resources
    if requests.memory_mib and requests.memory_mib > shape.memory_mib:
        message = f"{requests.memory_mib} is more than the Slurm node has ({shape.memory_mib}), which is the pod's limit."
        faults.append(Fault(f"{path}.resources.memoryMiB", message, (f"{path}.memoryMiB", f"{path}.cpus", *source)))
    if requests.cpu and _cpus(requests.cpu) > machine.cpus:
        faults.append(Fault(f"{path}.resources.cpu", f"{quoted(requests.cpu)} is more than {who} has ({machine.cpus}).", source))
    return faults


def _check_gpus(path: str, node_set: NodeSet, pool: NodePool, machine: Machine, who: str, source: tuple[str, ...]) -> list[Fault]:
    asked, machine_gpus = node_set.gpus, machine.gpus
    if asked is None:
        return []
    about = (*source, f"{path}.gpus")
    if machine_gpus is None:
        return [Fault(f"{path}.gpus", f"{who} has no GPUs. Leave gpus out, or take a pool that has some.", about)]
    faults: list[Fault] = []
    if asked.vendor != machine_gpus.vendor:
        faults.append(Fault(f"{path}.gpus.vendor", f"{quoted(asked.vendor)} does not match: {who} has {machine_gpus.vendor} GPUs.", about))
    elif asked.model != machine_gpus.model:
        faults.append(Fault(f"{path}.gpus.model", f'{quoted(asked.model)} does not match: {who} has "{machine_gpus.model}".', about))
    if asked.count != machine_gpus.count:
        # Each worker pod sees all device files of its machine, so two sets with some GPUs each would hand out the same devices.
        message = f"{asked.count} does not match: {who} has {machine_gpus.count}, and a node set takes all of them or none."
        faults.append(Fault(f"{path}.gpus.count", message, about))
    faults += _check_mig(f"{path}.gpus.mig", asked, machine_gpus, about)
    if node_set.simulated_gpus and pool.eks:
        faults.append(Fault(f"{path}.simulatedGpus", "an EKS machine has its own GPUs. Simulated ones are for development."))
    return faults


def _check_mig(path: str, gpus: Gpus, machine_gpus: Gpu, about: tuple[str, ...]) -> list[Fault]:
    if not gpus.mig:
        return []
    if gpus.vendor != "nvidia":
        return [Fault(path, f"is NVIDIA's, and the GPUs are of {gpus.vendor}. Leave it out.", about)]
    faults = [
        Fault(f"{path}[{at}].profile", f"{quoted(gpus.mig[at].profile)} is listed twice. Add its counts.", about)
        for at, _ in repeats([instance.profile for instance in gpus.mig])
    ]
    slices = sum(instance.slices * instance.count for instance in gpus.mig)
    memory_mib = sum(instance.memory_gb * instance.count for instance in gpus.mig) * 1000
    if slices > _MIG_SLICES:
        faults.append(Fault(path, f"needs {slices} slices of compute, and a GPU has {_MIG_SLICES}. Lower a count.", about))
    elif machine_gpus.memory_mib and memory_mib > machine_gpus.memory_mib * _MIG_ROUNDING:
        message = (
            f"needs {memory_mib // 1000} GB, and {quoted(machine_gpus.model)} has {machine_gpus.memory_mib} MiB. "
            "Take the profiles of this model."
        )
        faults.append(Fault(path, message, about))
    return faults


def _check_size(path: str, node_set: NodeSet, shape: Shape, pool: NodePool, machine: Machine, pool_path: str) -> list[Fault]:
    """A fault if the pool cannot hold the set even alone."""
    fits = _fits(shape, machine) * pool.max
    if node_set.ordinals <= fits:
        return []
    remedy = f"Raise {pool_path.removeprefix('cluster.')}.max or lower this."
    message = f'{node_set.ordinals} is more than pool "{pool.name}" can hold ({fits}). {remedy}'
    key = "max" if node_set.is_elastic else "size"
    about = (
        *(f"{path}.{part}" for part in ("cpus", "memoryMiB", "gpus")),
        *(f"{pool_path}.{part}" for part in ("max", "machine", "hardware")),
    )
    return [Fault(f"{path}.{key}", message, about)]


def _check_total(path: str, pool: NodePool, machine: Machine, sets: list[tuple[int, NodeSet, Shape]]) -> list[Fault]:
    """Faults of sets that fit alone but not together: what is always up, plus one elastic set at its largest. Elastic sets may share the
    rest.

    Compares sums only: Kubernetes decides how pods are packed.
    """
    has = {"CPUs": machine.cpus, "MiB of memory": machine.memory_mib, "GPUs": machine.gpus.count if machine.gpus else 0}
    always = sum((_need(shape, _least(node_set)) for _, node_set, shape in sets), Counter[str]())
    cases = [([f'"{node_set.name}" ({_least(node_set)})' for _, node_set, _ in sets if _least(node_set)], always)]
    for _, largest, shape in sets:
        if largest.is_elastic:
            beside = [
                f'"{neighbour.name}" ({_least(neighbour)})' for _, neighbour, _ in sets if neighbour is not largest and _least(neighbour)
            ]
            need = always + _need(shape, largest.ordinals - _least(largest))
            cases.append(([f'"{largest.name}" (up to {largest.ordinals})', *beside], need))
    for names, need in cases:
        over = [f"{need[unit]} {unit} of {has[unit] * pool.max}" for unit in has if need[unit] > has[unit] * pool.max]
        if over:
            about = tuple(f"cluster.nodeSets[{at}]" for at, _, _ in sets)
            message = (
                f'the node sets {", ".join(names)} together need {" and ".join(over)} in pool "{pool.name}". Raise max or shrink a set.'
            )
            return [Fault(f"{path}.max", message, (*about, f"{path}.machine", f"{path}.hardware"))]
    return []


def _least(node_set: NodeSet) -> int:
    """Nodes that are there at all times."""
    return min(node_set.min or 0, node_set.ordinals) if node_set.is_elastic else node_set.ordinals


def _need(shape: Shape, nodes: int) -> Counter[str]:
    return Counter({"CPUs": nodes * shape.cpus, "MiB of memory": nodes * shape.memory_mib, "GPUs": nodes * shape.gpu_count})


def _fits(shape: Shape, machine: Machine) -> int:
    """How many nodes of this shape one machine can hold."""
    by_gpus = machine.gpus.count // shape.gpu_count if machine.gpus and shape.gpu_count else machine.cpus
    return min(machine.cpus // shape.cpus, machine.memory_mib // shape.memory_mib, by_gpus)


def _cpus(quantity: str) -> float:
    return float(quantity.removesuffix("m")) / 1000 if quantity.endswith("m") else float(quantity)
