"""Says what is, and why: counts, phase, conditions with reasons a person can act on. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from controllers.nodeset.plan import GHOST_PAUSE_S, Plan, budget_of
from controllers.nodeset.pods import node_name, range_text, revision, selector
from controllers.nodeset.structs import Condition, NodeSet, NodeSetStatus
from controllers.nodeset.workers import Observed, Worker, in_order
from controllers.slurm.states import category

_LONGEST = 1024
"""Characters of a condition's message."""


@dataclass(frozen=True)
class Silence:
    """Slurm does not answer."""

    seconds: float
    """Since the last good answer, or since the controller's start."""
    error: str
    """What came instead."""


def status(
    nodeset: NodeSet, observed: Observed, plan: Plan, silence: Silence | None, now_text: str, errors: Sequence[str] = ()
) -> NodeSetStatus:
    """The status to write. `now_text` is RFC 3339; a condition whose status did not change keeps its old time.

    `errors` are what went wrong in this round, for instance a pod that the API server refused.
    """
    name = nodeset.metadata.name
    workers = [one for one in observed.workers() if one.ordinal in plan.wanted or one.pod is not None or one.ordinal < nodeset.spec.bound]
    ready = [one for one in workers if one.ordinal in plan.wanted and one.is_registered]
    counts = Counter(category(one.node.state) for one in workers if one.node is not None)
    pods = [one for one in workers if one.pod is not None]
    conditions = [
        _slurm_answers(silence),
        _ready(nodeset, plan, len(ready), silence),
        _scheduled(name, plan, pods),
        _registered(nodeset, plan, pods, observed),
        _updated(nodeset, plan, pods),
        _undisturbed(name, workers),
        _drains_end(name, plan, silence, observed.jobs_error),
        _errors(errors),
    ]
    phase, why = _summary(nodeset, plan, conditions, workers, len(ready))
    return NodeSetStatus(
        observed_generation=nodeset.metadata.generation or 0,
        phase=phase,
        why=why,
        revision=revision(nodeset.spec),
        selector=",".join(f"{key}={value}" for key, value in sorted(selector(nodeset).items())),
        replicas=len(pods),
        wanted=len(plan.wanted),
        ready=len(ready),
        updated=sum(one.pod is not None and one.pod.revision == revision(nodeset.spec) for one in pods),
        idle=counts["idle"],
        allocated=counts["allocated"],
        draining=counts["draining"],
        drained=counts["drained"],
        down=counts["down"],
        powered_down=counts["powered_down"],
        powering_up=counts["powering_up"],
        conditions=tuple(_dated(nodeset, one, now_text) for one in conditions),
    )


def least_ready(nodeset: NodeSet, wanted: int) -> int:
    """Registered workers that make a set Ready: all but those that a roll may have away. A broken machine fails no deployment."""
    return 0 if wanted == 0 else max(1, wanted - budget_of(nodeset.spec.update_strategy, wanted))


def _slurm_answers(silence: Silence | None) -> Condition:
    if silence is None:
        return Condition("SlurmAnswers", "True", "Answers")
    message = f"Slurm has not answered for {silence.seconds:.0f} s ({silence.error}); nothing is removed until it does."
    return Condition("SlurmAnswers", "False", "SlurmSilent", message)


def _ready(nodeset: NodeSet, plan: Plan, ready: int, silence: Silence | None) -> Condition:
    wanted, least = len(plan.wanted), least_ready(nodeset, len(plan.wanted))
    if silence is not None:
        return Condition("Ready", "Unknown", "SlurmSilent", "Nobody knows which nodes are registered while Slurm is silent.")
    if ready >= least:
        return Condition(
            "Ready", "True", "EnoughRegistered" if wanted else "NoneWanted", f"{ready} of {wanted} wanted nodes are registered."
        )
    return Condition("Ready", "False", "TooFewRegistered", f"{ready} of {wanted} wanted nodes are registered; {least} make the set ready.")


