"""Creates and deletes pods. Thin."""

from collections.abc import Callable

import structlog

from controllers.nodeset import metrics
from controllers.nodeset import pods as build
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan
from controllers.nodeset.rounds import Round
from controllers.nodeset.writes.disks import create_claims
from controllers.nodeset.writes.pins import pins_of
from controllers.runtime.errors import ApiError, Conflict
from controllers.runtime.structs import PODS
from controllers.runtime.writer import Deletion
from names import labels

TAKEN_S = 30.0
"""Seconds after which a pod that exists on the API server, but not in the informer, has lost its labels or is somebody else's."""

log = structlog.get_logger()


async def create(round_: Round, observed: Observed, plan: Plan) -> None:
    """Creates missing claims, then pods."""
    world, nodeset, names = round_.world, round_.nodeset, round_.names(plan.create)
    taken, round_.memory.taken = round_.memory.taken, {}
    if not await create_claims(round_, (*plan.disks.create, *plan.create)) or not plan.create:
        return
    pins = pins_of(round_, observed)
    manifests = [build.build_pod(nodeset, ordinal, pins.get(ordinal)) for ordinal in plan.create]
    for name in names:
        world.expectations.expect_created(round_.key, name)
    log.info("making pods", nodeset=nodeset.metadata.name, pods=round_.text(plan.create))
    results = await world.writer.create_many(PODS, manifests)
    for name, result in zip(names, results, strict=True):
        if isinstance(result, ApiError) and result.result != "unreachable":
            world.expectations.withdraw(round_.key, name)
        elif not isinstance(result, ApiError):
            metrics.PODS_CREATED.inc()
            since = world.waking.pop(name, None)
            if since is not None:
                metrics.POWER_UP_SECONDS.observe(world.clock.now() - since)
    if not round_.fail_any("pod", results):
        now = world.clock.now()
        answers = zip(plan.create, results, strict=True)
        existing = [ordinal for ordinal, answer in answers if isinstance(answer, Conflict) and answer.reason == "AlreadyExists"]
        _note_taken(round_, {ordinal: taken.get(ordinal, now) for ordinal in existing})


def _note_taken(round_: Round, taken: dict[int, float]) -> None:
    """Remembers pods that exist already. For a moment that is normal, as the informer lags; then a person has to look."""
    round_.memory.taken = taken
    if unheard := [ordinal for ordinal, since in taken.items() if round_.world.clock.now() - since >= TAKEN_S]:
        set_labels = f"{labels.CLUSTER}={round_.nodeset.spec.cluster} {labels.NODESET}={round_.key[1]}"
        round_.errors.append(
            f"pods of these names are there without the set's labels: {round_.text(unheard)}. Where jobs run, give them back: "
            f"kubectl -n {round_.key[0]} label --overwrite pod {round_.names(unheard)[0]} {set_labels}. Where none do, delete the pod."
        )


async def delete(round_: Round, observed: Observed, plan: Plan) -> None:
    """Deletes pods that no job can be on."""
    world, free, ghosts = round_.world, plan.deletions.free, plan.ghosts
    if not ghosts.batch_size and observed.nodes is not None:
        round_.memory.ghosts = None
    if not free:
        return
    if not round_.is_fresh_for_deletion():
        round_.came_too_late = True  # after a long wait for other writes a job may have come: the next round asks again
        return
    if evicted := [ordinal for ordinal in ghosts.evict_now if ordinal in free]:
        round_.memory.ghosts = world.clock.now(), ghosts.batch_size
        text, left = round_.text(evicted), len(ghosts.evict_later)
        log.warning("pods run although Slurm has their nodes off", nodeset=round_.nodeset.metadata.name, removed_now=text, left=left)
    log.info("deleting pods that no job can be on", nodeset=round_.nodeset.metadata.name, pods=round_.text(free))
    deletions = [Deletion(round_.pod_key(ordinal), observed.pods[ordinal].uid) for ordinal in free]
    await _delete_pods(round_, deletions, round_.is_fresh_for_deletion)


async def delete_unbound(round_: Round, observed: Observed, plan: Plan) -> None:
    """Deletes pods that have no machine. The API server refuses that for a pod that has got a machine meanwhile: its version is another."""
    if not plan.deletions.unbound:
        return
    log.info("deleting pods without a machine", nodeset=round_.nodeset.metadata.name, pods=round_.text(plan.deletions.unbound))
    pods = ((ordinal, observed.pods[ordinal]) for ordinal in plan.deletions.unbound)
    await _delete_pods(round_, [Deletion(round_.pod_key(ordinal), pod.uid, version=pod.version) for ordinal, pod in pods])


async def _delete_pods(round_: Round, deletions: list[Deletion], still: Callable[[], bool] | None = None) -> None:
    expectations = round_.world.expectations
    for deletion in deletions:
        expectations.expect_deleted(round_.key, deletion.key[1], deletion.uid)
    results = await round_.world.writer.delete_many(PODS, deletions, still)
    for deletion, result in zip(deletions, results, strict=True):
        if isinstance(result, ApiError) and result.result != "unreachable":
            expectations.withdraw(round_.key, deletion.key[1])
        elif not isinstance(result, ApiError):
            metrics.PODS_DELETED.inc()
    round_.fail_any("deletion of a pod", results)
