"""Failures that health checks have seen on another machine than the one that a worker's pod is on now. Pure.

Such a failure starts no repair. It holds the node drained only until the check has looked at the present machine, too.
"""

from collections.abc import Mapping

from controllers.nodeset.observed import Observed
from controllers.nodeset.workers import Machine, Worker
from slurm.check_results import Failure
from slurm.instances import read_instance
from slurm.times import read_time


def find_inherited(observed: Observed, worker: Worker) -> Mapping[str, Failure]:
    """The failures of a worker's node that were seen on another machine, by the names of the checks.

    A failure without a recorded machine was seen on the present one. So was every failure while the pod has no machine.
    """
    failures, pod = worker.node.failures if worker.node is not None else None, worker.pod
    if not failures or pod is None or pod.machine is None:
        return {}
    machine = observed.machine_of(worker)
    return {name: failure for name, failure in failures.items() if failure.machine and not _was_seen_on(failure, pod.machine, machine)}


def _was_seen_on(failure: Failure, name: str, machine: Machine | None) -> bool:
    """True unless the failure was seen on a machine of another name, or before the machine of that name was made."""
    seen_on, boot = read_instance(failure.machine)
    if seen_on != name or machine is None or boot == machine.boot:
        return seen_on == name
    seen_at = read_time(failure.seen)
    return seen_at is None or seen_at >= machine.made_at
