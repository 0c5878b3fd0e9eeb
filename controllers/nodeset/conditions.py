"""The conditions of a set's status, each with a reason that a person can act on. Pure.

A message states what happened, then what to do; lists of nodes come last, as long messages are cut. For every type, True is good.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from controllers.nodeset.lateness import Lateness, too_late
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan
from controllers.nodeset.plans.ghosts import GHOST_PAUSE_S
from controllers.nodeset.plans.rolls import budget_of
from controllers.nodeset.pods import node_name, range_text
from controllers.nodeset.repairs import LATE_S
from controllers.nodeset.structs import Condition, NodeSetObject
from controllers.nodeset.undrained import build_undrained
from controllers.nodeset.workers import Worker, in_order

_STUCK_S = 60.0
"""A pod that still exists this many seconds after it should have ended is stuck."""


@dataclass(frozen=True)
class Silence:
    """Slurm does not answer."""

    seconds: float
    """Since the last good answer, or since the controller's start."""
    error: str
    """The last error."""


def build_conditions(
    nodeset: NodeSetObject,
    observed: Observed,
    plan: Plan,
    workers: Sequence[Worker],
    silence: Silence | None,
    errors: Sequence[str],
    lateness: Lateness | None,
) -> list[Condition]:
    """All conditions, without their times. `workers` are those that count: wanted, with a pod, or listed in slurm.conf."""
    name, pods = nodeset.metadata.name, [worker for worker in workers if worker.pod is not None]
    return [
        _slurm_answers(silence),
        _ready(nodeset, plan, len(find_ready(plan, workers)), silence),
        _pods_start(name, plan, pods, observed),
        _pods_end(nodeset, pods, observed),
        _machines_answer(name, pods, observed),
        *_gpus_as_declared(nodeset, workers, observed),
        _nodes_register(nodeset, plan, pods, observed),
        _updated(nodeset, plan, pods),
        build_undrained(name, workers, observed),
        *([_placed(name, plan)] if nodeset.spec.topologies and silence is None else []),
        *_checks_before_jobs(nodeset, observed, plan),
        *_remedied(nodeset, plan),
        _drains_end(name, plan, silence, observed.jobs.error),
        _reconciled(errors, lateness),
    ]


def find_ready(plan: Plan, workers: Iterable[Worker]) -> list[Worker]:
    """Wanted workers that are registered."""
    return [worker for worker in workers if worker.ordinal in plan.wanted and worker.is_registered]


def least_ready(nodeset: NodeSetObject, wanted: int) -> int:
    """Registered workers that make a set Ready: all but those that a roll may have away. A broken machine fails no deployment."""
    return 0 if wanted == 0 else max(1, wanted - budget_of(nodeset.spec.update_strategy, wanted))


def _slurm_answers(silence: Silence | None) -> Condition:
    if silence is None:
        return Condition("SlurmAnswers", "True", "Answers")
    message = f"Slurm has not answered for {silence.seconds:.0f} s ({silence.error}); nothing is removed until it does."
    return Condition("SlurmAnswers", "False", "SlurmSilent", message)


def _ready(nodeset: NodeSetObject, plan: Plan, ready: int, silence: Silence | None) -> Condition:
    wanted, least = len(plan.wanted), least_ready(nodeset, len(plan.wanted))
    if silence is not None:
        return Condition("Ready", "Unknown", "SlurmSilent", "Nobody knows which nodes are registered while Slurm is silent.")
    if ready >= least:
        return Condition(
            "Ready", "True", "EnoughRegistered" if wanted else "NoneWanted", f"{ready} of {wanted} wanted nodes are registered."
        )
    return Condition("Ready", "False", "TooFewRegistered", f"{ready} of {wanted} wanted nodes are registered; {least} make the set ready.")


