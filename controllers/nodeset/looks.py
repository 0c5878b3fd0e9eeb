"""One look at a set, for one plan: what informers, the poller and this process's memory have of it. Notes what failed and what came up."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from controllers.nodeset import pods as build
from controllers.nodeset.observe import Surroundings, observe
from controllers.nodeset.observed import GhostPace, JobRequests, Observed, Pauses
from controllers.nodeset.plans.topology import assign_blocks
from controllers.nodeset.rounds import Round
from controllers.slurm.snapshot import Snapshot

STALE_S = 15.0
"""A reading of Slurm that is older, in seconds, does not count as a reading."""


async def look(round_: Round, snapshot: Snapshot | None) -> Observed:
    """What is there now. `snapshot` is None while Slurm is silent."""
    world, key, memory = round_.world, round_.key, round_.memory
    name, now = round_.nodeset.metadata.name, world.clock.now()
    creating = (build.ordinal_of(name, pod) for pod in world.expectations.creating(key))
    pods_held_back, until = world.refusals.held(key, now), world.retries.until(key, now)
    jobs_asked_at = float("-inf") if snapshot is None else snapshot.jobs_asked_at
    wall, jobs_age_s = world.clock.wall(), now - jobs_asked_at
    memory.forget_asked(wall - jobs_age_s)
    surroundings = Surroundings(
        on_their_way=frozenset(ordinal for ordinal in creating if ordinal is not None),
        deleting=world.expectations.deleting(key),
        claims=tuple(world.claims_of(round_.nodeset)),
        machines=world.machine,
        drained_at=round_.drains(),
        held=frozenset(ordinal for node in world.held() if (ordinal := build.ordinal_of(name, node)) is not None),
        stopping_settled=memory.stop_settled(now),
        registered_since=memory.registered_since,
        pauses=Pauses(
            nodes=pods_held_back.union(until),
            pods=pods_held_back,
            refusals={ordinal: why for ordinal, why in memory.refused.items() if world.refusals.failures(key, ordinal)},
            resumed_at={ordinal: wall + at - now for ordinal, at in until.items()},
        ),
        jobs=JobRequests(
            read_at=wall - jobs_age_s,
            error="" if snapshot is None else snapshot.jobs_error,
            can_requeue=world.slurm.can_requeue,
            requeued_at=memory.requeued,
            cancelled_at=memory.cancelled,
        ),
        ghosts=GhostPace(memory.ghost_pause_s(now) <= 0, memory.ghosts[1] if memory.ghosts else 0),
        blocks=_find_blocks(round_, snapshot),
        repairs=memory.repairs_of(round_.nodeset),
        workers_on=_count_workers(round_),
    )
    observed = await asyncio.to_thread(observe, round_.nodeset, world.pods.by_index("nodeset", key), snapshot, wall, surroundings)
    _note(round_, observed)
    return observed


def _count_workers(round_: Round) -> Mapping[str, int]:
    """Workers by machine, where machines may be rebooted or replaced: such a step is for machines with one worker alone."""
    policy = round_.nodeset.spec.remedies
    if policy is None or policy.machines is None:
        return {}
    return Counter(pod.spec.node_name for pod in round_.world.pods.store.values() if pod.spec.node_name)


def _find_blocks(round_: Round, snapshot: Snapshot | None) -> Mapping[str, Mapping[str, int]]:
    """The blocks of the groups of machines that have workers, of whichever set."""
    world = round_.world
    with_blocks = [topology for topology in round_.nodeset.spec.topologies if topology.blocks is not None]
    if snapshot is None or not with_blocks:
        return {}
    machines = [(pod.metadata.name, world.machine(pod.spec.node_name)) for pod in world.pods.store.values() if pod.spec.node_name]
    for topology in with_blocks:
        nodes = [
            (group, node.topology)
            for name, machine in machines
            if machine is not None
            and (node := snapshot.nodes.get(name)) is not None
            and (group := machine.metadata.labels.get(topology.labels[0]))
        ]
        world.blocks[topology.name] = assign_blocks(topology, nodes, world.blocks.get(topology.name, {}))
    return {topology.name: world.blocks[topology.name] for topology in with_blocks}


def _note(round_: Round, observed: Observed) -> None:
    """Remembers what failed, what came up, and which pods run on beside a stop hook's drain."""
    world, key, now = round_.world, round_.key, round_.world.clock.now()
    ended = {ordinal: pod.refused for ordinal, pod in observed.pods.items() if pod.finished}
    world.refusals.note(key, ended, now)
    round_.memory.refused.update({ordinal: why for ordinal, why in ended.items() if why})
    if observed.nodes is None:
        return  # nothing is known of what is down or came up
    workers = list(observed.workers())
    registered = [worker.ordinal for worker in workers if worker.is_registered]
    world.retries.note(key, (worker.ordinal for worker in workers if worker.has_failed_to_resume or worker.is_given_up), now)
    world.retries.forget(key, registered)
    world.refusals.forget(key, registered)
    round_.memory.note_stopping(workers, now)
    round_.memory.note_registered(workers, observed.now)
