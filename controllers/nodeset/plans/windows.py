"""Reservations of Slurm's for the announced maintenance of machines, so that jobs are warned of it. Pure; part of `plan`.

programs/maintenance warns and requeues the jobs that meet a reservation; Slurm starts none that would. What is announced may be put off or
called off, and a node may be on another machine by then: the reservation follows, and ends with the announcement.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.nodeset.observed import Observed


@dataclass(frozen=True)
class Windows:
    """What to reserve and to release, in ordinals."""

    reserve: Mapping[int, int] = field(default_factory=dict[int, int])
    """When the reservation of each begins, in seconds since 1970."""
    release: tuple[int, ...] = ()

    @property
    def writes_to_slurm(self) -> bool:
        """True when Slurm is asked for something."""
        return bool(self.reserve or self.release)


def plan_windows(observed: Observed) -> Windows:
    """Where reservations were not read, nothing: whether one is there is unknown."""
    if observed.nodes is None or observed.reserved is None:
        return Windows()
    wanted: dict[int, int] = {}
    unknown: set[int] = set()
    for worker in observed.workers():
        machine = observed.machine_of(worker)
        if machine is not None and machine.maintenance_begins is not None and worker.node is not None:
            wanted[worker.ordinal] = int(machine.maintenance_begins)
        elif machine is None and worker.pod is not None and worker.pod.machine is not None:
            unknown.add(worker.ordinal)
    present = observed.reserved
    return Windows(
        {ordinal: begin for ordinal, begin in wanted.items() if present.get(ordinal) != begin and begin > observed.now},
        # Slurm takes no reservation that begins in the past: whoever runs there was not warned, and is left alone.
        tuple(
            ordinal
            for ordinal, begin in sorted(present.items())
            if ordinal not in unknown and begin != wanted.get(ordinal) and wanted.get(ordinal, 0) <= observed.now
        ),
    )
