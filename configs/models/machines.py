"""What a machine has: the hardware of the EC2 machine types that node pools name, and the shape that a user can spell out instead.

Leaves out prices, regions and local disks. Every figure is EC2's own (`describe_instance_types`; a test compares them one by one).
The exception is the number of sockets, which EC2 does not report: see `_sockets`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

_MIB_PER_GIB = 1024


@dataclass(frozen=True)
class Gpu:
    """The GPUs of one machine: all of one model."""

    vendor: str
    """`nvidia` or `amd`, in lower case."""
    model: str
    """In lower case, as in Slurm's `Gres=gpu:<model>:<count>`: `h100`, `a10g`."""
    count: int
    memory_mib: int
    """Memory of one GPU, in MiB."""


@dataclass(frozen=True)
class Machine:
    """One kind of machine, as Slurm's node line and a cloud's node group need it."""

    name: str
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory_mib: int
    """All memory, in MiB, before the operating system and Kubernetes take their part."""
    gpus: Gpu | None = None
    efa_cards: tuple[int, ...] = ()
    """Indexes of the network cards that can carry an Elastic Fabric Adapter; each carries one."""
    network_gbps: float = 0
    """Peak bandwidth of all cards in Gbit/s; small sizes hold it in bursts only. 0: not known."""
    architecture: str = "amd64"
    """As Kubernetes writes it in `kubernetes.io/arch`."""

    @property
    def cores(self) -> int:
        return self.sockets * self.cores_per_socket

    @property
    def cpus(self) -> int:
        """Hardware threads: what EC2 calls vCPUs and Slurm calls CPUs."""
        return self.cores * self.threads_per_core


_CORES_PER_PROCESSOR = {
    "p4d": 24,  # Intel Xeon 8275CL
    "p4de": 24,
    "p5": 48,  # AMD EPYC 7R13
    "p5e": 48,
    "p5en": 48,  # Intel Xeon 8488C
    "p6-b200": 48,  # Intel Xeon 8559C
    "p6-b300": 48,
    "p6e-gb200": 72,  # NVIDIA Grace
    "g5": 48,  # AMD EPYC 7R32
    "g6": 48,  # AMD EPYC 7R13
    "g6e": 48,
    "m7i": 48,  # Intel Xeon 8488C
    "c7i": 48,
    "r7i": 48,
    "m7a": 96,  # AMD EPYC 9R14
    "c7a": 96,
    "hpc7a": 96,
}


