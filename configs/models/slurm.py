"""Config of Slurm itself: the handful of slurm.conf keys that deserve a type, then any other key, then raw lines."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.faults import quoted
from configs.models.fields import Count, Flag, Line, Matching, MiB, Model, Positive, Seconds, Settings, Shown, Whole, refuse

FileName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a file name without a folder: letters, digits and any of _ . -", 64, "mpi.conf")
    ),
]
_LONGEST_FILE = 262_144


def _file_text(value: str) -> str:
    if len(value.encode()) > _LONGEST_FILE:
        raise refuse(f"has {len(value.encode())} bytes; {_LONGEST_FILE} are allowed.")
    if bad := next((letter for letter in value if not (letter.isprintable() or letter in "\n\t")), None):
        raise refuse(f"holds the control character {quoted(bad)}. Only text is allowed.")
    return value


FileText = Annotated[StrictStr, AfterValidator(_file_text), Shown("the text of a file", "-- Lua", {"type": "string"})]
RegistryPath = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*",
            "a registry, with a path where there is one: host, host:port or host/path, without https://",
            255,
            "registry.example.com/team",
        )
    ),
]
"""Where images of containers come from when a user names none."""


class Containers(Model):
    """Containers of jobs: `srun --container-image` and its kin (docs/use/containers.md)."""

    cache_mib: MiB = Field(default=51_200, le=999_999_999, examples=[204_800])
    """Room for unpacked images on each node, of all users together, in MiB. To stay within it, images that no job uses are removed before a
    pull, those first that were used longest ago, whoever's they are."""
    registry: RegistryPath | None = Field(default=None, examples=["registry.example.com"])
    """Registry of images that are named without one, such as `ubuntu:24.04`. Default: none, and such a name is refused."""


_ALLOCATED = "CR_Core_Memory|CR_CPU_Memory|CR_Socket_Memory"
_OPTIONS = "CR_ONE_TASK_PER_CORE|CR_CORE_DEFAULT_DIST_BLOCK|CR_LLN|CR_Pack_Nodes"
SelectTypeParameters = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            rf"({_ALLOCATED})(,({_OPTIONS}))*",
            f"one of {_ALLOCATED.replace('|', ', ')}, followed by any of {_OPTIONS.replace('|', ', ')}, with commas between them",
            120,
            "CR_Core_Memory,CR_ONE_TASK_PER_CORE",
        )
    ),
]


class PriorityWeights(Model):
    """Weights of the multifactor priority; 0 leaves a factor out. Age, fairshare and QOS need accounting."""

    age: Count = Field(default=1_000, examples=[500])
    """Weight of the time that a job has waited."""
    fairshare: Count = Field(default=10_000, examples=[20_000])
    """Weight of the fair share."""
    job_size: Count = Field(default=0, examples=[100])
    """Weight of the job's size."""
    partition: Count = Field(default=1_000, examples=[2000])
    """Weight of the partition's PriorityJobFactor."""
    qos: Count = Field(default=10_000, examples=[5000])
    """Weight of the QOS's priority."""


