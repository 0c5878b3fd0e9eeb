"""What Slurm, Kubernetes, machines and people do in a simulated world, at random."""

from typing import Literal

import msgspec

from controllers.nodeset.structs import Drain, PodTemplate, UpdateStrategy
from slurm import reasons
from slurm.reasons import BEFORE_JOBS, CHECK, KILL_FAILED, NODESET, NOT_RESPONDING, REMEDY, RESUME_FAILED, UPDATE
from slurm.states import may_be_removed, node_state
from tests.support.controllers.nodeset.simulated_world import ANNOUNCED, BROKEN, CHECKS, MACHINES, NOWHERE, ORDINALS, PEOPLE, Node, World


def happen(world: World) -> None:
    """One thing, at random."""
    world.steps += 1
    things = (
        *(pass_time, start_pods, start_pods, stop_pods, start_job, start_job, end_jobs, ping),
        *(
            wake,
            suspend,
            fail_resume,
            administrate,
            lift,
            lift_ours,
            fail_check,
            fail_check,
            pass_check,
            look_again,
            look_again,
            delete_by_hand,
            fail_pod,
            lose_machine,
        ),
        *(
            scale,
            change_template,
            resize,
            take_sizes,
            take_sizes,
            change_strategy,
            change_drain,
            fall_silent,
            open_window,
            lose_state,
            delete_set,
            strike_off,
            cordon,
            uncordon,
            delete_machine,
            add_machine,
            fall_silent_node,
            drain_too_late,
            fail_again,
            serve_machine,
            announce,
            take_back,
            break_machine,
            mend_machine,
            fail_kill,
            run_asked,
            run_asked,
            silence_kubelet,
            wake_kubelet,
            request_drain,
            request_drain,
            withdraw_requests,
        ),
    )
    repairs = (
        *(pass_time, pass_time, start_pods, start_pods, stop_pods, start_job, end_jobs, end_jobs, ping, wake),
        *(fail_check, fail_again, fail_again, look_again, look_again, serve_machine, administrate, lift, lift),
        *(break_machine, mend_machine, announce, take_back, take_back, fail_kill, run_asked, run_asked),
        *(silence_kubelet, wake_kubelet, lose_request, lose_machine, change_drain),
    )
    # Most histories with a policy of repairs are about these: in all that may happen at once, no fault lasts long enough.
    is_about_repairs = world.nodeset.spec.remedies is not None and world.rng.random() < 0.93
    thing = world.rng.choice(repairs if is_about_repairs else things)
    world.note(thing.__name__)
    thing(world)


def pass_time(world: World) -> None:
    world.now += world.rng.choice([1, 10, 100, 2000])


def start_pods(world: World) -> None:
    for ordinal, pod in world.pods.items():
        if not pod.ready and not pod.terminating and not pod.finished and world.rng.random() < 0.7:
            world.place(ordinal)


def stop_pods(world: World) -> None:
    for ordinal in [one for one, pod in world.pods.items() if pod.terminating and world.nodes[one].job_ends is None]:
        if world.pods[ordinal].machine not in world.unheard:
            del world.pods[ordinal]


def request_drain(world: World) -> None:
    """Another program annotates a pod, or has other words for it now."""
    if world.pods:
        world.rng.choice(list(world.pods.values())).drain_requested = world.rng.choice(("link is slow", "row 7 : Not responding"))


def withdraw_requests(world: World) -> None:
    for pod in world.pods.values():
        if world.is_calm or world.rng.random() < 0.7:
            pod.drain_requested = ""


def silence_kubelet(world: World) -> None:
    """A kubelet falls silent. Pods there run on, with their jobs, and Slurm notices nothing."""
    used = sorted({pod.machine for pod in world.pods.values() if pod.machine is not None})
    if used and world.rng.random() < 0.5:
        world.unheard.add(world.rng.choice(used))


def wake_kubelet(world: World) -> None:
    """It is back, and stops what it was told to stop meanwhile."""
    for machine in sorted(world.unheard):
        if world.is_calm or world.rng.random() < 0.7:
            world.unheard.discard(machine)
            for ordinal in [one for one, pod in world.pods.items() if pod.machine == machine and pod.terminating]:
                world.stop(ordinal)


def lose_request(world: World) -> None:
    """The cloud has accepted a step, and never does it: no machine arrives."""
    if world.asked and world.rng.random() < 0.3:
        world.asked.pop(world.rng.randrange(len(world.asked)))


def start_job(world: World) -> None:
    able = [one for one in world.nodes if world.takes_jobs(one) and world.nodes[one].job_ends is None]
    if able:
        node = world.nodes[world.rng.choice(able)]
        node.set_job(world.now + world.rng.choice([5, 500, 50_000]))
        node.is_interactive = world.rng.random() < 0.3


