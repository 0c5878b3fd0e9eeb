"""Drains by Slurm of nodes where processes of a job did not end (`Kill task failed`): when a repair has ended them. Pure; part of `plan`.

Slurm never lifts such a drain. The controller does, if the set's `remedies` act on causes of this kind: after a step that began later than
the drain and has replaced the machine, its boot or the pod.
"""

from controllers.nodeset.observed import Observed
from controllers.nodeset.structs import NodeSet, RemedyPolicy
from controllers.nodeset.workers import Worker
from slurm.causes import Kind, Wish

CAUSE = "kill-task-failed"
KIND: Kind = "node"


def wish_of(policy: RemedyPolicy | None) -> Wish:
    """What the cause asks for: the first step of the policy on the machine, as a pod whose processes do not end may not end either."""
    for step in policy.steps if policy is not None else ():
        if step != "RecreatePod":
            return "reboot" if step == "RebootMachine" else "replace"
    return "drain"


def is_mended(nodeset: NodeSet, observed: Observed, worker: Worker) -> bool:
    """True when the repair's last step is done, and has begun after Slurm had drained the node."""
    policy, repair, node = nodeset.spec.remedies, observed.repairs.nodes.get(worker.ordinal), worker.node
    if policy is None or KIND not in policy.causes or not worker.has_kill_drain or node is None or node.reason_at is None:
        return False
    if repair is None or repair.state != "Verifying" or not repair.steps or repair.steps[-1].at < node.reason_at:
        return False
    pod, machine = worker.pod, observed.machine_of(worker)
    if pod is None or machine is None or pod.uid == "" or not repair.machine:
        return False
    if machine.identity != repair.machine:
        return True
    step = repair.steps[-1].step
    return (step == "RecreatePod" and pod.uid != repair.pod) or (step == "RebootMachine" and machine.boot != repair.boot)
