"""The controller in a simulated world: its plan, write by write. Each write is checked against the world as it is, not as it was read."""

from collections.abc import Callable, Mapping
from functools import partial

from controllers.nodeset.memory import SetMemory
from controllers.nodeset.observed import Observed, Repairs
from controllers.nodeset.plan import Plan, plan_nodeset
from controllers.nodeset.plans.ghosts import GHOST_PAUSE_S, GHOST_S
from controllers.nodeset.pods import revision
from controllers.nodeset.records import build_repairs, read_repairs, rfc3339_or_empty
from controllers.nodeset.repairs import MachineStep
from controllers.nodeset.repairs.steps import DAY_S
from controllers.nodeset.repairs.views import View
from controllers.nodeset.structs import NodeSetStatus
from slurm.check_results import Request
from slurm.reasons import (
    BEFORE_JOBS,
    CHECK,
    KILL_FAILED,
    MAINTENANCE,
    POD_STOPPING,
    REMEDY,
    REQUESTED,
    UPDATE,
    is_check,
    is_of_machine,
)
from tests.support.controllers.nodeset.simulated_events import happen
from tests.support.controllers.nodeset.simulated_world import NOWHERE, PEOPLE, POLICY, Pod, World


def run_round(world: World, kill_after: int | None = None) -> None:
    """One round; killed after so many writes."""
    first = plan_nodeset(world.nodeset, _look(world))
    if first.needs_fresh_reading:
        if not world.is_calm:
            happen(world)  # the world does not wait between two looks
        first = plan_nodeset(world.nodeset, _look(world))
    for done, (what, ordinal, write) in enumerate(_writes(world, first)):
        if done == kill_after:
            world.note("controller killed")
            world.ghosts_gone.clear()  # the next one knows nothing of them
            world.memory = SetMemory()
            return
        world.steps += 1
        world.note(f"controller: {what} {ordinal}")
        write(ordinal)


def _look(world: World) -> Observed:
    observed = world.look()
    if observed.nodes is not None:
        world.memory.note_registered(observed.workers(), world.now)
    return observed


def _writes(world: World, made: Plan) -> list[tuple[str, int, Callable[[int], None]]]:
    writes: list[tuple[str, int, Callable[[int], None]]] = [("mark busy", one, _mark(world, True)) for one in made.labels.busy]
    record = {**world.drained_at, **made.drains.drained_at}
    writes += [("record", -1, _record(world, record))] if made.drains.drain else []
    writes += [(f"drain ({reason})", one, _drain(world, reason, made.wanted)) for reason, each in made.drains.drain.items() for one in each]
    writes += [("undrain", one, partial(_undrain, world)) for one in made.drains.undrain]
    writes += [("resume", one, partial(_resume, world)) for one in made.resumes.resume]
    writes += [("release", one, partial(_release, world)) for one in made.resumes.release]
    writes += [("requeue", int(one), _end_jobs(world, "Requeue")) for one in made.deadlines.requeue]
    writes += [("cancel", one, _end_jobs(world, "Cancel")) for one in made.deadlines.cancel]
    writes += [("create", one, partial(_create, world)) for one in made.create]
    writes += [("delete", one, _delete(world, made.wanted)) for one in made.deletions.free]
    unbound = [(one, world.pods[one]) for one in made.deletions.unbound]
    writes += [("delete unbound", one, _delete_unbound(world, pod.uid, pod.version, one in made.wanted)) for one, pod in unbound]
    writes += [("mark free", one, _mark(world, False)) for one in made.labels.free]
    writes += [("retire", one, partial(_retire, world)) for one in made.disks.delete]
    asked: dict[int, float] = {}
    writes += [(f"ask for {step.step}", step.ordinal, _ask(world, made, step, asked)) for step in made.repairs.machines]
    writes += [(f"start check {check}", -1, _start(world, check, each)) for check, each in made.repairs.checks.items()]
    writes += [("report", -1, _report(world, made, asked))]
    writes += [("finish", -1, partial(_finish, world))] if made.is_finished else []
    return writes


