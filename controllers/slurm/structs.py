"""REST bodies of data parser v0.0.45 (v0.0.44 reads alike), only the fields that controllers use: msgspec skips the rest while decoding."""

import msgspec

from controllers.slurm.states import NodeState, node_state


class Number(msgspec.Struct, frozen=True):
    """REST's number, which may be unset or infinite."""

    set: bool = False
    infinite: bool = False
    number: float = 0

    @property
    def value(self) -> float | None:
        """The number; None when it is unset or infinite."""
        return self.number if self.set and not self.infinite else None


class Node(msgspec.Struct, frozen=True):
    """One Slurm node."""

    name: str
    words: tuple[str, ...] = msgspec.field(name="state", default=())
    reason: str = ""
    reason_changed_at: Number = Number()
    reason_set_by_user: str = ""
    address: str = ""
    partitions: tuple[str, ...] = ()
    slurmd_start_time: Number = Number()

    @property
    def state(self) -> NodeState:
        """Base state and flags."""
        return node_state(self.words)


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


class Reservation(msgspec.Struct, frozen=True):
    """One reservation."""

    name: str
    start_time: Number = Number()
    end_time: Number = Number()
    node_list: str = ""


class Ping(msgspec.Struct, frozen=True):
    """One slurmctld and whether it answers slurmrestd."""

    hostname: str
    responding: bool = False


class Fault(msgspec.Struct, frozen=True):
    """What Slurm says is wrong."""

    error: str = ""
    error_number: int = 0
    description: str = ""


class Body(msgspec.Struct, frozen=True):
    """What every answer has."""

    errors: tuple[Fault, ...] = ()
    last_update: Number = Number()


class Nodes(Body, frozen=True):
    """Answer of /nodes/."""

    nodes: tuple[Node, ...] = ()


class Jobs(Body, frozen=True):
    """Answer of /jobs/."""

    jobs: tuple[Job, ...] = ()


class Reservations(Body, frozen=True):
    """Answer of /reservations/."""

    reservations: tuple[Reservation, ...] = ()


class Pings(Body, frozen=True):
    """Answer of /ping/."""

    pings: tuple[Ping, ...] = ()
