"""The kinds of health checks, a row each. A new check is a program in this folder and a row here: CONTRIBUTING.md has the recipe.

Models, rules and renderer in `configs`, docs/reference/stack-file.md and the table in docs/reference/checks.md are made from these
rows. Pods do not read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from names import paths

CheckKind = Literal[
    "disk",
    "memory",
    "clock",
    "gpu",
    "mounts",
    "processes",
    "kernel",
    "network",
    "nvme",
    "pcie",
    "shm",
    "command",
    "stream",
    "storage",
    "mpi",
    "nccl",
    "dcgm",
    "burn",
    "ib",
]
Context = Literal["job", "interval", "prolog", "epilog"]
"""When a check runs: as a job of its own, every minute, before a job, after a job."""
FaultKind = Literal["hardware", "node", "maintenance"]
"""The kinds of slurm.causes that a check may find."""
Per = Literal["node", "pair", "set"]
"""How many nodes a job of a check has: one, two, or all idle nodes of its sets."""
Vendor = Literal["nvidia", "amd"]

ALWAYS: tuple[Context, ...] = ("job", "interval", "prolog", "epilog")
_AS_JOB: tuple[Context, ...] = ("job",)


@dataclass(frozen=True)
class Check:
    """What sets a kind of check apart."""

    fails_where: str
    """Completes "fails where", in Markdown."""
    cause: FaultKind
    """What is broken where it fails, unless the check says otherwise."""
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    """Its limits by name, with their defaults; the unit is the end of the name."""
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    """What docs print of a limit in place of its default alone."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What its program reads beside the limits: a key, and the fact of configs/render/check_facts.py that is its value. Of a limit the fact
    is the default."""
    contexts: tuple[Context, ...] = ALWAYS
    """Where it can run.

    `processes` may hang, so no job waits for it. `clock` would ask slurmctld once for each node. `kernel` and `shm` need root. `shm` does
    not run before jobs: no job is refused for files that other users left.
    """
    vendors: tuple[Vendor, ...] = ()
    """Whose GPUs it knows; empty for a check that needs none."""
    per: tuple[Per, ...] = ("node",)
    """How many nodes its jobs may have; the first one is the default."""
    takes_command: bool = False
    """True where it runs a program of others, which `command` may name."""
    beside_jobs: Mapping[str, int] = field(default_factory=dict[str, int])
    """Limits that differ beside jobs."""
    waits: str = ""
    """The limit that is the seconds for which it waits."""
    around_s: int = 0
    """Seconds that it takes beside these."""
    section: str = ""
    """The section of docs/reference/checks.md with more about it."""

    def limit_text(self, name: str) -> str:
        """A limit's default, as docs print it."""
        return self.notes.get(name, str(self.limits[name]))


_NONE = "0: none"