def _mark(world: World, busy: bool) -> Callable[[int], None]:
    def mark(ordinal: int) -> None:
        world.law(busy or world.nodes[ordinal].job_ends is None, f"gpu-{ordinal} has a job and may be evicted")
        if ordinal in world.pods:  # else the API server says that there is no such pod
            world.pods[ordinal].marked_busy = busy

    return mark


def _record(world: World, drained_at: dict[int, float]) -> Callable[[int], None]:
    def record(_: int) -> None:
        world.drained_at = dict(drained_at)

    return record


def _report(world: World, made: Plan, asked: dict[int, float]) -> Callable[[int], None]:
    """The whole status: what follows from it comes with the next round."""

    def report(_: int) -> None:
        world.drained_at = dict(made.drains.drained_at)
        for ordinal, repair in made.repairs.record.nodes.items():
            known = world.repairs.nodes[ordinal].steps if ordinal in world.repairs.nodes else ()
            for step in set(repair.steps) - set(known):
                world.law(not _is_blameless(world, ordinal), f"{step} of gpu-{ordinal} for what was seen on another machine: {world.nodes}")
                world.taken.append((step.step, step.at))
                lately = sum(each == step.step and world.now - at < DAY_S for each, at in world.taken)
                world.law(lately <= POLICY.max_per_day, f"{lately} steps {step.step} in a day: {world.taken}")
        world.repairs = _as_read(made.repairs.with_asked(asked).record)

    return report


def _is_blameless(world: World, ordinal: int) -> bool:
    """True where only checks have something against the node, and all of that they have seen on other machines."""
    node, pod = world.nodes[ordinal], world.pods.get(ordinal)
    is_up = pod is not None and pod.ready and pod.machine not in world.unheard and not node.words & {"DOWN", "NOT_RESPONDING"}
    others = world.broken(ordinal) or node.reason.startswith(KILL_FAILED) or not node.faults
    return is_up and not others and all(world.is_inherited(ordinal, check) for check in node.faults)


def _as_read(repairs: Repairs) -> Repairs:
    """As a process that begins reads them from the status."""
    status = NodeSetStatus(repairs=build_repairs("gpu", repairs), systemic_since=rfc3339_or_empty(repairs.systemic_since))
    return read_repairs("gpu", status)


def _start(world: World, check: str, requests: Mapping[int, Request]) -> Callable[[int], None]:
    """The API server refuses a second Job of the name."""

    def start(_: int) -> None:
        for ordinal in requests:
            repair = world.repairs.nodes.get(ordinal)
            is_due = repair is not None or world.waits_before_jobs(ordinal) or world.is_inherited(ordinal, check)
            world.law(is_due, f"{check} was started on gpu-{ordinal}, of which the status has no repair")
            is_out = bool(world.nodes[ordinal].words & {"DRAIN", "DOWN"})
            world.law(not (is_out and world.is_peoples(ordinal)), f"{check} was started on gpu-{ordinal}, which people have")
        world.check_jobs.setdefault(check, dict(requests))

    return start


def _ask(world: World, made: Plan, step: MachineStep, asked: dict[int, float]) -> Callable[[int], None]:
    def ask(ordinal: int) -> None:
        node, pod = world.nodes[ordinal], world.pods[ordinal]
        world.law(not world.is_silent, "a machine was touched while Slurm is silent")
        world.law("DRAIN" in node.words and node.job_ends is None, f"a machine was touched under a job: {node}")
        others = [one for one, each in world.pods.items() if each.machine == step.machine and one != ordinal]
        world.law(pod.machine == step.machine and not others, f"the machine of {others} was touched for gpu-{ordinal}")
        world.law(not world.is_peoples(ordinal), f"gpu-{ordinal} was repaired although people have it: {node}")
        world.law(not made.repairs.is_systemic, "a machine was touched although the cause is systemic")
        stored = world.repairs.nodes.get(ordinal)
        world.law(stored is not None and stored.state == step.step, f"{step} was taken before it was recorded: {stored}")
        world.asked.append((step.step, step.machine))
        asked[ordinal] = world.now

    return ask


