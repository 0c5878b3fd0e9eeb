"""Reservations of Slurm for the announced maintenance of machines, so that jobs are warned of it. Pure; part of `plan`.

The controller moves a reservation when the announced time changes. It releases it when the announcement is gone or the pod has moved.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from controllers.nodeset.observed import Observed
from slurm.maintenance import ANNOUNCED

_SOON_S = 20
"""Seconds. A nearer begin counts as begun."""


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


def find_orphans(reservations: Iterable[str], sets: Container[str]) -> tuple[str, ...]:
    """Names of reservations for announced maintenance of nodes whose set is gone. Such a reservation has no end.

    The set was deleted while Slurm was silent, or a request to release the reservation was lost.
    """
    set_of = {name: name.removeprefix(ANNOUNCED).rpartition("-")[0] for name in reservations if name.startswith(ANNOUNCED)}
    return tuple(sorted(name for name, nodeset in set_of.items() if nodeset not in sets))


def plan_windows(observed: Observed) -> Windows:
    """The reservations to make and to release; nothing if the present reservations are unknown.

    For maintenance in progress, only its begin counts: Slurm moves no reservation that has begun, and makes none that begins in the past.
    """
    if observed.nodes is None or observed.reserved is None:
        return Windows()
    reserve: dict[int, int] = {}
    release = [ordinal for ordinal in observed.reserved if observed.worker(ordinal).pod is None]
    for worker in observed.workers():
        machine, present = observed.machine_of(worker), observed.reserved.get(worker.ordinal)
        if worker.pod is None or worker.node is None:
            continue
        if (machine is None and worker.pod.machine is not None) or (machine is not None and machine.is_announcement_unread):
            continue  # unknown: what is there stays
        wanted = int(machine.maintenance_begins) if machine is not None and machine.maintenance_begins is not None else None
        has_begun = present is not None and present <= observed.now + _SOON_S
        if wanted is None:
            if present is not None:
                release.append(worker.ordinal)
        elif wanted > observed.now + _SOON_S:
            if has_begun and present != wanted:
                release.append(worker.ordinal)  # it is made again in the next round
            elif present != wanted:
                reserve[worker.ordinal] = wanted
        elif not has_begun:
            reserve[worker.ordinal] = int(observed.now) + _SOON_S // 2
    return Windows(reserve, tuple(sorted(release)))