def _sockets(family: str, cores: int) -> int:
    """Processors that the cores of one machine come from: as few as can hold them, by the family's processor.

    EC2 shows this only indirectly: where it lists `ValidCores` from 4 in steps of 2, half the cores come from each of two processors.
    The test of this catalogue checks each machine that has such a list against this rule.
    """
    return -(-cores // _CORES_PER_PROCESSOR[family])


def _machine(
    name: str,
    cpus: int,
    memory_gib: int,
    network_gbps: float,
    gpus: Gpu | None = None,
    efa_cards: Iterable[int] = (),
    threads_per_core: int = 2,
    architecture: str = "amd64",
) -> Machine:
    cores = cpus // threads_per_core
    sockets = _sockets(name.partition(".")[0], cores)
    return Machine(
        name=name,
        sockets=sockets,
        cores_per_socket=cores // sockets,
        threads_per_core=threads_per_core,
        memory_mib=memory_gib * _MIB_PER_GIB,
        gpus=gpus,
        efa_cards=tuple(efa_cards),
        network_gbps=network_gbps,
        architecture=architecture,
    )


def _nvidia(model: str, count: int, memory_mib: int) -> Gpu:
    return Gpu("nvidia", model, count, memory_mib)


_TRAINING = (
    _machine("p4d.24xlarge", 96, 1152, 400, _nvidia("a100", 8, 40960), range(4)),
    _machine("p4de.24xlarge", 96, 1152, 400, _nvidia("a100", 8, 81920), range(4)),
    _machine("p5.4xlarge", 16, 256, 100, _nvidia("h100", 1, 81920), range(1)),
    _machine("p5.48xlarge", 192, 2048, 3200, _nvidia("h100", 8, 81920), range(32)),
    _machine("p5e.48xlarge", 192, 2048, 3200, _nvidia("h200", 8, 144384), range(32)),
    _machine("p5en.48xlarge", 192, 2048, 3200, _nvidia("h200", 8, 144384), range(16)),
    _machine("p6-b200.48xlarge", 192, 2048, 3200, _nvidia("b200", 8, 183359), range(8)),
    # Card 0 of these two speaks Ethernet only; of the second, every other card carries EFA.
    _machine("p6-b300.48xlarge", 192, 4096, 6400, _nvidia("b300", 8, 275040), range(1, 17)),
    _machine(
        "p6e-gb200.36xlarge",
        144,
        960,
        3200,
        _nvidia("gb200", 4, 189440),
        range(1, 16, 2),
        threads_per_core=1,
        architecture="arm64",
    ),
)

_A10G = 22888
_L4 = 22888
_L40S = 45776

_INFERENCE = (
    _machine("g5.xlarge", 4, 16, 10, _nvidia("a10g", 1, _A10G)),
    _machine("g5.2xlarge", 8, 32, 10, _nvidia("a10g", 1, _A10G)),
    _machine("g5.4xlarge", 16, 64, 25, _nvidia("a10g", 1, _A10G)),
    _machine("g5.8xlarge", 32, 128, 25, _nvidia("a10g", 1, _A10G), range(1)),
    _machine("g5.12xlarge", 48, 192, 40, _nvidia("a10g", 4, _A10G), range(1)),
    _machine("g5.16xlarge", 64, 256, 25, _nvidia("a10g", 1, _A10G), range(1)),
    _machine("g5.24xlarge", 96, 384, 50, _nvidia("a10g", 4, _A10G), range(1)),
    _machine("g5.48xlarge", 192, 768, 100, _nvidia("a10g", 8, _A10G), range(1)),
    _machine("g6.xlarge", 4, 16, 10, _nvidia("l4", 1, _L4)),
    _machine("g6.2xlarge", 8, 32, 10, _nvidia("l4", 1, _L4)),
    _machine("g6.4xlarge", 16, 64, 25, _nvidia("l4", 1, _L4)),
    _machine("g6.8xlarge", 32, 128, 25, _nvidia("l4", 1, _L4), range(1)),
    _machine("g6.12xlarge", 48, 192, 40, _nvidia("l4", 4, _L4), range(1)),
    _machine("g6.16xlarge", 64, 256, 25, _nvidia("l4", 1, _L4), range(1)),
    _machine("g6.24xlarge", 96, 384, 50, _nvidia("l4", 4, _L4), range(1)),
    _machine("g6.48xlarge", 192, 768, 100, _nvidia("l4", 8, _L4), range(1)),
    _machine("g6e.xlarge", 4, 32, 20, _nvidia("l40s", 1, _L40S)),
    _machine("g6e.2xlarge", 8, 64, 20, _nvidia("l40s", 1, _L40S)),
    _machine("g6e.4xlarge", 16, 128, 20, _nvidia("l40s", 1, _L40S)),
    _machine("g6e.8xlarge", 32, 256, 25, _nvidia("l40s", 1, _L40S), range(1)),
    _machine("g6e.12xlarge", 48, 384, 100, _nvidia("l40s", 4, _L40S), range(1)),
    _machine("g6e.16xlarge", 64, 512, 35, _nvidia("l40s", 1, _L40S), range(1)),
    _machine("g6e.24xlarge", 96, 768, 200, _nvidia("l40s", 4, _L40S), range(2)),
    _machine("g6e.48xlarge", 192, 1536, 400, _nvidia("l40s", 8, _L40S), range(4)),
)


def _intel_sizes(family: str, gib_per_cpu: int) -> tuple[Machine, ...]:
    """The virtual sizes of a seventh-generation Intel family; only the largest carries EFA."""
    bandwidth = {2: 12.5, 4: 12.5, 8: 12.5, 16: 12.5, 32: 12.5, 48: 18.75, 64: 25, 96: 37.5, 192: 50}
    return tuple(
        _machine(f"{family}.{_size(cpus)}", cpus, cpus * gib_per_cpu, gbps, efa_cards=range(1 if cpus == 192 else 0))
        for cpus, gbps in bandwidth.items()
    )


def _amd_sizes(family: str, gib_per_cpu: int) -> tuple[Machine, ...]:
    """The virtual sizes of a seventh-generation AMD family, one thread a core; only the largest carries EFA."""
    bandwidth = {1: 12.5, 2: 12.5, 4: 12.5, 8: 12.5, 16: 12.5, 32: 12.5, 48: 18.75, 64: 25, 96: 37.5, 128: 50, 192: 50}
    return tuple(
        _machine(
            f"{family}.{_size(cpus)}",
            cpus,
            cpus * gib_per_cpu,
            gbps,
            efa_cards=range(1 if cpus == 192 else 0),
            threads_per_core=1,
        )
        for cpus, gbps in bandwidth.items()
    )


def _size(cpus: int) -> str:
    """EC2's name for a size with that number of hardware threads."""
    return {1: "medium", 2: "large", 4: "xlarge"}.get(cpus, f"{cpus // 4}xlarge")


_GENERAL = (
    *_intel_sizes("c7i", 2),
    *_intel_sizes("m7i", 4),
    *_intel_sizes("r7i", 8),
    *_amd_sizes("c7a", 2),
    *_amd_sizes("m7a", 4),
    _machine("hpc7a.96xlarge", 192, 768, 300, efa_cards=range(2), threads_per_core=1),
)

MACHINES: Mapping[str, Machine] = MappingProxyType({machine.name: machine for machine in (*_TRAINING, *_INFERENCE, *_GENERAL)})
"""Every machine type that a node pool can name, by that name."""
