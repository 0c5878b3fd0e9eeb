"""What decides about the repair of one node. Decides nothing itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from controllers.nodeset.inherited import find_inherited
from controllers.nodeset.observed import Observed, Repair, TakenStep
from controllers.nodeset.plans.causes import KILL_FAILED_KIND, rfc3339
from controllers.nodeset.structs import NodeSetObject, RemedyPolicy
from controllers.nodeset.workers import Machine, Worker
from slurm.causes import Wish
from slurm.check_results import Failure, Request


@dataclass(frozen=True)
class View:
    """One node, with what decides about its repair."""

    nodeset: NodeSetObject
    policy: RemedyPolicy
    observed: Observed
    worker: Worker
    faults: Mapping[str, Wish]
    """What its causes ask for that a repair may end, by name."""
    now: float
    """In whole seconds since 1970, as the status records it."""

    @cached_property
    def machine(self) -> Machine | None:
        return self.observed.machine_of(self.worker)

    @cached_property
    def identity(self) -> str:
        return self.observed.identity_of(self.worker)

    @cached_property
    def inherited(self) -> Mapping[str, Failure]:
        return find_inherited(self.observed, self.worker)

    @property
    def is_well(self) -> bool:
        """True when the node answers, and nothing is known against it, nor waits for a look at its machine."""
        return not self.faults and not self.is_unseen and self.worker.is_registered

    @property
    def is_unseen(self) -> bool:
        """True when a check has found a fault on another machine, and has not looked at this one."""
        return any(failure.kind in self.policy.causes for failure in self.inherited.values())

    @cached_property
    def is_peoples(self) -> bool:
        return is_peoples(self.observed, self.worker)

    @property
    def is_free(self) -> bool:
        """True when a reading says that no job can be there, and no check looks at the node."""
        return self.worker.may_go and not self.worker.is_off and self.worker.ordinal not in self.observed.looked_at

    @cached_property
    def is_mended(self) -> bool:
        """True when Slurm's own drain (`Kill task failed`) is to be lifted, and does not count as a fault any more.

        Slurm never lifts it. The repair's last step has begun after it, and has replaced the machine, its boot or the pod.
        """
        worker, repair, machine = self.worker, self.observed.repairs.nodes.get(self.worker.ordinal), self.machine
        node, pod = worker.node, worker.pod
        if KILL_FAILED_KIND not in self.policy.causes or not worker.has_kill_drain or node is None or node.reason_at is None:
            return False
        if repair is None or repair.state != "Verifying" or not repair.steps or repair.steps[-1].at < node.reason_at:
            return False
        if pod is None or machine is None or pod.uid == "" or not repair.machine:
            return False
        if machine.identity != repair.machine:
            return True
        step = repair.steps[-1].step
        return (step == "RecreatePod" and pod.uid != repair.pod) or (step == "RebootMachine" and machine.boot != repair.boot)

    def outstanding(self, repair: Repair) -> tuple[str, ...]:
        """The checks of `verifiedBy` that have not passed since the repair's last step, on the node's present machine."""
        if (step := last_step(repair)) is None:
            return ()
        passed_for: Mapping[str, Request] = self.worker.node.passed_for if self.worker.node is not None else {}
        wanted = Request(self.identity, rfc3339(step.at))
        return tuple(name for name in self.policy.verified_by if not self.identity or passed_for.get(name) != wanted)


def last_step(repair: Repair) -> TakenStep | None:
    """The last step of this repair; None where none was taken yet."""
    return repair.steps[-1] if repair.steps and repair.steps[-1].at >= repair.began else None


def is_peoples(observed: Observed, worker: Worker) -> bool:
    """True for a node that people decide about: others drained it or set it down, or its machine is cordoned or about to be taken.

    Also true if the pod's machine has no Kubernetes node any more: a cordon would be unknown.
    """
    machine = observed.machine_of(worker)
    is_unknown = machine is None and worker.pod is not None and worker.pod.machine is not None
    is_requested = worker.pod is not None and bool(worker.pod.drain_requested)
    is_taken = worker.is_kept_out or is_requested or (machine is not None and (machine.is_cordoned or bool(machine.announced)))
    return is_unknown or is_taken or (worker.has_foreign_drain and not worker.has_check_drain and not worker.has_kill_drain)