def end_jobs(world: World) -> None:
    for node in world.nodes.values():
        if node.job_ends is not None and world.rng.random() < 0.5:
            node.set_job(None)


def ping(world: World) -> None:
    for ordinal, node in world.nodes.items():
        if (pod := world.pods.get(ordinal)) is not None and pod.ready and "DOWN" not in node.words and ordinal not in world.struck:
            # A worker that stays unheard while Slurm waits for it starts its slurmd again; one of a fixed set whenever it is unheard.
            if node.is_waking or (not world.nodeset.spec.is_elastic and "POWERED_DOWN" in node.words):
                world.answer(node)
                if pod.terminating:
                    world.stop(ordinal)  # its hook has waited for that
            node.words -= {"NOT_RESPONDING"}


def wake(world: World) -> None:
    asleep = [one for one in world.nodes.values() if one.words == {"IDLE", "CLOUD", "POWERED_DOWN"}]
    if asleep and world.nodeset.spec.is_elastic:
        words = ({"MIXED", "CLOUD", "POWERED_DOWN"}, {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"})
        world.rng.choice(asleep).words = set(world.rng.choice(words))
    for node in world.nodes.values():
        if {"MIXED", "POWERED_DOWN"} <= node.words and world.rng.random() < 0.5:
            node.words = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"} | node.words & {"DRAIN"}


def suspend(world: World) -> None:
    if not world.nodeset.spec.is_elastic:
        return
    for ordinal, node in world.nodes.items():
        if "POWERING_DOWN" in node.words:
            node.words = (node.words - {"POWERING_DOWN"}) | {"POWERED_DOWN"}
        elif ordinal >= (world.nodeset.spec.min or 0) and node.words - {"DRAIN"} == {"IDLE", "CLOUD"} and world.rng.random() < 0.4:
            node.words = {"IDLE", "CLOUD", "POWERING_DOWN"} | node.words & {"DRAIN"}


def fail_resume(world: World) -> None:
    for node in world.nodes.values():
        if "POWERING_UP" in node.words and world.rng.random() < 0.3:
            node.words = {"DOWN", "CLOUD", "POWERED_DOWN"} | node.words & {"DRAIN"}
            node.append(RESUME_FAILED)


def fall_silent_node(world: World) -> None:
    """Past SlurmdTimeout a node without a slurmd is down; an elastic one is powered down after SuspendTime."""
    for ordinal, node in world.nodes.items():
        pod = world.pods.get(ordinal)
        is_heard = pod is not None and pod.ready
        if not is_heard and not node.is_off and not node.is_waking and node.job_ends is None and world.rng.random() < 0.5:
            node.words = {"DOWN", "CLOUD"} | node.words & {"DRAIN"} | ({"POWERED_DOWN"} if world.nodeset.spec.is_elastic else set())
            node.append(NOT_RESPONDING)


def drain_too_late(world: World) -> None:
    """A drain of the controller's arrives when Slurm has just asked for the node: the job that waits has ended by that."""
    waking = [one for one, node in world.nodes.items() if node.is_waking and "DRAIN" not in node.words]
    if waking and world.rng.random() < 0.5:
        ordinal = world.rng.choice(waking)
        world.drained_at[ordinal] = world.nodes[ordinal].drained_since = world.now
        world.nodes[ordinal].words = {"IDLE", "CLOUD", "NOT_RESPONDING", "POWERING_UP", "DRAIN"}
        world.nodes[ordinal].reason = UPDATE


def cordon(world: World) -> None:
    world.cordoned.add(world.rng.choice(MACHINES))


def uncordon(world: World) -> None:
    if world.cordoned:
        world.cordoned.remove(world.rng.choice(sorted(world.cordoned)))


def announce(world: World) -> None:
    """A cloud announces that it takes a machine: by a taint or a condition, and perhaps one that some pod is on."""
    used = sorted({pod.machine for pod in world.pods.values() if pod.machine is not None})
    machine = world.rng.choice(used if used and world.rng.random() < 0.7 else MACHINES)
    world.machine_causes.setdefault(machine, set()).add(world.rng.choice(ANNOUNCED))


def fail_kill(world: World) -> None:
    """A job ends, and its processes do not: Slurm drains the node, unless it is drained already."""
    for ordinal, node in world.nodes.items():
        pod = world.pods.get(ordinal)
        is_here = pod is not None and pod.ready and pod.machine is not None and node.job_ends is not None
        if pod is not None and is_here and "DRAIN" not in node.words and not node.is_waking and world.rng.random() < 0.3:
            node.set_job(None)
            node.words.add("DRAIN")
            node.reason, node.stuck_at = KILL_FAILED, world.now
            node.stuck = (pod.uid, world.machine(pod.machine or "").boot)
            return


def take_back(world: World) -> None:
    for causes in world.machine_causes.values():
        causes -= {cause for cause in ANNOUNCED if world.rng.random() < 0.5}


def break_machine(world: World) -> None:
    """node-problem-detector finds a machine broken that some pod is on."""
    used = sorted({pod.machine for pod in world.pods.values() if pod.machine is not None})
    if used and world.rng.random() < 0.5:
        world.machine_causes.setdefault(world.rng.choice(used), set()).add(world.rng.choice(BROKEN))


def mend_machine(world: World) -> None:
    for causes in world.machine_causes.values():
        causes -= {cause for cause in BROKEN if world.rng.random() < 0.1}


def delete_machine(world: World) -> None:
    world.absent |= set(world.rng.sample(sorted(world.cordoned), min(1, len(world.cordoned))))


def add_machine(world: World) -> None:
    world.absent -= set(world.rng.sample(sorted(world.absent), min(1, len(world.absent))))


def administrate(world: World) -> None:
    node = world.rng.choice(list(world.nodes.values()))
    if node.is_waking:
        return
    if world.rng.random() < 0.3:
        node.set_job(None)
        node.words = (node.words - {"IDLE"}) | {"DOWN"}
    else:
        node.words.add("DRAIN")
    node.reason = world.rng.choice(PEOPLE)


def lift(world: World) -> None:
    for node in world.nodes.values():
        if node.reason.startswith(PEOPLE) and world.rng.random() < 0.5:
            world.resume(node)
        elif node.reason.startswith(KILL_FAILED) and world.rng.random() < 0.1:
            world.resume(node)  # they have looked after it


def lift_ours(world: World) -> None:
    """An administrator lifts drains of the controller's. Should it drain again, jobs get their whole time again."""
    for node in world.nodes.values():
        if "DRAIN" in node.words and node.reason.startswith(NODESET) and world.rng.random() < 0.5:
            world.lift_drain(node)


def fail_check(world: World) -> None:
    """A check finds an idle node failing: it notes that, and drains the node then, unless it ends before it does or holds too many."""
    idle = [one for one in world.nodes if world.takes_jobs(one) and world.nodes[one].job_ends is None]
    if idle:
        ordinal, check = world.rng.choice(idle), world.rng.choice(sorted(CHECKS))
        node = world.nodes[ordinal]
        world.fail(ordinal, check, world.rng.random() < 0.8)
        if node.faults[check] and world.rng.random() < 0.7:
            node.words.add("DRAIN")
            node.reason = reasons.check(check, "broken")


def pass_check(world: World) -> None:
    """A check passes on an idle node that it spared, or on one whose drain others had lifted."""
    for ordinal, node in world.nodes.items():
        if node.faults and world.takes_jobs(ordinal) and world.rng.random() < 0.5:
            node.faults.pop(world.rng.choice(sorted(node.faults)))


def look_again(world: World) -> None:
    """A check resumes a drained node in a reservation of its own; later it drains the node again, notes a pass, and lets the node go."""
    for ordinal, node in world.nodes.items():
        if node.looked_at and world.rng.random() < 0.5:
            has_passed = world.rng.random() < (0.2 if world.nodeset.spec.remedies is not None else 0.7)
            end_look(node, world.rng.choice(["", *sorted(node.faults)]) if has_passed else "")
            for check, drains in list(node.faults.items()):
                world.fail(ordinal, check, drains)
        elif node.words == {"IDLE", "CLOUD", "DRAIN"} and node.reason.startswith(CHECK) and node.job_ends is None and not node.looked_at:
            node.looked_at, node.reason = node.reason, ""
            node.words = {"IDLE", "CLOUD"}


def run_asked(world: World) -> None:
    """The Jobs that the controller has started: each looks at its nodes in a reservation, and may end at any moment."""
    for check, requests in list(world.check_jobs.items()):
        for ordinal, request in list(requests.items()):
            node = world.nodes[ordinal]
            if node.looked_at and world.rng.random() < 0.7:
                has_passed = world.rng.random() < 0.6
                end_look(node, check if has_passed else "")
                if has_passed:
                    node.passed_for[check] = request
                elif world.rng.random() < 0.5:
                    world.fail(ordinal, check, world.rng.random() < 0.8)
                del requests[ordinal]
            elif node.words == {"IDLE", "CLOUD", "DRAIN"} and node.reason.startswith((CHECK, REMEDY, BEFORE_JOBS)) and not node.looked_at:
                node.looked_at, node.reason, node.words = node.reason, "", {"IDLE", "CLOUD"}
        if not requests or world.rng.random() < 0.1:
            del world.check_jobs[check]


def end_look(node: Node, passed: str) -> None:
    """`passed` is the check that has passed; empty where none has."""
    if "DRAIN" not in node.words:
        node.words.add("DRAIN")
        node.reason = node.reason if node.reason.startswith(PEOPLE) else node.looked_at
    node.looked_at = ""
    node.faults.pop(passed, None)


def fail_again(world: World) -> None:
    """Checks look beside jobs, and find the same again."""
    for ordinal, node in world.nodes.items():
        if (pod := world.pods.get(ordinal)) is not None and pod.ready:
            for check, drains in list(node.faults.items()):
                world.fail(ordinal, check, drains)


def serve_machine(world: World) -> None:
    """The cloud does what it was asked for, whatever runs there. A new machine has the old one's name here, or another."""
    if world.asked:
        step, machine = world.asked.pop(world.rng.randrange(len(world.asked)))
        replaced, boot = world.generations.get(machine, (0, 0))
        world.generations[machine] = (replaced, boot + 1) if step == "RebootMachine" else (replaced + 1, 0)
        world.unheard.discard(machine)
        if step == "ReplaceMachine":
            world.made_at[machine] = world.now
            world.machine_causes.pop(machine, None)
        else:
            world.machine_causes.get(machine, set()).difference_update(cause for cause in BROKEN if cause.wish == "reboot")
        for ordinal in [one for one, pod in world.pods.items() if pod.machine == machine]:
            if step == "ReplaceMachine":
                del world.pods[ordinal]
            world.lose_worker(ordinal)


def delete_by_hand(world: World) -> None:
    if world.pods and world.rng.random() < 0.3:
        world.stop(world.rng.choice(list(world.pods)))


def fail_pod(world: World) -> None:
    if world.pods and world.rng.random() < 0.2:
        ordinal = world.rng.choice(list(world.pods))
        pod = world.pods[ordinal]
        if not pod.terminating:
            pod.ready, pod.finished = False, True
            world.lose_worker(ordinal)


def lose_machine(world: World) -> None:
    if world.pods and world.rng.random() < 0.2:
        ordinal = world.rng.choice(list(world.pods))
        del world.pods[ordinal]
        world.lose_worker(ordinal)


def scale(world: World) -> None:
    spec = world.nodeset.spec
    if spec.is_elastic:
        most = world.rng.randint(1, ORDINALS)
        world.respec(max=most, min=world.rng.randint(0, most), ordinals=ORDINALS)
    else:
        world.respec(replicas=world.rng.randint(0, ORDINALS))


def change_template(world: World) -> None:
    image = world.rng.choice(["a", "b", "c", NOWHERE])
    world.respec(template=PodTemplate({"containers": [{"name": "slurmd", "image": image}]}))


def resize(world: World) -> None:
    """Slurm's files give all nodes another size: those that may have jobs keep theirs for now."""
    if world.rng.random() < 0.3:
        world.held = {ordinal for ordinal in world.nodes if ordinal not in world.struck}
        take_sizes(world)


def take_sizes(world: World) -> None:
    """slurmctld's sidecar looks."""
    world.held = {one for one in world.held if not may_be_removed(node_state(world.nodes[one].words)) and one not in world.struck}


def change_strategy(world: World) -> None:
    kind: Literal["RollingUpdate", "OnDelete", "Maintenance"] = world.rng.choice(
        ["RollingUpdate", "RollingUpdate", "OnDelete", "Maintenance"]
    )
    world.respec(update_strategy=UpdateStrategy(kind, world.rng.choice([1, 2, "10%", "50%"]), "window", world.rng.choice([0, 50, 500])))


def change_drain(world: World) -> None:
    world.respec(drain=world.rng.choice([Drain(), Drain("Requeue", 1000), Drain("Cancel", 1000)]))


def fall_silent(world: World) -> None:
    world.is_silent = not world.is_silent and world.rng.random() < 0.5


def delete_set(world: World) -> None:
    if world.rng.random() < 0.02:
        world.nodeset = msgspec.structs.replace(
            world.nodeset, metadata=msgspec.structs.replace(world.nodeset.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        )


def strike_off(world: World) -> None:
    """slurmctld reads its files, which have no node of the set any more. Those that run jobs stay until these have ended."""
    if world.nodeset.metadata.deletion_timestamp is not None:
        world.struck |= {ordinal for ordinal, node in world.nodes.items() if node.job_ends is None and world.rng.random() < 0.5}


def lose_state(world: World) -> None:
    """slurmctld begins with nothing. Nodes of a fixed set are heard of at once."""
    if world.rng.random() < 0.3:
        world.nodes = {ordinal: Node({"IDLE", "CLOUD", "POWERED_DOWN"}) for ordinal in world.nodes}


def open_window(world: World) -> None:
    world.is_window_open = not world.is_window_open
