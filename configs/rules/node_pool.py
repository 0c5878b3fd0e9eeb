"""Rules of node pools: what machines they have and where these come from."""

from collections.abc import Iterable

from configs.faults import Fault, did_you_mean, quoted, repeats
from configs.models.cluster import Cluster
from configs.models.machines import MACHINES, Machine
from configs.models.node_pool import EksNodes, NodePool, Taint
from configs.models.shapes import known_machine
from configs.rules.names import check_distinct, check_unique
from names import labels

_RESERVED_BY_EKS = ("kubernetes.io/", "k8s.io/", "eks.amazonaws.com/")
"""What EKS says of a label or taint with such a key: cannot contain reserved prefixes."""


def check_node_pools(cluster: Cluster) -> list[Fault]:
    """Faults of the node pools, each by itself."""
    faults = check_unique("cluster.nodePools", "node pool", [pool.name for pool in cluster.node_pools])
    for at, pool in enumerate(cluster.node_pools):
        path = f"cluster.nodePools[{at}]"
        faults += _check_machine(path, pool) + _check_source(path, pool)
        if pool.eks and pool.machine and pool.machine in MACHINES:
            faults += _check_eks_machine(path, pool.eks, MACHINES[pool.machine], _installs_driver(cluster))
        faults += _check_taints(f"{path}.{'existing' if pool.existing else 'eks'}.taints", pool.taints)
    faults += _check_taints("cluster.systemNodes.taints", cluster.system_nodes.taints)
    return [*faults, *_check_same_nodes(cluster), *_check_one_cluster(cluster), *_check_gpu_resources(cluster)]


def _check_gpu_resources(cluster: Cluster) -> list[Fault]:
    """Faults of GPUs that a pool's nodes offer under the name of another maker; simulated ones are asked of nobody."""
    faults: list[Fault] = []
    for at, pool in enumerate(cluster.node_pools):
        machine = known_machine(pool)
        vendor = machine.gpus.vendor if machine and machine.gpus else None
        is_asked = any(each.pool == pool.name and each.gpus and not each.simulated_gpus for each in cluster.node_sets)
        resource = pool.existing.gpu_resource if pool.existing else ""
        maker = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd"}.get(resource)
        if vendor and maker and is_asked and vendor != maker:
            message = f"{quoted(resource)} is for GPUs of {maker}, and the pool's are of {vendor}. Say {vendor}.com/gpu."
            faults.append(Fault(f"cluster.nodePools[{at}].existing.gpuResource", message, (f"cluster.nodePools[{at}]", "cluster.nodeSets")))
    return faults


def _check_taints(path: str, taints: Iterable[Taint]) -> list[Fault]:
    """Kubernetes has one taint of a key and an effect on a node. Source: validateNodeTaints of its validation.go."""
    taints = list(taints)
    return [
        Fault(f"{path}[{at}]", f"{quoted(taints[at].key)} with effect {taints[at].effect} is {path}[{first}] already. Keep one.")
        for at, first in repeats([(taint.key, taint.effect) for taint in taints])
    ]


def _check_same_nodes(cluster: Cluster) -> list[Fault]:
    """Faults of pools that are the same nodes: their machines would count twice."""
    labels = [(at, pool.existing.labels) for at, pool in enumerate(cluster.node_pools) if pool.existing and pool.existing.labels]
    return [
        Fault(
            f"cluster.nodePools[{labels[at][0]}].existing.labels",
            f"are those of cluster.nodePools[{labels[first][0]}]: each machine would count twice. Give each pool labels of its own.",
            (f"cluster.nodePools[{labels[first][0]}].existing.labels",),
        )
        for at, first in repeats([tuple(sorted(each.items())) for _, each in labels])
    ]


def _check_one_cluster(cluster: Cluster) -> list[Fault]:
    """Faults of node groups in another EKS cluster than the first pool's: their nodes would never come here."""
    groups = [(at, pool.eks.cluster_name) for at, pool in enumerate(cluster.node_pools) if pool.eks]
    return [
        Fault(
            f"cluster.nodePools[{at}].eks.clusterName",
            f"{quoted(name)} is not the cluster of cluster.nodePools[{groups[0][0]}] ({quoted(groups[0][1])}). Give all pools one.",
            (f"cluster.nodePools[{groups[0][0]}].eks.clusterName",),
        )
        for at, name in groups
        if name != groups[0][1]
    ]


def check_gpu_operator(cluster: Cluster) -> list[Fault]:
    """Faults of the GPU Operator: it needs a GPU of its maker."""
    known = [machine for pool in cluster.node_pools if (machine := known_machine(pool))]
    if not cluster.gpu_operator.enabled:
        return []
    if any(machine.gpus and machine.gpus.vendor == "nvidia" for machine in known):
        images = [(at, pool.eks.ami_type) for at, pool in enumerate(cluster.node_pools) if pool.eks and "NVIDIA" in pool.eks.ami_type]
        if images and cluster.gpu_operator.driver:
            at, image = images[0]
            message = f"the machine image {image} of cluster.nodePools[{at}] has the driver already. Say driver: false."
            return [Fault("cluster.gpuOperator.driver", message, ("cluster.nodePools", "cluster.gpuOperator.enabled"))]
        return []
    message = "no node pool has NVIDIA GPUs. Say enabled: false, or give a pool's machine its GPUs."
    return [Fault("cluster.gpuOperator.enabled", message, ("cluster.nodePools",))]