class SlurmSettings(Model):
    """What the cluster's slurm.conf and cgroup.conf say beyond nodes and partitions."""

    cgroup_version: Literal["auto", "v1", "v2"] = Field(default="auto", examples=["v2"])
    """Version of cgroups that Slurm confines jobs with. `auto`: the version that each node has."""
    slurmctld_timeout_s: Seconds = Field(default=120, le=65_533, examples=[300])
    """SlurmctldTimeout: how long others wait for a silent slurmctld, in seconds."""
    slurmd_timeout_s: Count = Field(default=300, le=65_533, examples=[600])
    """SlurmdTimeout: seconds of silence after which a node is down and its jobs are requeued. 0: never."""
    return_to_service: Literal[0, 1, 2] = Field(default=2, examples=[1])
    """ReturnToService: when a node that was down comes back. 0: when an administrator says so. 1: when it registers with a valid
    configuration and was down only because it did not respond. 2: whenever it registers with a valid configuration."""
    message_timeout_s: Seconds = Field(default=30, le=65_533, examples=[60])
    """MessageTimeout: time for one message and its answer, in seconds."""
    scheduler_parameters: tuple[Line, ...] = ()
    """Items of SchedulerParameters."""
    select_type_parameters: SelectTypeParameters = "CR_Core_Memory"
    """What Slurm allocates to jobs, along with memory: cores (CR_Core_Memory), hardware threads (CR_CPU_Memory) or whole sockets
    (CR_Socket_Memory). Options may follow after a comma: CR_ONE_TASK_PER_CORE, CR_CORE_DEFAULT_DIST_BLOCK, CR_LLN, CR_Pack_Nodes."""
    priority_weights: PriorityWeights = Field(default=PriorityWeights(), examples=[{"age": 500, "jobSize": 100}])
    """Weights of the multifactor priority."""
    job_requeue: Flag = True
    """True: batch jobs run again after their node failed, unless submitted with --no-requeue."""
    max_job_count: Positive = Field(default=100_000, le=10_000_000)
    """MaxJobCount: most jobs that slurmctld holds at one time: waiting, running or just ended. Each task of an array counts."""
    max_array_size: Positive = Field(default=10_001, le=4_000_001)
    """MaxArraySize: one more than the highest index of a job array."""
    kill_wait_s: Seconds = Field(default=30, le=65_533, examples=[60])
    """KillWait: time between SIGTERM and SIGKILL for a job at its time limit, in seconds."""
    suspend_time_s: Seconds = 300
    """SuspendTime: seconds without a job after which a node of an elastic set is powered down, except for the first `min` nodes."""
    suspend_timeout_s: Annotated[Whole, Field(ge=60, le=65_533)] = Field(default=60, examples=[120])
    """SuspendTimeout: seconds after which a node that was powered down can be asked for again. If its pod is gone earlier, the NodeSet
    controller reports that to Slurm, and the node can be asked for at once. At least 60: a slurmd that is still there would register
    again, and a job on it would end with its pod."""
    resume_timeout_s: Seconds = Field(default=600, le=65_533, examples=[1200])
    """ResumeTimeout: seconds after which a node that Slurm asked for and that has not registered is down; its jobs are requeued."""
    default_memory_per_cpu_mib: MiB | None = Field(default=None, examples=[4096])
    """Memory that a job gets for each CPU when it asks for none, in MiB. Default: a partition's smallest node memory by its CPUs."""
    processes_per_job: Annotated[Whole, Field(ge=100, le=4_000_000)] | None = Field(default=512, examples=[2048])
    """Processes and threads that one job may have on one node, in addition to those for its CPUs. null: no limit."""
    processes_per_cpu: Annotated[Whole, Field(ge=0, le=100_000)] = Field(default=256, examples=[512])
    """Processes and threads that each CPU of the job on the node adds to them."""
    efficiency_report: Flag = False
    """True: a batch script's output file ends with a report of the CPUs and memory that the job used on that node. `seff` prints the same
    for whole jobs."""
    containers: Containers = Field(default=Containers(), examples=[{"cacheMiB": 204_800, "registry": "registry.example.com"}])
    """Containers of jobs."""
    settings: Settings = {}
    """Any other key of slurm.conf. The values of AccountingStorageTRES, PrologFlags and SlurmctldParameters are added to Slipway's own."""
    cgroup_settings: Settings = Field(default={}, examples=[{"CgroupJobIdPaths": True}])
    """Further keys of cgroup.conf, such as CgroupJobIdPaths, which names the cgroups of jobs by job number."""
    files: dict[FileName, FileText] = Field(default={}, examples=[{"burst_buffer.lua": "-- Lua"}])
    """Files beside slurm.conf, by name, with their text. Some keys of `settings` need one, such as burst_buffer.lua, topology.conf,
    acct_gather.conf or mpi.conf. Scripts that Prolog and Epilog name without a path belong here, too; slurmctld sends them to the nodes."""
    raw: tuple[Line, ...] = Field(default=(), examples=[["NodeSet=fast Feature=h100"]])
    """Lines that are put at the end of slurm.conf as they are."""
