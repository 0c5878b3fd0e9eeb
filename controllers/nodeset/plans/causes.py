"""Why each node of a set is out of service, or may soon be: every cause at once, with what happens next. Pure; for reports only.

The causes come from the same readings as the plan.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from controllers.nodeset.check_jobs import job_name
from controllers.nodeset.drivers import OTHER_DRIVER
from controllers.nodeset.inherited import find_inherited
from controllers.nodeset.observed import Observed
from controllers.nodeset.pods import node_name
from controllers.nodeset.structs import NodeSetObject, RemedyPolicy
from controllers.nodeset.workers import Worker
from names import annotations
from slurm.causes import REQUESTED_CAUSE, Cause, Kind, Wish, in_order
from slurm.check_results import LAUNCH, Failure
from slurm.instances import read_instance
from slurm.reasons import (
    CHECK,
    CORDON,
    DELETE,
    OWN,
    POD_REPLACED,
    REMEDY,
    SCALE_IN,
    SLURM_USERS,
    UPDATE,
    is_automatic,
    is_check,
    is_lost,
    printable,
    written,
)
from slurm.times import read_time

CONTROLLER = "NodeSet controller"
SLURM_ADMINISTRATOR = "administrator of Slurm"
KUBERNETES_ADMINISTRATOR = "administrator of Kubernetes"
CHECK_CAUSE = "check/"
"""How the causes begin that health checks have found; the name of the check follows."""
KILL_FAILED_CAUSE = "kill-task-failed"
"""Slurm has drained the node, as processes of a job did not end (`Kill task failed`)."""
KILL_FAILED_KIND: Kind = "node"
_LOST = ("machine-not-ready", "down")
"""Causes that drain no node, but that a repair ends anyway."""
_LONGEST = 500
"""Characters of evidence: texts of others have no limit."""


def find_causes_of(nodeset: NodeSetObject, observed: Observed, plan_reasons: Mapping[int, str]) -> dict[int, tuple[Cause, ...]]:
    """The causes of each node that has any, by ordinal, the most urgent first. None is known while Slurm is silent.

    `plan_reasons` are the reasons of the controller's own drains, as the plan decided about them.
    """
    if observed.nodes is None:
        return {}
    causes_of = {
        worker.ordinal: in_order(_causes(nodeset, observed, worker, plan_reasons.get(worker.ordinal, ""))) for worker in observed.workers()
    }
    return {ordinal: causes for ordinal, causes in causes_of.items() if causes}


def find_faults(nodeset: NodeSetObject, observed: Observed, worker: Worker, kinds: Collection[Kind]) -> dict[str, Wish]:
    """What each cause of these kinds that a repair may end asks for, by its name."""
    return faults_among(_causes(nodeset, observed, worker, ""), kinds)


def faults_among(causes: Iterable[Cause], kinds: Collection[Kind]) -> dict[str, Wish]:
    """As `find_faults`. A cause that takes no job away is not a fault, except for a lost machine."""
    return {cause.name: cause.wish for cause in in_order(causes) if cause.kind in kinds and (cause.wish != "none" or cause.name in _LOST)}


def rfc3339(at: float) -> str:
    """Seconds since 1970 as Kubernetes writes a time; empty for a number that is not a time."""
    try:
        return f"{datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
    except (ValueError, OverflowError, OSError):
        return ""


def _causes(nodeset: NodeSetObject, observed: Observed, worker: Worker, reason: str) -> Iterable[Cause]:
    name = node_name(nodeset.metadata.name, worker.ordinal)
    yield from _own(nodeset, worker, reason)
    yield from _of_machine(observed, worker)
    yield from _of_pod(nodeset, worker)
    inherited = {f"{CHECK_CAUSE}{name}": failure for name, failure in find_inherited(observed, worker).items()}
    for cause in _of_checks(nodeset, worker):
        yield _inherited(nodeset, worker, cause, inherited[cause.name]) if cause.name in inherited else cause
    yield from _of_checks_before_jobs(nodeset, observed, worker)
    yield from _of_others(nodeset, name, worker)
    yield from _down(nodeset, worker, name)


def _own(nodeset: NodeSetObject, worker: Worker, reason: str) -> Iterable[Cause]:
    """Why the controller itself takes the worker away; after that, until the next pod is up, why it did."""
    since = "" if worker.drained_at is None else rfc3339(worker.drained_at)
    is_over = not reason and worker.is_drained_to_leave and not (worker.pod is not None and worker.pod.ready and not worker.pod.terminating)
    if is_over and worker.node is not None:
        reason, after = worker.node.reason, "The drain is lifted once the next pod is up."
    else:
        after = _departure(nodeset)
    if reason.startswith(SCALE_IN):
        if worker.pod is None and not is_over:
            after = f"To give the node a pod, raise {'max' if nodeset.spec.is_elastic else 'replicas'} of the set."
        yield Cause("scale-in", "user", CONTROLLER, "the set has fewer nodes", CONTROLLER, after, since=since)
    elif reason.startswith(DELETE):
        after = after if worker.pod is not None else "The set is gone once its other pods are."
        yield Cause("delete", "user", CONTROLLER, "the set is being deleted", CONTROLLER, after, since=since)
    elif reason.startswith(REMEDY):
        yield Cause("remedy", "maintenance", CONTROLLER, "it is to be repaired", CONTROLLER, after, since=since)
    elif reason.startswith(UPDATE):
        evidence = "its pod is replaced: the template or the node's size has changed, or Slurm has the node off"
        yield Cause("update", "maintenance", CONTROLLER, evidence, CONTROLLER, after, since=since)


def _departure(nodeset: NodeSetObject) -> str:
    """How a pod goes, and what becomes of its jobs."""
    drain = nodeset.spec.drain
    gone = "Its pod is deleted once its jobs have ended."
    if drain.action == "Wait" or drain.deadline_seconds is None:
        return gone
    ended = "requeued" if drain.action == "Requeue" else "cancelled"
    return f"{gone} Jobs that still run {drain.deadline_seconds} s after the drain are {ended}."


def _of_machine(observed: Observed, worker: Worker) -> Iterable[Cause]:
    pod, machine = worker.pod, observed.machine_of(worker)
    if pod is None or pod.machine is None:
        return
    if machine is None:
        if worker.drained_machine == pod.machine and worker.node is not None:
            name, was = ("cordon", "was cordoned") if worker.node.reason.startswith(CORDON) else ("maintenance", "was to be taken")
            evidence = f"{pod.machine} {was}, and its Kubernetes node is deleted"
            after = "The drain is lifted once its pod runs on another machine."
            yield Cause(name, "maintenance", "Kubernetes", evidence, CONTROLLER, after)
        return
    if machine.is_cordoned:
        evidence = f"{pod.machine} is cordoned: {machine.words}" if machine.words else f"{pod.machine} is cordoned"
        after = f"The drain is lifted after: kubectl uncordon {pod.machine}"
        yield Cause("cordon", "maintenance", "Kubernetes", _cut(evidence), KUBERNETES_ADMINISTRATOR, after)
    if not machine.answers:
        after = f"Jobs may still run. See: kubectl describe node {pod.machine}. When it is off for good: kubectl delete node {pod.machine}"
        evidence = f"{pod.machine} does not answer Kubernetes"
        yield Cause("machine-not-ready", "node", "Kubernetes", evidence, f"kubelet of {pod.machine}", after, "none")
    for cause in machine.causes:
        lifted = " Then the drain is lifted." if cause.kind == "maintenance" and cause.wish != "none" else ""
        after = f"It ends when Kubernetes shows it no more: kubectl describe node {pod.machine}.{lifted}"
        evidence, owner = _cut(f"{pod.machine}: {cause.evidence}"), f"what sets it on {pod.machine}"
        yield Cause(cause.name, cause.kind, "Kubernetes", evidence, owner, after, cause.wish, _second_of(cause.since))


def _of_pod(nodeset: NodeSetObject, worker: Worker) -> Iterable[Cause]:
    """Why the pod itself has drained its node, or asks for that."""
    if worker.gpu_fault:
        after = "slurmd waits until the GPUs are those of the config. Repair the machine, or correct gpus in the stack file."
        yield Cause("gpus", "hardware", "worker", _cut(worker.gpu_fault), "worker", after, since=_reason_at(worker))
    if worker.pod is not None and worker.pod.drain_requested:
        name = node_name(nodeset.metadata.name, worker.ordinal)
        after = f"The drain is lifted after: kubectl -n {nodeset.metadata.namespace} annotate pod {name} {annotations.DRAIN_REQUESTED}-"
        evidence, owner = _cut(worker.pod.drain_requested), f"what sets {annotations.DRAIN_REQUESTED} on the pod"
        yield Cause(REQUESTED_CAUSE, "maintenance", "annotation of the pod", evidence, owner, after)
    if worker.has_stop_drain:
        after = "The drain is lifted once the next pod is up."
        yield Cause("pod-stopping", "maintenance", "worker", "its pod was asked to stop", CONTROLLER, after, since=_reason_at(worker))


def _of_checks(nodeset: NodeSetObject, worker: Worker) -> Iterable[Cause]:
    """What health checks have found and not seen mended; if that cannot be read, the reason of the drain."""
    node = worker.node
    if node is None:
        return
    failures = dict(node.failures or {})
    if node.failures is None and worker.is_draining and is_check(node.reason):
        name, _, evidence = written(node.reason).removeprefix(CHECK).partition(": ")
        failures.setdefault(name, Failure(_reason_at(worker), evidence))
    if driver_failure := failures.pop(OTHER_DRIVER, None):
        after = "It ends once a check of GPUs has met the same driver on most nodes of the set: give this machine that driver."
        hint = "" if driver_failure.drains else "This one keeps taking jobs. "
        wish = "drain" if driver_failure.drains else "none"
        yield Cause(
            "driver", driver_failure.kind, "health checks of GPUs", f"driver {driver_failure.found}", CONTROLLER, hint + after, wish
        )
    for name, failure in failures.items():
        source, job = f"health check {name}", f"--from=cronjob/{nodeset.spec.cluster}-check-{name} {name}-now"
        after = f"The check looks again at its next run. To run it now: kubectl -n {nodeset.metadata.namespace} create job {job}"
        if name == LAUNCH:
            after = "Each minute a job of Slurm's own user is tried there, once the node has no other job. slurmd's log has the cause."
        wish = failure.wish if failure.drains else "none"
        since = _second_of(failure.since)
        yield Cause(f"{CHECK_CAUSE}{name}", failure.kind, source, _cut(failure.found), source, _told(nodeset, failure) + after, wish, since)


def _told(nodeset: NodeSetObject, failure: Failure) -> str:
    """What a failure does to its node, where that is not a drain alone."""
    if failure.wish == "none":
        return "It drains no node: its wish is none. "
    if not failure.drains:
        return "It does not drain this one: checks hold as many nodes as they may, or only a link is at fault. "
    policy = nodeset.spec.remedies
    if failure.wish == "drain" or (policy is not None and failure.kind in policy.causes):
        return ""
    done = "rebooted" if failure.wish == "reboot" else "replaced"
    return f"Its wish cannot be met, as the node set has no remedies for such faults: have the machine {done} by hand. "


def _inherited(nodeset: NodeSetObject, worker: Worker, cause: Cause, failure: Failure) -> Cause:
    """What a check has found on another machine: no fault of this one, and no repair begins for it."""
    name, machine = cause.name.removeprefix(CHECK_CAUSE), (worker.pod.machine if worker.pod is not None else None) or "its machine"
    evidence = _cut(f"not looked for on {machine} yet; on {read_instance(failure.machine)[0]}, where the node was before: {failure.found}")
    after = f"The drain is lifted once {name} has passed on {machine}."
    if name in nodeset.spec.check_jobs:
        job = job_name(nodeset.spec.cluster, name)
        after = f"{after} It is started at once. See: kubectl -n {nodeset.metadata.namespace} logs --follow job/{job}"
    return Cause(cause.name, "maintenance", cause.source, evidence, cause.owner, after, cause.wish, cause.since)


def _of_checks_before_jobs(nodeset: NodeSetObject, observed: Observed, worker: Worker) -> Iterable[Cause]:
    missing, pod = observed.checks_before_jobs.get(worker.ordinal, ()), worker.pod
    if missing and pod is not None:
        space, job = nodeset.metadata.namespace, job_name(nodeset.spec.cluster, missing[0])
        after = f"The drain is lifted once all checks have passed, one after another. See: kubectl -n {space} logs --follow job/{job}"
        evidence = f"{pod.machine or 'its machine'} has not passed {', '.join(missing)}"
        yield Cause("admission", "maintenance", CONTROLLER, evidence, CONTROLLER, after, since=rfc3339(pod.created_at))


def _of_others(nodeset: NodeSetObject, name: str, worker: Worker) -> Iterable[Cause]:
    """A drain or DOWN that others set. Slurm itself drains a node that has less than slurm.conf declares, or where a job does not end."""
    node = worker.node
    if node is None or not worker.has_foreign_drain or is_check(node.reason):
        return
    reason = "" if is_lost(node.reason) else written(node.reason)
    evidence = _cut(reason) or "a drain without a reason"
    verb = "resume" if "DOWN" in node.state.flags else "undrain"  # UNDRAIN leaves DOWN in place (measured on 26.05)
    after = f"The node is left alone. Lift with: scontrol update nodename={name} state={verb}"
    if worker.has_kill_drain:
        policy = nodeset.spec.remedies
        evidence = f"{evidence}: slurmd could not end the processes of a job"
        if policy is not None and KILL_FAILED_KIND in policy.causes:
            after = "The drain is lifted once a step of the repair has ended them."
        wish, since = _kill_failed_wish(policy), _reason_at(worker)
        yield Cause(KILL_FAILED_CAUSE, KILL_FAILED_KIND, "slurmd", evidence, SLURM_ADMINISTRATOR, after, wish, since)
    elif is_automatic(reason) and node.reason_by in ("", *SLURM_USERS):
        yield Cause("slurmctld", "node", "slurmctld", evidence, SLURM_ADMINISTRATOR, after, since=_reason_at(worker))
    else:
        source = node.reason_by or "an unknown user"
        yield Cause("administrator", "administrator", source, evidence, SLURM_ADMINISTRATOR, after, since=_reason_at(worker))


def _kill_failed_wish(policy: RemedyPolicy | None) -> Wish:
    """The wish of the cause: the policy's first step on the machine. A pod whose processes do not end may not end either."""
    for step in policy.steps if policy is not None else ():
        if step != "RecreatePod":
            return "reboot" if step == "RebootMachine" else "replace"
    return "drain"