def _pods_start(name: str, plan: Plan, pods: Iterable[Worker], observed: Observed) -> Condition:
    by_reason: dict[str, list[int]] = {}
    if plan.disks.ending:
        by_reason["the old disk is still being deleted; the pod is made when that is over."] = list(plan.disks.ending)
    blocked = {worker.ordinal: pod.blocked for worker in pods if (pod := worker.pod) and pod.blocked and not (pod.ready or pod.finished)}
    for ordinal in sorted((observed.pauses.refusals.keys() & plan.wanted) - blocked.keys()):
        by_reason.setdefault(f"{observed.pauses.refusals[ordinal]}. The next try comes later each time.", []).append(ordinal)
    for ordinal, taken in observed.taken.items():
        by_reason.setdefault(f"{taken} belongs to somebody else and is left alone. Delete it where it comes from.", []).append(ordinal)
    for ordinal, why in blocked.items():
        by_reason.setdefault(why, []).append(ordinal)
    if not by_reason:
        return Condition("PodsStart", "True", "AllStart")
    reason, ordinals = max(by_reason.items(), key=lambda entry: len(entry[1]))
    other_pods = sum(map(len, by_reason.values())) - len(ordinals)
    more = f" {_count(other_pods, 'pod')} more for other reasons." if other_pods else ""
    return Condition(
        "PodsStart", "False", "PodsBlocked", f"{_count(len(ordinals), 'pod')} not running ({range_text(name, ordinals)}): {reason}{more}"
    )


def _nodes_register(nodeset: NodeSetObject, plan: Plan, pods: Iterable[Worker], observed: Observed) -> Condition:
    name, limit = nodeset.metadata.name, nodeset.spec.resume_timeout_seconds
    if observed.nodes is None:
        return Condition("NodesRegister", "Unknown", "SlurmSilent")
    unknown = [worker.ordinal for worker in pods if worker.node is None]
    if unknown:
        message = (
            f"Slurm does not know {range_text(name, unknown)}, so nothing is done to them: slurm.conf does not have them (yet). "
            "The log of slurmctld's container `reconfigure` says what it waits for."
        )
        return Condition("NodesRegister", "False", "UnknownToSlurm", message)
    if plan.ghosts.evict_later:
        message = (
            "Slurm counts nodes as powered down whose pods run, as after slurmctld lost its state: "
            f"{plan.ghosts.batch_size} of the pods are deleted every {GHOST_PAUSE_S:.0f} s, and each ends when its steps have ended. "
            "To keep them, stop slurmctld, and restore its state: "
            f"kubectl -n {nodeset.metadata.namespace} scale statefulset {nodeset.spec.cluster}-slurmctld --replicas=0. "
            f"They are {range_text(name, plan.ghosts.evict_later)}."
        )
        return Condition("NodesRegister", "False", "OffInSlurm", message)
    unregistered = [worker for worker in pods if worker.pod is not None and not worker.pod.terminating and not worker.is_registered]
    waiting = [worker for worker in unregistered if not worker.has_gpu_drain]
    late = [worker.ordinal for worker in waiting if worker.pod is not None and observed.now - worker.pod.created_at > limit]
    failed = [worker.ordinal for worker in observed.workers() if worker.has_failed_to_resume and worker.pod is None]
    given_up = [worker.ordinal for worker in observed.workers() if nodeset.spec.is_elastic and worker.is_given_up]
    silent = [ordinal for ordinal in given_up if ordinal not in failed]
    if silent and not late:
        first = node_name(name, silent[0])
        message = (
            f"{range_text(name, silent)} fell silent, and Slurm has powered them down. Each is resumed once its old pod is gone. "
            f"To do that by hand, when its machine is off: scontrol update nodename={first} state=resume.{_resumed(name, silent, observed)}"
        )
        return Condition("NodesRegister", "False", "FellSilent", message)
    if late or failed:
        first = node_name(name, [*late, *failed][0])
        message = f"{range_text(name, {*late, *failed})} did not register within {limit} s. See: kubectl logs {first} -c slurmd."
        message += _resumed(name, failed, observed)
        return Condition("NodesRegister", "False", "DidNotRegister", message)
    return Condition("NodesRegister", "True", "AllRegister")


