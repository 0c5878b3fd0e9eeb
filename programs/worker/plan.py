"""Decides what a worker does about its own node in Slurm, from one reading: before slurmd starts, while it runs, before the pod ends.

Pure. Unknown is busy: a state that is not known here keeps the pod and changes nothing. A drain without a reason of ours is somebody
else's: it is never lifted, and keeps its words.
"""

from slurm import reasons
from slurm.records import record
from slurm.scontrol import Node
from slurm.states import has_jobs_begun, is_drained, is_off, is_powering_up, is_waking, may_be_drained, waits_for_power

_UNHEARD_S = 15
"""Seconds that a started slurmd has to register before it is started again."""


@record
class Drain:
    """Drain the node with this reason: the pod is about to end, or a registration has cleared the reason of somebody's drain."""

    reason: str


@record
class Lift:
    """Lift a drain of ours, which had this reason."""

    reason: str


@record
class SetDown:
    """Set the node down: its jobs ended with an earlier pod."""

    reason: str


@record
class Remark:
    """Write this as the node's comment; empty text removes it."""

    text: str


@record
class SetInstance:
    """Write this as the machine that the node is on: see slurm.instances."""

    instance: str


@record
class Restart:
    """Start slurmd again, which registers the node."""


@record
class Wait:
    """Look again in a second."""

    why: str


@record
class Leave:
    """The pod may end."""

    why: str


def plan_stop(name: str, node: Node | None, has_steps: bool) -> Drain | Wait | Leave:
    """The next step of the stop hook. `node` is None for one that slurmctld does not know; `has_steps` says whether steps of jobs run here.

    A node that power saving has turned off gets no job until a new slurmd registers. It is left without a drain, which would keep Slurm
    from waking it. Steps that still run there belong to jobs that slurmctld has forgotten, with its state. The jobs of a node that is DOWN
    are not forgotten but given up, so they may run elsewhere already.
    """
    if node is None:
        if has_steps:
            return Wait(f"slurmctld knows no node {name}, but steps of jobs run here")
        return Leave(f"slurmctld knows no node {name}, and no step runs here")
    state = node.state
    if is_off(state) and has_steps and "DOWN" not in state.flags:
        return Wait(f"Slurm has powered {name} down, but steps of jobs run here (state {state})")
    if is_off(state):
        return Leave(f"Slurm has powered {name} down (state {state})")
    if is_drained(state):
        return Leave(f"no job is left on {name} (state {state})")
    if may_be_drained(state):
        # A node that somebody set DOWN stays theirs, by their words, though it takes a drain to keep the next pod from bringing it back.
        is_theirs = "DOWN" in state.flags and reasons.is_on_purpose(node.reason)
        return Drain(reasons.written(node.reason) if is_theirs else reasons.POD_STOPPING)
    if not state.is_known:
        return Wait(f"the state is not known here, so the node counts as busy (state {state})")
    if is_waking(state):
        return Wait(f"waiting until the node is up, as a drain now would end the job that it wakes for (state {state})")
    return Wait(f"waiting for jobs to end (state {state})")


def plan_settle(node: Node, fault: str = "", has_checks_before_jobs: bool = False) -> SetDown | Drain | Lift | None:
    """What is to be done before slurmd starts about what an earlier pod of this node left behind; None when nothing is left to do.

    `fault` says how the GPUs differ from the config: then a drain of this pod's own takes the place of an earlier pod's. So does one until
    health checks have passed, where they come before jobs: which machine has passed them, the NodeSet controller knows.
    """
    if has_jobs_begun(node.state):
        # Their processes ended with that pod. Slurm would learn it in minutes only, and hold the jobs until then.
        return SetDown(reasons.written(node.reason) or reasons.POD_REPLACED)
    if fault:
        return plan_gpus(node, fault)
    if has_checks_before_jobs:
        return _plan_checks(node)
    if "DRAIN" in node.state.flags and reasons.is_drain_of_a_pod(node.reason):
        return Lift(node.reason)
    return None