def _drain(world: World, reason: str, wanted: frozenset[int]) -> Callable[[int], None]:
    """`wanted` is what the round wants: a drain before this one may have changed what the next round wants."""

    def drain(ordinal: int) -> None:
        node = world.nodes[ordinal]
        world.law(not world.is_silent, "drained while Slurm is silent")
        world.law(ordinal not in world.struck, f"gpu-{ordinal} was drained, which Slurm has no more")
        is_ours = world.is_ours(ordinal) or is_check(node.reason) or (is_check(reason) and node.reason.startswith(POD_STOPPING))
        is_answer = is_check(reason) or reason == REMEDY
        is_ours = is_ours or (is_answer and node.reason.startswith(KILL_FAILED) and not world.is_stuck(ordinal))
        world.law("DRAIN" not in node.words or is_ours, f"the drain of gpu-{ordinal} was overwritten: {node.reason}")
        is_held = is_check(node.reason) and world.is_failing(ordinal)
        world.law(is_check(reason) or not is_held, f"gpu-{ordinal} is no longer held by a check that fails")
        if is_check(reason):
            world.law(world.is_failing(ordinal), f"gpu-{ordinal} was drained for a check that does not fail")
            world.law(not node.looked_at or "DRAIN" in node.words, f"gpu-{ordinal} was drained while a check looks at it")
        world.law(not node.is_waking, f"gpu-{ordinal} was drained while a job waited for it")
        is_theirs = "DOWN" in node.words and node.reason.startswith(PEOPLE)
        world.law(not is_theirs or reason == node.reason, f"the words of who took gpu-{ordinal} down were overwritten: {node.reason}")
        is_known = is_theirs or is_check(reason) or ordinal in world.drained_at
        world.law(is_known, f"gpu-{ordinal} was drained, and nothing says that it is ours")
        if reason == UPDATE and world.takes_jobs(ordinal):
            gone = {one for one in wanted if not world.takes_jobs(one) and not world.is_others(one)}
            young = {one for one in wanted if world.takes_jobs(one) and world.is_young(one) and one != ordinal}
            away = len(gone | young)
            world.law(away < world.budget(), f"a roll takes gpu-{ordinal}, with {away} away already and a budget of {world.budget()}")
        if reason.startswith(MAINTENANCE):
            world.law(bool(world.announced(ordinal)), f"gpu-{ordinal} was drained for a maintenance that nobody has announced")
        if reason.startswith(REQUESTED):
            world.law(ordinal in world.pods and bool(world.pods[ordinal].drain_requested), f"nobody asks for a drain of gpu-{ordinal}")
        if reason == BEFORE_JOBS:
            world.law(world.waits_before_jobs(ordinal), f"gpu-{ordinal} was drained for checks that its machine has passed")
        if reason == REMEDY:
            repair = world.repairs.nodes.get(ordinal)
            world.law(
                repair is not None or world.nodeset.spec.remedies is not None, f"gpu-{ordinal} was drained without a policy: {repair}"
            )
        if "DRAIN" not in node.words or is_of_machine(node.reason) or node.reason.startswith(REQUESTED):
            node.drained_since = world.now
        node.words.add("DRAIN")
        node.reason = reason

    return drain