def _gpus_as_declared(nodeset: NodeSetObject, workers: Iterable[Worker], observed: Observed) -> list[Condition]:
    """No condition before the first fault: workers report only faults to Slurm."""
    faults, remarks = dict[str, list[int]](), dict[str, list[int]]()
    for worker in workers:
        if worker.gpu_fault:
            faults.setdefault(worker.gpu_fault, []).append(worker.ordinal)
        if worker.node is not None and worker.node.gpu_remark:
            remarks.setdefault(worker.node.gpu_remark, []).append(worker.ordinal)
    differ = (
        "Nodes whose GPUs are not those of the config get no job, and their slurmd waits until they are. Repair the machine, or "
        "correct gpus in the stack file."
    )
    elsewhere = "Jobs run, on cores that are farther from their GPUs than they could be: correct gpus.sockets of the node set."
    return [
        *_differences(nodeset, observed, "GpusAsDeclared", "GpusDiffer", differ, faults),
        *_differences(nodeset, observed, "CoresFollowGpus", "OtherSockets", elsewhere, remarks),
    ]


def _differences(
    nodeset: NodeSetObject, observed: Observed, kind: str, reason: str, meaning: str, differences: Mapping[str, Sequence[int]]
) -> Iterable[Condition]:
    """No condition before the first difference. `differences` has the ordinals by difference."""
    if not differences:
        if all(condition.type != kind for condition in nodeset.status.conditions):
            return []
        return [Condition(kind, "Unknown", "SlurmSilent") if observed.nodes is None else Condition(kind, "True", "NoneDiffers")]
    shown = sorted(differences.items(), key=lambda entry: (-len(entry[1]), entry[0]))[:3]
    more = f"; {_count(len(differences) - 3, 'difference')} more" if len(differences) > 3 else ""
    text = "; ".join(f"{range_text(nodeset.metadata.name, ordinals)}: {difference}" for difference, ordinals in shown)
    return [Condition(kind, "False", reason, f"{meaning} {text}{more}")]


