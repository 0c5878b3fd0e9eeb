"""Config of Slurm itself: the handful of slurm.conf keys that deserve a type, then any other key, then raw lines."""

from typing import Annotated, Literal

from pydantic import Field

from configs.fields import Count, Flag, Line, MiB, Model, Positive, Seconds, Settings, Whole


class PriorityWeights(Model):
    """Weights of the multifactor priority; 0 leaves a factor out. Age, fairshare and QOS need accounting."""

    age: Count = 1_000
    fairshare: Count = 10_000
    job_size: Count = 0
    partition: Count = 1_000
    qos: Count = 10_000


class SlurmSettings(Model):
    """What the cluster's slurm.conf and cgroup.conf say beyond nodes and partitions."""

    cgroup_version: Literal["auto", "v1", "v2"] = "auto"
    """`auto` takes what each node has."""
    slurmctld_timeout_s: Seconds = Field(default=120, le=65_533)
    """How long others wait for a silent slurmctld, in seconds."""
    slurmd_timeout_s: Count = Field(default=300, le=65_533)
    """A node that has been silent for so many seconds is down, and its jobs are requeued. 0: never."""
    return_to_service: Literal[0, 1, 2] = 2
    """2: a node that was down comes back when it registers with a valid configuration."""
    message_timeout_s: Seconds = Field(default=30, le=65_533)
    """Time for one message and its answer, in seconds."""
    scheduler_parameters: tuple[Line, ...] = ()
    """Items of SchedulerParameters, such as bf_window=4320."""
    select_type_parameters: Literal["CR_Core_Memory", "CR_CPU_Memory", "CR_Socket_Memory"] = "CR_Core_Memory"
    priority_weights: PriorityWeights = PriorityWeights()
    job_requeue: Flag = True
    """Batch jobs run again after their node failed, unless they say --no-requeue."""
    max_job_count: Positive = Field(default=10_000, le=10_000_000)
    max_array_size: Positive = Field(default=1_001, le=4_000_001)
    kill_wait_s: Seconds = Field(default=30, le=65_533)
    """Time between SIGTERM and SIGKILL for a job at its limit, in seconds."""
    suspend_time_s: Seconds = 300
    """A node of an elastic set that has had no job for so many seconds is put off, in seconds; the first `min` nodes stay."""
    suspend_timeout_s: Annotated[Whole, Field(ge=60, le=65_533)] = 60
    """Slurm asks for a node that it powers down again when its pod is gone, which the NodeSet controller tells it, or else after so many
    seconds. Not less: a slurmd that is still there would register again, and a job on it would end with its pod."""
    resume_timeout_s: Seconds = Field(default=600, le=65_533)
    """A node that has not registered so many seconds after Slurm asked for it is down, and its jobs are requeued, in seconds."""
    default_memory_per_cpu_mib: MiB | None = None
    """Memory that a job gets for each CPU when it asks for none, in MiB. Default: a partition's smallest node memory by its CPUs."""
    processes_per_job: Annotated[Whole, Field(ge=100, le=4_000_000)] | None = 512
    """Processes and threads that one job may have on one node, before those for its CPUs. null: not limited."""
    processes_per_cpu: Annotated[Whole, Field(ge=0, le=100_000)] = 256
    """What each CPU of the job on the node adds to them."""
    settings: Settings = {}
    """Any other key of slurm.conf."""
    raw: tuple[Line, ...] = ()
    """Lines put at the end of slurm.conf as they are."""