def _scheduled(name: str, plan: Plan, pods: Iterable[Worker]) -> Condition:
    by_reason: dict[str, list[int]] = {}
    if plan.disk_going:
        by_reason["the old disk is still being deleted; the pod is made when that is over."] = list(plan.disk_going)
    for one in pods:
        if one.pod is not None and one.pod.blocked and not one.pod.ready:
            by_reason.setdefault(one.pod.blocked, []).append(one.ordinal)
    if not by_reason:
        return Condition("PodsStart", "True", "AllStart")
    reason, ordinals = max(by_reason.items(), key=lambda entry: len(entry[1]))
    others = sum(len(other) for other in by_reason.values()) - len(ordinals)
    more = f" {_count(others, 'pod')} more for other reasons." if others else ""
    return Condition(
        "PodsStart", "False", "PodsBlocked", f"{_count(len(ordinals), 'pod')} not running ({range_text(name, ordinals)}): {reason}{more}"
    )


def _registered(nodeset: NodeSet, plan: Plan, pods: Iterable[Worker], observed: Observed) -> Condition:
    name, limit = nodeset.metadata.name, nodeset.spec.resume_timeout_seconds
    if observed.nodes is None:
        return Condition("NodesRegister", "Unknown", "SlurmSilent")
    unknown = [one.ordinal for one in pods if one.node is None]
    if unknown:
        message = (
            f"Slurm does not know {range_text(name, unknown)}, so nothing is done to them: slurm.conf does not have them (yet). "
            "The log of slurmctld's container `reconfigure` says what it waits for."
        )
        return Condition("NodesRegister", "False", "UnknownToSlurm", message)
    if plan.ghosts_left:
        message = (
            f"Slurm has nodes off whose pods run, as when slurmctld has lost its state: {plan.ghost_lot} of them are removed every "
            f"{GHOST_PAUSE_S:.0f} s, with whatever runs there. To keep them, stop slurmctld, and give it its state back: "
            f"kubectl -n {nodeset.metadata.namespace} scale statefulset {nodeset.spec.cluster}-slurmctld --replicas=0. "
            f"They are {range_text(name, plan.ghosts_left)}."
        )
        return Condition("NodesRegister", "False", "OffInSlurm", message)
    late = [
        one.ordinal
        for one in pods
        if one.pod is not None and not one.pod.terminating and not one.is_registered and observed.now - one.pod.created_at > limit
    ]
    failed = [one.ordinal for one in observed.workers() if one.has_failed_to_resume and one.pod is None]
    if late or failed:
        first = node_name(name, [*late, *failed][0])
        message = f"{range_text(name, {*late, *failed})} did not register within {limit} s. See: kubectl logs {first} -c slurmd"
        return Condition("NodesRegister", "False", "DidNotRegister", message)
    return Condition("NodesRegister", "True", "AllRegister")


def _updated(nodeset: NodeSet, plan: Plan, pods: Sequence[Worker]) -> Condition:
    if not plan.updating:
        return Condition("Updated", "True", "AllUpdated")
    name, strategy = nodeset.metadata.name, nodeset.spec.update_strategy
    waiting = set(plan.updating) - set(plan.left_alone)
    draining = [one.ordinal for one in pods if one.ordinal in waiting and one.has_our_drain]
    parts = [f"{len(plan.updating)} of {len(pods)} pods are made from an older template"]
    if plan.left_alone:
        parts.append(f"{range_text(name, plan.left_alone)} left alone: drained by somebody else")
    if draining:
        parts.append(f"{range_text(name, draining)} draining")
    if strategy.type == "OnDelete" and waiting:
        parts.append(f"with OnDelete, each is replaced when you delete it: kubectl delete pod {node_name(name, min(waiting))}")
    if strategy.type == "Maintenance" and waiting:
        parts.append(f"they are replaced while reservation {strategy.reservation} is active")
    return Condition("Updated", "False", "OlderTemplate", "; ".join(parts) + ".")


def _undisturbed(name: str, workers: Iterable[Worker]) -> Condition:
    foreign: dict[str, list[int]] = {}
    for one in workers:
        if one.has_foreign_drain and one.node is not None:
            foreign.setdefault(one.node.reason or "no reason given", []).append(one.ordinal)
    if not foreign:
        return Condition("Undrained", "True", "NoneDrained")
    shown = sorted(foreign.items(), key=lambda entry: -len(entry[1]))[:3]
    text = "; ".join(f"{range_text(name, ordinals)}: {reason}" for reason, ordinals in shown)
    return Condition(
        "Undrained", "False", "DrainedByOthers", f"{text}. These are left alone; lift with: scontrol update nodename=... state=undrain"
    )