KINDS: Mapping[CheckKind, Check] = {
    "disk": Check(
        "`/`, the jobs' `/tmp` or slurmd's folder is full or read-only",
        cause="node",
        limits={"minFreeMiB": 1024, "minFreePercent": 0},
        facts={"paths": "own folders"},
        section="disks-and-mounts",
    ),
    "memory": Check(
        "memory is missing, is in use on an idle node, or has errors",
        cause="hardware",
        limits={"minAvailablePercent": 50, "maxUncorrectableErrors": 0, "maxCorrectableErrors": 1000},
        facts={"configuredMiB": "memory MiB"},
        beside_jobs={"minAvailablePercent": 0},  # users' jobs need memory, too
    ),
    "clock": Check("the clock differs from slurmctld's", cause="node", limits={"maxOffsetS": 5}, contexts=_AS_JOB),
    "gpu": Check(
        "GPUs are missing, too hot, throttled by hardware, slow on PCIe under load, outside the NVLink fabric, used outside jobs, or have "
        "memory errors",
        cause="hardware",
        limits={
            "maxUncorrectableErrors": 0,
            "maxTemperatureC": 90,
            "maxThrottled": 0,
            "maxIdleMemoryMiB": 1024,
            "minNvlinks": 0,
            "maxForeignProcesses": 0,
        },
        notes={"maxTemperatureC": "90; 0: none", "maxIdleMemoryMiB": "1024, as a job", "maxForeignProcesses": "0, beside jobs"},
        facts={"vendor": "vendor", "count": "GPUs", "simulated": "simulated GPUs", "otherDrivers": "nodes drained for drivers"},
        vendors=("nvidia", "amd"),
        beside_jobs={"maxIdleMemoryMiB": 0},  # a job may use all of its GPUs' memory
    ),
    "mounts": Check(
        f"`{paths.HOMES}` or a folder of `storage.mounts` is not mounted, or does not answer",
        cause="node",
        limits={"maxAnswerS": 20},
        facts={"paths": "mounts"},
        waits="maxAnswerS",
        section="disks-and-mounts",
    ),
    "processes": Check(
        "processes hang in the kernel (state D), as on a disk or mount that does not answer",
        cause="node",
        limits={"maxStuck": 0, "stuckS": 10},
        contexts=("job", "interval"),
        waits="stuckS",
    ),
    "kernel": Check(
        "the kernel's log has a fault",
        cause="hardware",
        limits={
            "maxAgeS": 3600,
            "maxGpuErrors": 0,
            "maxMemoryErrors": 0,
            "maxPcieErrors": 0,
            "maxDiskErrors": 0,
            "maxFilesystemErrors": 0,
            "maxLinkDowns": 3,
            "maxHungTasks": 3,
            "maxOoms": 0,
            "maxPatterns": 0,
        },
        notes={"maxAgeS": "3600; 0: since the machine started"},
        facts={"xids": "xids", "ignoredXids": "ignored xids", "patterns": "patterns"},
        contexts=("interval", "prolog", "epilog"),
        section="checks-of-hardware",
    ),
    "network": Check(
        "InfiniBand, RoCE or EFA ports are down, missing or slow, lose their link, or count errors; an Ethernet bond is down or lacks "
        "ports",
        cause="hardware",
        limits={
            "minPorts": 0,
            "maxPortsDown": 0,
            "minRateGbps": 0,
            "maxLinkDowns": 3,
            "maxSymbolErrors": 100,
            "maxIcrcErrors": 100,
            "maxSequenceErrors": 0,
            "maxAckTimeouts": 10_000,
            "maxDrops": 10_000,
            "maxRetransmitTimeouts": 10_000,
            "maxRemoteFaults": 10_000,
            "windowS": 3600,
            "minBondPorts": 0,
            "maxBondPortsDown": 0,
        },
        notes={
            "minRateGbps": _NONE,
            "maxSequenceErrors": _NONE,
            **dict.fromkeys(("maxAckTimeouts", "maxDrops", "maxRetransmitTimeouts", "maxRemoteFaults"), "10000; 0: none"),
        },
        facts={"efaDevices": "EFA devices"},
        section="errors-of-ports",
    ),
    "nvme": Check("an NVMe disk is not live, or an array (md) lacks a disk", cause="hardware", limits={"minDisks": 0, "maxDegraded": 0}),
    "pcie": Check(
        "a GPU, network card or NVMe disk uses fewer lanes, or a lower speed, than both ends can",
        cause="hardware",
        limits={"maxNarrow": 0, "maxSlow": 0},
    ),
    "shm": Check(
        "users without a process on the node have files in `/dev/shm`",
        cause="node",
        limits={"maxLeftoverMiB": 1024},
        facts={"leastUser": "least user", "accounts": "accounts"},
        contexts=("interval", "epilog"),
    ),
    "command": Check("a command of yours ends with 1", cause="node", takes_command=True, section="programs-of-your-own"),
    "stream": Check(
        "memory is slow: STREAM's Copy, by all CPUs",
        cause="hardware",
        limits={"minBandwidthMBs": 1000, "arrayMiB": 64, "seconds": 5},
        notes={"arrayMiB": "64, twice for each CPU"},
        contexts=_AS_JOB,
        waits="seconds",
    ),
    "storage": Check(
        "a folder of `folders` is slow to write with fsync, or to read, or gives back other data",
        cause="node",
        limits={"sizeMiB": 64, "minWriteMBs": 10, "minReadMBs": 10, "maxFsyncMs": 0},
        notes={"maxFsyncMs": _NONE},
        facts={"paths": "folders"},
        contexts=_AS_JOB,
    ),
    "mpi": Check(
        "the network between nodes is slow, late or wrong",
        cause="hardware",
        limits={"minBandwidthMBs": 0, "maxLatencyUs": 0, "minShareOfMedianPercent": 50, "messageKiB": 1024, "seconds": 2, "rounds": 1},
        notes={"maxLatencyUs": _NONE},
        contexts=_AS_JOB,
        per=("pair", "set"),
        waits="seconds",
        section="the-network-between-nodes",
    ),
    "nccl": Check(
        "an all-reduce between GPUs is slow or wrong, in one node or over several",
        cause="hardware",
        limits={"minBusBandwidthGBs": 0, "minShareOfMedianPercent": 50, "messageMiB": 1024, "rounds": 1},
        notes={"minBusBandwidthGBs": "by the machine catalogue; 0: none"},
        facts={"minBusBandwidthGBs": "least bus GB/s", "gpus": "GPUs"},
        contexts=_AS_JOB,
        vendors=("nvidia", "amd"),
        per=("node", "pair", "set"),
        takes_command=True,
        section="gpus-and-their-network",
    ),
    "dcgm": Check(
        "NVIDIA's diagnostics fail a test",
        cause="hardware",
        limits={"level": 2},
        notes={"level": "2, of `dcgmi diag`, 1 to 4"},
        contexts=_AS_JOB,
        vendors=("nvidia",),
        takes_command=True,
    ),
    "burn": Check(
        "a GPU under full load computes wrong, dies, or is slower than its neighbours",
        cause="hardware",
        limits={"seconds": 60, "minShareOfMedianPercent": 80},
        facts={"gpus": "GPUs"},
        contexts=_AS_JOB,
        vendors=("nvidia",),
        takes_command=True,
        waits="seconds",
        around_s=60,  # gpu_burn fills the GPUs' memory first, and gives its processes 30 s to end
    ),
    "ib": Check(
        "an InfiniBand or RoCE port is slow between nodes",
        cause="hardware",
        limits={"minRateGbps": 0, "minShareOfRatePercent": 80, "seconds": 2, "rounds": 1},
        notes={"minRateGbps": _NONE, "seconds": "2 for each port"},
        contexts=_AS_JOB,
        per=("pair",),
        takes_command=True,
        waits="seconds",
    ),
}
