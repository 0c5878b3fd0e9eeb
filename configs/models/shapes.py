"""What one Slurm node of a set has: its share of the pool's machine, in the figures of a node line and of a pod. Pure arithmetic."""

from dataclasses import dataclass

from configs.models.cluster import Cluster
from configs.models.machines import MACHINES, Gpu, Machine
from configs.models.node_pool import NodePool
from configs.models.node_set import Gpus, NodeSet

_RESERVED_SHARE = 0.05
_RESERVED_LEAST_MIB = 1024


@dataclass(frozen=True)
class Shape:
    """One Slurm node."""

    sockets: int
    cores_per_socket: int
    threads_per_core: int
    cpus: int
    """Hardware threads; sockets x cores x threads."""
    memory_mib: int
    """Slurm's RealMemory and the pod's memory limit, in MiB."""
    gpus: Gpus | None

    @property
    def gpu_count(self) -> int:
        """GPUs of the machine's that the node has."""
        return self.gpus.count if self.gpus else 0

    @property
    def gres_count(self) -> int:
        """What Slurm counts as GPUs of the node: whole ones, or instances of MIG."""
        return sum(self.gpus.types.values()) if self.gpus else 0


def gpu_sockets(shape: Shape) -> tuple[int, ...]:
    """The socket beside each GPU; nothing where that is not known.

    Without a word of the user's the GPUs are spread evenly over the sockets, as machines with several processors are built.
    """
    if shape.gpus is None or shape.gpus.sockets or shape.gpus.count % shape.sockets:
        return shape.gpus.sockets if shape.gpus else ()
    return tuple(at // (shape.gpus.count // shape.sockets) for at in range(shape.gpus.count))


def gpu_groups(shape: Shape) -> list[tuple[int, int, str]]:
    """GPUs in a row that are beside the same socket: the first, how many, and its cores in Slurm's numbers. Empty if unknown.

    Slurm heeds whole sockets only: it reports that other ranges do not match socket boundaries, and ignores them (26.05.5).
    """
    groups: list[tuple[int, int, str]] = []
    each = shape.cores_per_socket
    cores = [f"{at * each}-{(at + 1) * each - 1}" if each > 1 else str(at) for at in gpu_sockets(shape)]
    for at, near in enumerate(cores or [""] * shape.gpu_count):
        if groups and groups[-1][2] == near:
            groups[-1] = (groups[-1][0], groups[-1][1] + 1, near)
        else:
            groups.append((at, 1, near))
    return groups


def machine_of(pool: NodePool) -> Machine:
    """The machine of a pool, from the catalogue or as it is spelled out. Raises KeyError for an unknown type."""
    if pool.hardware is None:
        return MACHINES[pool.machine or ""]
    spelled = pool.hardware
    gpus = spelled.gpus and Gpu(spelled.gpus.vendor, spelled.gpus.model, spelled.gpus.count, spelled.gpus.memory_mib or 0)
    return Machine(pool.name, spelled.sockets, spelled.cores_per_socket, spelled.threads_per_core, spelled.memory_mib, gpus)


def known_machine(pool: NodePool) -> Machine | None:
    """The pool's machine, or None where the file does not say which machine it is."""
    if pool.hardware is None and pool.machine not in MACHINES:
        return None
    return machine_of(pool)


def usable_memory_mib(machine: Machine) -> int:
    """The machine's memory less what the system keeps: 5 %, at least 1,024 MiB, and never more than half."""
    kept = max(_RESERVED_LEAST_MIB, int(machine.memory_mib * _RESERVED_SHARE))
    return machine.memory_mib - min(kept, machine.memory_mib // 2)


def shape_of(cluster: Cluster, node_set: NodeSet) -> Shape:
    """What one node of the set has."""
    return shape_on(machine_of(cluster.node_pool(node_set.pool)), node_set)


def shape_on(machine: Machine, node_set: NodeSet) -> Shape:
    """What one node of the set has on that machine.

    A part of the machine is described as one socket. Slurm takes a node whose slurmd finds more than that; one that finds less stays INVAL
    ("Low CPUs"). But Slurm insists that sockets x cores x threads equals CPUs. Source: slurm.conf(5), Sockets; measured on 26.05.5.
    """
    cpus = node_set.cpus or machine.cpus
    memory_mib = node_set.memory_mib or usable_memory_mib(machine) * cpus // machine.cpus
    if cpus == machine.cpus:
        return Shape(machine.sockets, machine.cores_per_socket, machine.threads_per_core, cpus, memory_mib, node_set.gpus)
    threads = machine.threads_per_core if cpus % machine.threads_per_core == 0 else 1
    return Shape(1, cpus // threads, threads, cpus, memory_mib, node_set.gpus)