def _drains_end(name: str, plan: Plan, silence: Silence | None, jobs_error: str) -> Condition:
    if silence is not None:
        return Condition("DrainsEnd", "Unknown", "SlurmSilent")
    if jobs_error and plan.needs_jobs:
        message = f"Slurm does not list its jobs ({jobs_error}): nodes go when their last jobs have ended; none is requeued or cancelled."
        return Condition("DrainsEnd", "Unknown", "JobsUnknown", message)
    if not plan.unmovable:
        return Condition("DrainsEnd", "True", "NoneHeldUp")
    jobs = {job.number: job for each in plan.unmovable.values() for job in each}
    refusing = in_order(number for number, job in jobs.items() if job.is_batch and not job.can_requeue)
    unheard = in_order(number for number, job in jobs.items() if job.can_requeue)
    interactive = in_order(number for number, job in jobs.items() if not job.is_batch)
    parts = ["Nodes waited past the drain deadline for jobs that could not be requeued; these run on"]
    if interactive:
        parts.append(f"{_listed(interactive)} of srun or salloc: end with scancel {interactive[0]}")
    if refusing:
        parts.append(
            f"{_listed(refusing)} submitted with --no-requeue: end with scancel {refusing[0]}, "
            f"or have it requeued with scontrol update jobid={refusing[0]} requeue=1"
        )
    if unheard:
        parts.append(f"{_listed(unheard)} as slurmrestd is too old to be asked for it: requeue with scontrol requeue {unheard[0]}")
    parts.append(f"the nodes are {range_text(name, plan.unmovable)}")
    return Condition("DrainsEnd", "False", "NotRequeued", "; ".join(parts) + ".")


def _errors(errors: Sequence[str]) -> Condition:
    if not errors:
        return Condition("Reconciled", "True", "NoErrors")
    more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    return Condition("Reconciled", "False", "Errors", f"{errors[0]}{more}")


def _summary(nodeset: NodeSet, plan: Plan, conditions: Sequence[Condition], workers: Sequence[Worker], ready: int) -> tuple[str, str]:
    """Phase and one line, the most pressing first."""
    by_type = {one.type: one for one in conditions}
    leaving = [one for one in workers if one.pod is not None and one.ordinal not in plan.wanted]
    busy = [one.ordinal for one in leaving if not one.may_go]
    name = nodeset.metadata.name
    if by_type["SlurmAnswers"].status != "True":
        return "SlurmSilent", by_type["SlurmAnswers"].message
    held_up = by_type["DrainsEnd"].message if by_type["DrainsEnd"].status == "False" else ""
    if nodeset.metadata.deletion_timestamp is not None:
        if held_up:
            return "Deleting", held_up
        return "Deleting", f"{range_text(name, busy)} still busy; each goes when its jobs have ended." if busy else "Pods are stopping."
    for kind in ("Reconciled", "NodesRegister", "PodsStart"):
        if by_type[kind].status == "False":
            return "Degraded", by_type[kind].message
    if held_up:
        return "Draining", held_up
    if busy:
        return "Draining", f"{range_text(name, busy)} leaving; each goes when its jobs have ended."
    if plan.updating:
        return "Updating", by_type["Updated"].message
    if ready < len(plan.wanted):
        return "Progressing", f"{ready} of {len(plan.wanted)} wanted nodes are registered."
    return "Ready", by_type["Undrained"].message


def _dated(nodeset: NodeSet, condition: Condition, now_text: str) -> Condition:
    before = next((one for one in nodeset.status.conditions if one.type == condition.type), None)
    since = before.last_transition_time if before is not None and before.status == condition.status else now_text
    return Condition(
        condition.type,
        condition.status,
        condition.reason,
        _cut(condition.message),
        observed_generation=nodeset.metadata.generation or 0,
        last_transition_time=since or now_text,
    )


def _cut(message: str) -> str:
    """What a person can take in, with what to do in front: lists of a thousand nodes come last in a message."""
    return message if len(message) <= _LONGEST else message[: _LONGEST - 4].rpartition(",")[0] + " ..."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _listed(jobs: Sequence[str]) -> str:
    """`job 7`, or `jobs 7, 9 and 12 more`."""
    shown = ", ".join(jobs[:10])
    more = f" and {len(jobs) - 10} more" if len(jobs) > 10 else ""
    return f"{'job' if len(jobs) == 1 else 'jobs'} {shown}{more}"
