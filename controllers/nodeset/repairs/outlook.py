"""What happens next with a node that is repaired, in words for people, beside the causes that the repair is about. Pure."""

from collections.abc import Mapping

from controllers.nodeset.check_jobs import job_name
from controllers.nodeset.observed import Observed, Repair
from controllers.nodeset.plans.causes import CHECK_CAUSE, faults_among, rfc3339
from controllers.nodeset.repairs.checks import LOOK_AGAIN_S
from controllers.nodeset.repairs.plan import RepairPlan
from controllers.nodeset.repairs.steps import MACHINE_STEPS, next_step, wait_s
from controllers.nodeset.repairs.views import last_step
from controllers.nodeset.structs import NodeSetObject, RemedyPolicy
from controllers.nodeset.workers import Machine
from slurm.causes import Cause, Wish

_DOES: Mapping[str, str] = {
    "RecreatePod": "its pod is replaced",
    "RebootMachine": "its machine is rebooted",
    "ReplaceMachine": "its machine is replaced",
}


def with_outlooks(
    nodeset: NodeSetObject, plan: RepairPlan, causes: Mapping[int, tuple[Cause, ...]], observed: Observed
) -> Mapping[int, tuple[Cause, ...]]:
    """The causes with what the repair of each node does about them. Only a cause of the policy's kinds has a repair."""
    policy = nodeset.spec.remedies
    if policy is None:
        return causes
    extended = dict(causes)
    for ordinal, repair in plan.record.nodes.items():
        if ordinal in extended:
            worker, is_unanswered = observed.worker(ordinal), ordinal in plan.unanswered
            faults = faults_among(extended[ordinal], policy.causes)
            outlook = _outlook(policy, plan, repair, faults, observed.machine_of(worker))
            if repair.state == "Draining" and worker.has_check_drain:
                outlook = f"{outlook} {_late_jobs(nodeset, repair)}".rstrip()
            if is_unanswered:
                outlook = _unanswered(repair)
            extended[ordinal] = tuple(
                _with(cause, cause.evidence, f"{cause.next} {outlook}".strip()) if cause.kind in policy.causes else cause
                for cause in extended[ordinal]
            )
            if outstanding := plan.outstanding.get(ordinal):
                extended[ordinal] = tuple(
                    _unverified(nodeset, cause, outstanding, outlook, is_unanswered) if cause.name == "remedy" else cause
                    for cause in extended[ordinal]
                )
    return extended


def _unverified(nodeset: NodeSetObject, cause: Cause, outstanding: tuple[str, ...], outlook: str, is_unanswered: bool) -> Cause:
    """The drain of a node whose last step is done but not verified yet."""
    space, job = nodeset.metadata.namespace, job_name(nodeset.spec.cluster, outstanding[0])
    after = f"It returns to service once {' and '.join(outstanding)} have passed here. The log: kubectl -n {space} logs --follow job/{job}"
    so_far = ", without an answer" if is_unanswered else ""
    evidence = f"its repair is not verified yet: {', '.join(outstanding)} outstanding{so_far}"
    return _with(cause, evidence, f"{after}. {outlook}")


def _with(cause: Cause, evidence: str, after: str) -> Cause:
    return Cause(cause.name, cause.kind, cause.source, evidence, cause.owner, after, cause.wish, cause.since)


def _late_jobs(nodeset: NodeSetObject, repair: Repair) -> str:
    """What becomes of jobs on a node that a check has drained; empty where they may run as long as they like."""
    drain = nodeset.spec.drain
    if drain.action == "Wait" or drain.deadline_seconds is None:
        return ""
    ended = "requeued" if drain.action == "Requeue" else "cancelled"
    return f"Jobs that still run at {rfc3339(repair.since + drain.deadline_seconds)} are {ended}."


def _unanswered(repair: Repair) -> str:
    return (
        f"No check has answered since {rfc3339(repair.since)}, and no step is taken without an answer: the node stays drained, "
        "and is asked again until there is one."
    )


def _outlook(policy: RemedyPolicy, plan: RepairPlan, repair: Repair, faults: Mapping[str, Wish], machine: Machine | None) -> str:
    following = next_step(policy, repair, machine, faults)
    then = f"{_DOES[following]} ({following})" if following else "a person is needed"
    if plan.is_systemic:
        return "Too many nodes of the set fail at once, so nothing is repaired (condition Remedied of the node set)."
    if repair.state in ("Suspect", "Verifying"):
        due = rfc3339(repair.since + wait_s(policy, repair))
        looks = "A check looks whether the step has helped. " if repair.state == "Verifying" else ""
        confirms = policy.confirmed_by if repair.state == "Suspect" else None
        too = f" and {confirms} fails as well," if confirms and f"{CHECK_CAUSE}{confirms}" not in faults else ""
        return f"{looks}If it still fails at {due},{too} {then}, unless somebody drains or cordons it."
    if repair.state == "Draining":
        return f"Once no job is on it, {then}."
    if repair.state == "RecreatePod":
        return "Its pod is being replaced (RecreatePod)."
    if repair.state in MACHINE_STEPS:
        asked = f"was asked for at {rfc3339(repair.asked_at)}" if repair.asked_at is not None else "is asked for"
        return f"{repair.state} {asked}."
    if repair.state != "GivenUp":
        return ""
    looks = f" Its checks look again {LOOK_AGAIN_S // 60} min after each failure, and it returns once they pass."
    return f"All steps were taken: a person is needed.{looks if last_step(repair) else ''}"