def _check_machine(path: str, pool: NodePool) -> list[Fault]:
    if pool.machine and pool.hardware:
        return [Fault(path, "has both machine and hardware. Keep the machine type, or the hardware spelled out.")]
    if not pool.machine and not pool.hardware:
        return [Fault(path, "needs a machine type, such as machine: p5.48xlarge, or its hardware spelled out.", (path,))]
    if pool.machine and pool.machine not in MACHINES:
        otherwise = "Spell it out under hardware; configs/models/machines.py lists the known types."
        hint = did_you_mean(pool.machine, MACHINES, otherwise)
        return [Fault(f"{path}.machine", f"no machine type is called {quoted(pool.machine)}. {hint}")]
    return []


def _check_source(path: str, pool: NodePool) -> list[Fault]:
    if pool.existing and pool.eks:
        return [Fault(path, "has both existing and eks. A pool's nodes are there already, or EKS makes them.")]
    if pool.existing:
        return _check_existing(f"{path}.existing", pool)
    if pool.eks:
        return _check_eks(f"{path}.eks", pool, pool.eks)
    return [Fault(path, "needs existing (nodes that are there already, by label) or eks (a node group to make).", (path,))]


def _check_existing(path: str, pool: NodePool) -> list[Fault]:
    assert pool.existing
    faults: list[Fault] = []
    if not pool.existing.labels:
        faults.append(
            Fault(f"{path}.labels", "is empty: every node would match. Name a label that only these nodes have.", (f"{path}.labels",))
        )
    if pool.existing.count > pool.max:
        message = f"{pool.existing.count} is more than the pool can hold ({pool.max}). Raise max or lower this."
        faults.append(Fault(f"{path}.count", message, (f"{path.removesuffix('.existing')}.max",)))
    return faults


def _check_eks(path: str, pool: NodePool, eks: EksNodes) -> list[Fault]:
    faults: list[Fault] = []
    largest = (f"{path.removesuffix('.eks')}.max",)
    if pool.hardware and not pool.machine:
        faults.append(Fault(path, "needs a machine type, such as machine: p5.48xlarge: EKS cannot order hardware spelled out."))
    if eks.min > pool.max:
        faults.append(Fault(f"{path}.min", f"{eks.min} is more than the pool can hold ({pool.max}). Raise max or lower this.", largest))
    elif eks.desired is not None and not eks.min <= eks.desired <= pool.max:
        message = f"{eks.desired} is not between min ({eks.min}) and max ({pool.max})."
        faults.append(Fault(f"{path}.desired", message, (f"{path}.min", *largest)))
    faults += check_distinct(f"{path}.subnetIds", eks.subnet_ids)
    faults += check_distinct(f"{path}.securityGroupIds", eks.security_group_ids)
    if eks.placement_group and len(eks.subnet_ids) > 1:
        message = f"has {len(eks.subnet_ids)} subnets, and a placement group lives in one zone. Keep one, or say placementGroup: false."
        faults.append(Fault(f"{path}.subnetIds", message, (f"{path}.placementGroup",)))
    for key in eks.labels:
        if key == labels.POOL:
            faults.append(Fault(f"{path}.labels.{key}", "is always set, to the pool's name. Leave it out."))
        elif _is_reserved(key):
            faults.append(Fault(f"{path}.labels.{key}", f"EKS sets no labels with {quoted(key.partition('/')[0])} in them. Take another."))
    for at, taint in enumerate(eks.taints):
        if _is_reserved(taint.key):
            message = f"EKS sets no taints with {quoted(taint.key.partition('/')[0])} in them. Take another."
            faults.append(Fault(f"{path}.taints[{at}].key", message))
    if eks.capacity_type == "CAPACITY_BLOCK" and not eks.capacity_reservation_id:
        message = "a capacity block is bought beforehand: give its id as capacityReservationId."
        faults.append(Fault(f"{path}.capacityType", message, (f"{path}.capacityReservationId",)))
    if eks.capacity_type == "SPOT" and eks.capacity_reservation_id:
        faults.append(Fault(f"{path}.capacityType", "spot machines use no reservation. Say ON_DEMAND, or drop capacityReservationId."))
    return faults


def _check_eks_machine(path: str, eks: EksNodes, machine: Machine, driver_follows: bool) -> list[Fault]:
    faults: list[Fault] = []
    sources = (f"{path}.machine",)
    if eks.efa and not machine.efa_cards:
        faults.append(Fault(f"{path}.eks.efa", f"{machine.name} has no network card that can carry EFA. Say efa: false.", sources))
    arm = "arm_64" in eks.ami_type.lower()
    if eks.ami_type != "CUSTOM" and arm != (machine.architecture == "arm64"):
        message = f"{quoted(eks.ami_type)} is not for the processors of {machine.name} ({machine.architecture})."
        faults.append(Fault(f"{path}.eks.amiType", message, sources))
    is_nvidia = "nvidia" in eks.ami_type.lower() or "gpu" in eks.ami_type.lower()
    if is_nvidia and not machine.gpus:
        message = f"{quoted(eks.ami_type)} is for NVIDIA GPUs, which {machine.name} lacks. Take AL2023_x86_64_STANDARD."
        faults.append(Fault(f"{path}.eks.amiType", message, sources))
    if machine.gpus and not is_nvidia and eks.ami_type != "CUSTOM" and not driver_follows:
        message = f"{quoted(eks.ami_type)} has no GPU driver. Take AL2023_x86_64_NVIDIA, or let gpuOperator install the driver."
        faults.append(Fault(f"{path}.eks.amiType", message, sources))
    return faults


def _is_reserved(key: str) -> bool:
    prefix = f"{key.partition('/')[0]}/" if "/" in key else ""
    return any(prefix == each or prefix.endswith(f".{each}") for each in _RESERVED_BY_EKS)


def _installs_driver(cluster: Cluster) -> bool:
    return cluster.gpu_operator.enabled and cluster.gpu_operator.driver