def _undrain(world: World, ordinal: int) -> None:
    node = world.nodes[ordinal]
    world.law(not world.is_silent, "undrained while Slurm is silent")
    pod = world.pods.get(ordinal)
    is_back = pod is None or pod.machine not in world.absent
    world.law(is_back, f"gpu-{ordinal} may take jobs again on a machine that Kubernetes has no more")
    is_ours = world.is_ours(ordinal) or node.reason.startswith((POD_STOPPING, CHECK))
    if node.reason.startswith(KILL_FAILED):
        world.law(world.nodeset.spec.remedies is not None, f"Slurm's drain of gpu-{ordinal} was lifted without a policy")
        world.law(not world.is_stuck(ordinal), f"gpu-{ordinal} may take jobs beside processes that did not end")
        is_ours = True
    world.law(is_ours, f"a drain of others was lifted: {node.reason}")
    world.law(not world.is_failing(ordinal), f"gpu-{ordinal} may take jobs again, although a check says that it fails")
    world.law(not world.announced(ordinal), f"gpu-{ordinal} may take jobs on a machine that is to go")
    world.law(pod is None or not pod.drain_requested, f"gpu-{ordinal} may take jobs, although its pod asks for a drain: {node}")
    world.law(
        pod is None or not world.waits_before_jobs(ordinal), f"gpu-{ordinal} may take jobs before its machine has passed the checks: {node}"
    )
    repair, policy = world.repairs.nodes.get(ordinal), world.nodeset.spec.remedies
    if repair is not None and policy is not None and pod is not None and repair.state in ("Suspect", "Verifying", "GivenUp"):
        observed = world.look()
        worker = observed.worker(ordinal)
        missing = View(world.nodeset, policy, observed, worker, {}, world.now).outstanding(repair)
        is_replaced = repair.state == "GivenUp" and observed.identity_of(worker) != repair.machine  # by somebody: a clean record
        world.law(is_replaced or not missing, f"gpu-{ordinal} may take jobs, although {missing} have not passed since {repair}: {node}")
    world.lift_drain(node)


def _resume(world: World, ordinal: int) -> None:
    node = world.nodes[ordinal]
    world.law({"DOWN", "POWERED_DOWN"} <= node.words and ordinal not in world.pods, f"gpu-{ordinal} is tried again too early: {node}")
    world.law(node.reason not in PEOPLE, f"gpu-{ordinal} was resumed, which others have drained: {node}")
    node.words = {"IDLE", "CLOUD", "POWERED_DOWN"}
    node.reason = ""


def _release(world: World, ordinal: int) -> None:
    """RESUME of a node that powers down: Slurm may wake it at once, and lifts what drain there is."""
    node = world.nodes[ordinal]
    world.law(not world.is_silent, "released while Slurm is silent")
    world.law(ordinal not in world.pods, f"gpu-{ordinal} may be woken while its pod is there")
    world.law(node.words == {"IDLE", "CLOUD", "POWERING_DOWN"}, f"more than the power-down of gpu-{ordinal} was ended: {node}")
    node.words = {"IDLE", "CLOUD", "POWERED_DOWN"}


def _end_jobs(world: World, action: str) -> Callable[[int], None]:
    def end(ordinal: int) -> None:
        node, drain = world.nodes[ordinal], world.nodeset.spec.drain
        world.law(action != "Requeue" or not node.is_interactive, f"Slurm refuses to requeue the job on gpu-{ordinal}")
        world.law(drain.action == action, f"{action} although the set says {drain.action}")
        repair = world.repairs.nodes.get(ordinal)
        is_repaired = is_check(node.reason) and repair is not None and repair.state == "Draining"
        since = repair.since if is_repaired and repair is not None else node.drained_since
        late = drain.deadline_seconds is not None and world.now - since >= drain.deadline_seconds
        is_held = world.is_ours(ordinal) or (is_repaired and world.nodeset.spec.remedies is not None)
        world.law("DRAIN" in node.words and late and is_held, f"{action} on gpu-{ordinal} before the deadline, or without a drain: {node}")
        node.set_job(None)

    return end


def _create(world: World, ordinal: int) -> None:
    world.law(ordinal not in world.pods, f"a second pod for gpu-{ordinal}")
    young = world.now - world.nodeset.spec.resume_timeout_seconds
    on_their_way = sum(not pod.ready and not pod.terminating and pod.created_at > young for pod in world.pods.values())
    world.law(on_their_way < world.nodeset.spec.max_pods_in_flight, f"{on_their_way + 1} pods on their way")
    world.uids += 1
    world.claims.add(ordinal)
    fits = world.nodeset.spec.template.spec["containers"][0]["image"] != NOWHERE
    has_checks_before_jobs = bool(world.nodeset.spec.checks_before_jobs)
    world.pods[ordinal] = Pod(world.uids, revision(world.nodeset.spec), world.now, fits=fits, has_checks_before_jobs=has_checks_before_jobs)


