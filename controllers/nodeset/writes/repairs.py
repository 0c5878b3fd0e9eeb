"""Has machines rebooted or replaced: each step that the set's status has, right after a reading that says that no job is there. Thin."""

from dataclasses import replace

import structlog

from controllers.nodeset.machines import delete_node, post, post_to_ec2
from controllers.nodeset.observe import machine
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan
from controllers.nodeset.pods import node_name
from controllers.nodeset.repairs import MachineStep
from controllers.nodeset.rounds import Round
from controllers.runtime.errors import ApiError, Conflict, NotFound
from controllers.runtime.step_request import StepRequest

log = structlog.get_logger()


async def ask_for_machines(round_: Round, observed: Observed, plan: Plan) -> Plan:
    """Asks for each step. The returned plan has the accepted requests, for the status; for all others, the next round asks again."""
    asked: dict[int, float] = {}
    for step in plan.repairs.machines:
        if not round_.is_fresh_for_slurm() or not round_.world.may_write():
            round_.came_too_late = True  # a job may have come meanwhile
            break
        if (request_and_uid := _request(round_, observed, step)) is None:
            continue  # it is another machine by now: the next round sees that
        request, uid = request_and_uid
        log.warning("asking for a step on a machine", nodeset=round_.key[1], node=request.node, machine=step.machine, remedy=step.step)
        try:
            await _send(round_, request, uid)
        except ApiError as error:
            round_.fail(f"{step.step} of {step.machine}", error)
            continue
        asked[step.ordinal] = round_.world.clock.wall()
    return replace(plan, repairs=plan.repairs.with_asked(asked)) if asked else plan


async def _send(round_: Round, request: StepRequest, uid: str) -> None:
    policy = round_.nodeset.spec.remedies
    if policy is not None and policy.machines == "Webhook" and policy.webhook is not None:
        await post(policy.webhook, request)
    elif policy is not None and policy.machines == "EC2":
        await post_to_ec2(round_.world.ec2, request)
    elif policy is not None and policy.machines == "DeleteNode" and request.step == "ReplaceMachine":
        try:
            await delete_node(round_.world.writer, request.machine, uid)
        except (Conflict, NotFound):
            return  # gone, or another one has its name: what was asked for has happened


def _request(round_: Round, observed: Observed, step: MachineStep) -> tuple[StepRequest, str] | None:
    """The request, and the uid of its Kubernetes node; None if the record is about another machine."""
    kube_node = round_.world.machine(step.machine)
    if kube_node is None or machine(kube_node).identity != observed.repairs.nodes[step.ordinal].machine:
        return None
    name = node_name(round_.key[1], step.ordinal)
    request = StepRequest(
        id=f"{round_.nodeset.metadata.uid}/{name}/{step.step}/{step.at:.0f}",
        step=step.step,
        cluster=round_.nodeset.spec.cluster,
        node_set=round_.key[1],
        node=name,
        machine=step.machine,
        provider_id=kube_node.spec.provider_id,
        causes=step.causes,
    )
    return request, kube_node.metadata.uid