def _plan_checks(node: Node) -> Drain | None:
    """The drain before checks. A drain of somebody else stays, as it keeps jobs away too.

    A drain is replaced, and never only lifted: slurmctld may still think that the node answers.
    """
    flags = node.state.flags
    if "DRAIN" in flags and "UNDRAIN" not in flags and not reasons.is_drain_of_a_pod(node.reason):
        return None
    is_theirs = "DOWN" in flags and reasons.is_on_purpose(node.reason)
    return Drain(reasons.written(node.reason) if is_theirs else reasons.BEFORE_JOBS)


def plan_gpus(node: Node, fault: str) -> Drain | Lift | None:
    """Keeps jobs off a node whose GPUs are not those of the config, while there is a `fault`, and lets them back on after that.

    A node that wakes is drained, too: its job would wait for ResumeTimeout, and be requeued then. A drain of others, or their DOWN, keeps
    jobs away as well, and stays theirs.
    """
    flags, is_ours = node.state.flags, node.reason.startswith(reasons.GPUS)
    has_drain = "DRAIN" in flags and "UNDRAIN" not in flags
    if not fault:
        return Lift(node.reason) if is_ours and has_drain else None
    if not node.state.is_known or (has_drain and not reasons.is_drain_of_a_pod(node.reason)):
        return None
    if "DOWN" in flags and reasons.is_on_purpose(node.reason):
        return None
    wanted = reasons.gpus(fault)
    return None if has_drain and reasons.written(node.reason) == wanted else Drain(wanted)


def plan_instance(node: Node, instance: str) -> SetInstance | None:
    """The machine to record in slurmctld. By itself slurmctld keeps the machine of a node's first registration, unless a later one has
    none (26.05.5)."""
    return SetInstance(instance) if instance and node.instance != instance else None


def plan_remark(node: Node, remark: str) -> Remark | None:
    """What becomes of the node's comment, where GPUs are beside other sockets than gres.conf says. A comment of others stays."""
    wanted = reasons.gpus(remark) if remark else ""
    is_free = not node.comment or node.comment.startswith(reasons.GPUS)
    return Remark(wanted) if is_free and node.comment != wanted else None


def needs_boot(node: Node | None) -> bool:
    """True when slurmd is to say that the node has just booted (`-b`).

    Once slurmctld has asked for a node, it rejects a registration with an older boot time. A pod shows its machine's boot time. In all
    other cases slurmd must not report a boot. With returnToService below 2, slurmctld would set the node down for it.
    """
    return node is not None and waits_for_power(node.state)


def plan_watch(
    node: Node, before: Node | None, is_elastic: bool, is_stopping: bool, running_s: float, has_steps: bool
) -> Drain | Lift | Restart | None:
    """What is to be done while slurmd runs. `before` is the last reading from before the node was registered, `running_s` slurmd's age,
    and `has_steps` says whether steps of jobs run here.

    slurmctld never dials a CLOUD node that it takes for off or on its way: only a start of slurmd registers it. A registration from there
    keeps a drain and clears its reason (26.05). So the reason is known only to the program that has read it before. It also ends every step
    that slurmctld does not know, and after a loss of its state it knows none: the steps come first.
    """
    flags = node.state.flags
    if waits_for_power(node.state):
        is_unheard = is_powering_up(node.state) or ("POWERED_DOWN" in flags and not is_elastic and not is_stopping)
        return Restart() if is_unheard and node.state.is_known and running_s >= _UNHEARD_S and not has_steps else None
    if "DRAIN" not in flags or "UNDRAIN" in flags:
        return None
    if not node.reason and before and "DRAIN" in before.state.flags and before.reason:
        if reasons.is_drain_of_a_pod(before.reason):
            return None if is_stopping else Lift(before.reason)
        return Drain(reasons.written(before.reason))
    # By the hook of an earlier pod that outlived its machine's absence; this pod's own says first that it stops.
    return Lift(node.reason) if node.reason.startswith(reasons.POD_STOPPING) and not is_stopping else None