def _down(nodeset: NodeSetObject, worker: Worker, name: str) -> Iterable[Cause]:
    """DOWN by Slurm itself: nobody has set it, or Slurm has added its reason to that of others."""
    node = worker.node
    if node is None or "DOWN" not in node.state.flags:
        return
    reason = written(node.reason)
    slurm_text = node.reason[len(reason) :].removeprefix(" : ") or (reason if is_automatic(reason) else "")
    if worker.has_foreign_drain and not (slurm_text and (slurm_text != reason or is_lost(reason))):
        return
    source = "worker" if slurm_text == POD_REPLACED else "slurmctld"
    after = f"It comes back when its slurmd registers. See: kubectl -n {nodeset.metadata.namespace} logs {name} -c slurmd"
    if worker.is_given_up and nodeset.spec.is_elastic:
        after = f"The controller resumes it once its old pod is gone. To try at once: scontrol update nodename={name} state=resume"
    evidence = _cut(slurm_text.removeprefix(OWN)) or "Slurm has it DOWN, without a reason of its own"
    yield Cause("down", "node", source, evidence, "slurmctld", after, "none", _reason_at(worker) if slurm_text else "")


def _cut(text: str) -> str:
    """Bounds a text of others and makes it printable: neither an object nor a terminal takes everything."""
    return printable(text)[:_LONGEST]


def _reason_at(worker: Worker) -> str:
    at = None if worker.node is None else worker.node.reason_at
    return rfc3339(at) if at else ""


def _second_of(text: str) -> str:
    """A time as others wrote it, in whole seconds of UTC; empty where it is none: the API server would refuse the object."""
    at = read_time(text)
    return "" if at is None else rfc3339(at)