def _delete(world: World, wanted: frozenset[int]) -> Callable[[int], None]:
    """`wanted` is what the round wants, as for a drain."""

    def delete(ordinal: int) -> None:
        world.law(not world.is_silent, "deleted while Slurm is silent")
        node, pod = world.nodes[ordinal], world.pods[ordinal]
        is_drained = "DRAIN" in node.words and not node.words & {"ALLOCATED", "MIXED", "COMPLETING", "UNDRAIN"}
        may = ordinal in world.struck or node.is_off or is_drained
        world.law(pod.finished or (may and node.job_ends is None), f"gpu-{ordinal} was deleted as {node}")
        is_kept = pod.revision == revision(world.nodeset.spec) and ordinal in wanted and ordinal in world.held
        world.law(pod.finished or node.is_off or not is_kept, f"gpu-{ordinal} was deleted only because its node gets another size")
        repair = world.repairs.nodes.get(ordinal)
        if is_kept_otherwise(world, pod, ordinal in wanted) and not node.is_off:
            world.law(repair is not None and repair.state == "RecreatePod", f"gpu-{ordinal} was deleted without a reason: {repair}")
            world.law(not world.is_peoples(ordinal), f"gpu-{ordinal} was replaced although people have it: {node}")
        is_given_up = "DOWN" in node.words or world.nodeset.metadata.deletion_timestamp is not None
        is_old = pod.ready and not pod.finished and pod.created_at < world.now - GHOST_S
        if is_old and pod.marked_busy and "POWERED_DOWN" in node.words and not is_given_up:
            world.law(
                all(world.now - at >= GHOST_PAUSE_S for at in world.ghosts_gone),
                f"gpu-{ordinal} went, busy when last heard of, soon after another whose node was off already",
            )
            world.ghosts_gone.append(world.now)
        world.stop(ordinal)

    return delete


def is_kept_otherwise(world: World, pod: Pod, is_wanted: bool) -> bool:
    """True for a wanted pod of the present template that has not ended: only a repair replaces it."""
    return not pod.finished and pod.revision == revision(world.nodeset.spec) and is_wanted


def _delete_unbound(world: World, uid: int, version: int, is_wanted: bool) -> Callable[[int], None]:
    """A scheduler may be faster by a moment; the API server compares the version."""

    def delete(ordinal: int) -> None:
        world.law(not world.is_silent, "deleted while Slurm is silent")
        if not world.is_calm and world.rng.random() < 0.3:
            world.place(ordinal)
        pod = world.pods.get(ordinal)
        if pod is None or (pod.uid, pod.version) != (uid, version):
            return
        world.law(pod.machine is None, f"gpu-{ordinal} was deleted as unbound, on {pod.machine}")
        is_old = pod.revision != revision(world.nodeset.spec)
        world.law(is_old or not is_wanted, f"gpu-{ordinal} was deleted, which is wanted and made from the present template")
        del world.pods[ordinal]

    return delete


def _retire(world: World, ordinal: int) -> None:
    spec, pods = world.nodeset.spec, len(world.pods)
    world.law(world.nodeset.metadata.deletion_timestamp is None, f"the disk of gpu-{ordinal} went, although the set says Retain")
    world.law(ordinal not in world.pods, f"the disk of gpu-{ordinal} went while its pod is there")
    if spec.max is not None:
        world.law(ordinal >= spec.max, f"the disk of gpu-{ordinal} went while it sleeps")
    else:
        world.law(len(world.claims) > (spec.replicas or 0), f"the disk of gpu-{ordinal} went, with {len(world.claims)} disks, {pods} pods")
    world.claims.discard(ordinal)


def _finish(world: World, _: int) -> None:
    world.law(not world.pods, "the finalizer went before the pods")
    world.is_finished = True
