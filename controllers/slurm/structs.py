"""REST bodies of data parser v0.0.45 (v0.0.44 reads alike), with only the fields that controllers use: msgspec skips all others."""

from collections.abc import Mapping
from functools import cached_property

import msgspec

from slurm.check_results import CheckResult, read_results
from slurm.states import NodeState, node_state


class Number(msgspec.Struct, frozen=True):
    """REST's number, which may be unset or infinite."""

    set: bool = False
    infinite: bool = False
    number: float = 0

    @property
    def value(self) -> float | None:
        """The number; None when it is unset or infinite."""
        return self.number if self.set and not self.infinite else None


class Node(msgspec.Struct, frozen=True, dict=True):
    """One Slurm node."""

    name: str
    words: tuple[str, ...] = msgspec.field(name="state", default=())
    reason: str = ""
    comment: str = ""
    reason_changed_at: Number = Number()
    reason_set_by_user: str = ""
    address: str = ""
    partitions: tuple[str, ...] = ()
    slurmd_start_time: Number = Number()
    topology: str = ""
    """The node's place in Slurm's topology: see slurm.topology."""
    features: tuple[str, ...] = ()
    extra: str = ""
    """The last results of health checks: see slurm.check_results."""

    @property
    def state(self) -> NodeState:
        """Base state and flags."""
        return node_state(self.words)

    @cached_property
    def results(self) -> Mapping[str, CheckResult] | None:
        """The last results of health checks, by name. None if `extra` is not ours. Parsed once for each new text."""
        return read_results(self.extra)


class Job(msgspec.Struct, frozen=True):
    """One job."""

    job_id: int
    job_state: tuple[str, ...] = ()
    nodes: str = ""
    """Hostlist of the nodes it has; empty while it waits."""
    end_time: Number = Number()
    """When it ends at the latest, in seconds since 1970."""
    partition: str = ""
    requeue: bool = True
    """False for a job that was submitted with --no-requeue."""
    batch_flag: bool = True
    """False for a job of srun or salloc."""
    user_name: str = ""
    array_job_id: Number = Number()
    array_task_id: Number = Number()
    het_job_id: Number = Number()
    """Of the leader, for a part of a heterogeneous job."""

    @property
    def text(self) -> str:
        """The job's ID in requests, for this job only. One task of each array has the array's own number, which means all of its tasks.

        A part of a heterogeneous job is requeued only with its leader. Source: measured on 26.05.
        """
        if self.array_task_id.set:
            return f"{self.array_job_id.number:.0f}_{self.array_task_id.number:.0f}"
        return f"{self.het_job_id.value or self.job_id:.0f}"


class PartitionNodes(msgspec.Struct, frozen=True):
    """The nodes of a partition."""

    configured: str = ""
    """Hostlist."""


class PartitionState(msgspec.Struct, frozen=True):
    """Whether jobs are accepted and started: UP, DOWN, DRAIN or INACTIVE."""

    state: tuple[str, ...] = ()


class Partition(msgspec.Struct, frozen=True):
    """One partition."""

    name: str
    nodes: PartitionNodes = PartitionNodes()
    partition: PartitionState = PartitionState()


class Reservation(msgspec.Struct, frozen=True):
    """One reservation."""

    name: str
    start_time: Number = Number()
    end_time: Number = Number()
    node_list: str = ""


class Fault(msgspec.Struct, frozen=True):
    """An error that Slurm reports."""

    error: str = ""
    error_number: int = 0
    description: str = ""


class Body(msgspec.Struct, frozen=True):
    """The fields of every answer."""

    errors: tuple[Fault, ...] = ()
    last_update: Number = Number()


class Nodes(Body, frozen=True):
    """Answer of /nodes/."""

    nodes: tuple[Node, ...] = ()


class Jobs(Body, frozen=True):
    """Answer of /jobs/."""

    jobs: tuple[Job, ...] = ()


class Partitions(Body, frozen=True):
    """Answer of /partitions/."""

    partitions: tuple[Partition, ...] = ()


class Reservations(Body, frozen=True):
    """Answer of /reservations/."""

    reservations: tuple[Reservation, ...] = ()


class Listing(Body, frozen=True):
    """All jobs or all nodes, as the program beside slurmrestd lists them: fields of squeue or sinfo by name, as text."""

    jobs: list[dict[str, str]] = []
    nodes: list[dict[str, str]] = []