def _resumed(name: str, down: Iterable[int], observed: Observed) -> str:
    """When the controller tries nodes again, to the minute: the text must not change from look to look."""
    due = {ordinal: observed.pauses.resumed_at[ordinal] for ordinal in down if ordinal in observed.pauses.resumed_at}
    if not due:
        return ""
    last = datetime.fromtimestamp(-(-max(due.values()) // 60) * 60, UTC).strftime("%H:%M UTC")
    now = f"scontrol update nodename={node_name(name, min(due))} state=resume"
    return f" The controller resumes {range_text(name, due)} by {last}; to try at once, once the cause is fixed: {now}"


def _updated(nodeset: NodeSetObject, plan: Plan, pods: Sequence[Worker]) -> Condition:
    if not plan.roll.outdated and not plan.roll.resized:
        return Condition("Updated", "True", "AllUpdated")
    name, strategy = nodeset.metadata.name, nodeset.spec.update_strategy
    waiting = {*plan.roll.outdated, *plan.roll.resized} - set(plan.roll.left_alone)
    draining = [worker.ordinal for worker in pods if worker.ordinal in waiting and worker.is_drained_to_leave]
    parts = [f"{len(plan.roll.outdated)} of {len(pods)} pods are made from an older template"] if plan.roll.outdated else []
    if plan.roll.resized:
        parts.append(f"{range_text(name, plan.roll.resized)} get their new size in Slurm when drained of jobs")
    if plan.roll.left_alone:
        parts.append(f"{range_text(name, plan.roll.left_alone)} left alone: drained by somebody else")
    if draining:
        parts.append(f"{range_text(name, draining)} draining")
    if plan.roll.settling:
        parts.append(f"{range_text(name, plan.roll.settling)} up for less than {strategy.min_ready_seconds} s (minReadyS)")
    if held := set(plan.roll.waking) & waiting:
        parts.append(f"{range_text(name, held)} replaced once up, as jobs wait for them")
    if strategy.type == "OnDelete" and waiting:
        parts.append(f"with OnDelete, each is replaced when you delete it: kubectl delete pod {node_name(name, min(waiting))}")
    if strategy.type == "Maintenance" and waiting:
        parts.append(f"they are replaced while reservation {strategy.reservation} is active")
    reason = "OlderTemplate" if plan.roll.outdated else "OtherSize"
    return Condition("Updated", "False", reason, "; ".join(parts) + ".")


def _pods_end(nodeset: NodeSetObject, pods: Iterable[Worker], observed: Observed) -> Condition:
    stuck = [
        (worker, worker.pod)
        for worker in pods
        if worker.pod is not None and worker.pod.terminating and 0 < worker.pod.terminating_since < observed.now - _STUCK_S
    ]
    if not stuck:
        return Condition("PodsEnd", "True", "AllEnd")
    name, space = nodeset.metadata.name, nodeset.metadata.namespace
    stuck_worker, pod = stuck[0]
    first, age_s = node_name(name, stuck_worker.ordinal), observed.now - pod.terminating_since
    if pod.machine is not None and not _answers(observed, pod.machine):
        remedy = f"{pod.machine} does not answer. When it is off for good: kubectl delete node {pod.machine}"
    else:
        force = f"kubectl -n {space} delete pod {first} --force"
        remedy = f"See: kubectl -n {space} describe pod {first}. When no process of it can be left: {force}"
    ordinals = [worker.ordinal for worker, _ in stuck]
    message = f"{first} should have ended {age_s:.0f} s ago. {remedy}. Pods that do not end: {range_text(name, ordinals)}"
    return Condition("PodsEnd", "False", "StuckTerminating", message)


def _machines_answer(name: str, pods: Iterable[Worker], observed: Observed) -> Condition:
    lost: dict[str, list[int]] = {}
    for worker in pods:
        machine = observed.machine_of(worker)
        if worker.pod is not None and worker.pod.machine is not None and machine is not None and not machine.answers:
            lost.setdefault(worker.pod.machine, []).append(worker.ordinal)
    if not lost:
        return Condition("MachinesAnswer", "True", "AllAnswer")
    machine, ordinals = max(lost.items(), key=lambda entry: len(entry[1]))
    more = f" {_count(len(lost) - 1, 'machine')} more likewise: {', '.join(sorted(set(lost) - {machine}))}." if len(lost) > 1 else ""
    message = (
        f"{machine} with {range_text(name, ordinals)} does not answer Kubernetes; jobs there may still run. Look at it: "
        f"kubectl describe node {machine}. When it is off for good: kubectl delete node {machine}.{more}"
    )
    return Condition("MachinesAnswer", "False", "MachinesLost", message)


def _placed(name: str, plan: Plan) -> Condition:
    if not plan.topologies.unplaced:
        return Condition("NodesPlaced", "True", "AllPlaced")
    why = Counter(plan.topologies.unplaced.values())
    shown = "; ".join(text for text, _ in why.most_common(3))
    more = f"; {_count(len(why) - 3, 'machine')} more likewise" if len(why) > 3 else ""
    nodes = range_text(name, plan.topologies.unplaced)
    message = (
        f"Slurm does not know where these nodes are in the network: {shown}{more}. "
        f"A label is given with kubectl label node NAME LABEL=VALUE. The nodes are {nodes}"
    )
    return Condition("NodesPlaced", "False", "NoPlace", message)


def _checks_before_jobs(nodeset: NodeSetObject, observed: Observed, plan: Plan) -> Iterable[Condition]:
    """No condition before a node has waited for long: then a check that cannot run keeps it out, and a person has to look."""
    late, kind = plan.repairs.late_before_jobs, "CheckedFirst"
    if not late and all(condition.type != kind for condition in nodeset.status.conditions):
        return []
    if observed.nodes is None:
        return [Condition(kind, "Unknown", "SlurmSilent")]
    if not late:
        return [Condition(kind, "True", "NoneWaits")]
    name, space = nodeset.metadata.name, nodeset.metadata.namespace
    first = min(late)
    message = (
        f"Nodes have waited for over {LATE_S // 60} minutes for the checks that come before jobs (checksBeforeJobs), and {late[first][0]} "
        f"has not passed. See: kubectl -n {space} describe slurmnode {node_name(name, first)}. They are {range_text(name, late)}"
    )
    return [Condition(kind, "False", "ChecksOutstanding", message)]


def _remedied(nodeset: NodeSetObject, plan: Plan) -> list[Condition]:
    """What is done about faulty nodes, where the set has a policy for that, or had one."""
    repairs, policy, name = plan.repairs, nodeset.spec.remedies, nodeset.metadata.name
    if policy is None and not repairs.record.nodes and all(condition.type != "Remedied" for condition in nodeset.status.conditions):
        return []
    by_state: dict[str, list[int]] = {}
    for ordinal, repair in repairs.record.nodes.items():
        by_state.setdefault(repair.state, []).append(ordinal)
    if policy is not None and repairs.is_systemic:
        message = (
            f"{_count(repairs.failing, 'node')} of the set fail, which began with more than {repairs.most_failing} within "
            f"{policy.window_seconds} s: what they share is broken, or the check is. Nothing is repaired, and nothing more is drained, "
            f"until {repairs.most_failing // 2} or fewer fail. See: kubectl -n {nodeset.metadata.namespace} get slurmnodes"
        )
        return [Condition("Remedied", "False", "Systemic", message)]
    if given_up := by_state.get("GivenUp", []):
        first = node_name(name, min(given_up))
        message = (
            "All steps were taken, and the nodes still fail. A person is needed; the node returns to service by itself once nothing is "
            f"wrong with it. See: kubectl -n {nodeset.metadata.namespace} describe slurmnode {first}. They are {range_text(name, given_up)}"
        )
        return [Condition("Remedied", "False", "GivenUp", message)]
    if policy is not None and (unanswered := repairs.unanswered):
        message = (
            f"No check has answered for {policy.machine_timeout_seconds} s whether a repair has helped: {range_text(name, unanswered)}. "
            f"They stay drained, and no further step is taken. See: kubectl -n {nodeset.metadata.namespace} describe slurmnode "
            f"{node_name(name, min(unanswered))}"
        )
        return [Condition("Remedied", "False", "Unanswered", message)]
    if repairs.capped and policy is not None:
        step, ordinals = next(iter(repairs.capped.items()))
        message = f"{range_text(name, ordinals)} would be next for {step}, and there were {policy.max_per_day} in 24 hours (maxPerDay)."
        return [Condition("Remedied", "False", "CapReached", message)]
    under_way = {state: ordinals for state, ordinals in by_state.items() if state != "InService"}
    if not under_way:
        return [Condition("Remedied", "True", "NothingToDo")]
    text = "; ".join(f"{state}: {range_text(name, ordinals)}" for state, ordinals in sorted(under_way.items()))
    return [Condition("Remedied", "True", "UnderWay", text)]


def _answers(observed: Observed, machine: str) -> bool:
    known = observed.machines.get(machine)
    return known is not None and known.answers


def _drains_end(name: str, plan: Plan, silence: Silence | None, jobs_error: str) -> Condition:
    if silence is not None:
        return Condition("DrainsEnd", "Unknown", "SlurmSilent")
    if jobs_error and plan.deadlines.needs_jobs:
        message = f"Slurm does not list its jobs ({jobs_error}): nodes go when their last jobs have ended; none is requeued or cancelled."
        return Condition("DrainsEnd", "Unknown", "JobsUnknown", message)
    if not plan.deadlines.unmovable:
        return Condition("DrainsEnd", "True", "NoneHeldUp")
    jobs = {job.number: job for node_jobs in plan.deadlines.unmovable.values() for job in node_jobs}
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
    parts.append(f"the nodes are {range_text(name, plan.deadlines.unmovable)}")
    return Condition("DrainsEnd", "False", "NotRequeued", "; ".join(parts) + ".")


def _reconciled(errors: Sequence[str], lateness: Lateness | None) -> Condition:
    if lateness is not None:
        return too_late(lateness)
    if not errors:
        return Condition("Reconciled", "True", "NoErrors")
    more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    return Condition("Reconciled", "False", "Errors", f"{errors[0]}{more}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(jobs: Sequence[str]) -> str:
    """`job 7`, or `jobs 7, 9 and 12 more`."""
    shown = ", ".join(jobs[:10])
    more = f" and {len(jobs) - 10} more" if len(jobs) > 10 else ""
    return f"{'job' if len(jobs) == 1 else 'jobs'} {shown}{more}"
