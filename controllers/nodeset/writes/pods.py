"""Writes a plan's part in Kubernetes: pods, their labels, volume claims, the disruption budget, the record of places. Thin."""

from collections.abc import Callable, Iterable
from typing import Any

import structlog

from controllers.nodeset import metrics
from controllers.nodeset import pods as build
from controllers.nodeset.observe import other_owner
from controllers.nodeset.plan import Plan
from controllers.nodeset.plans.places import plan_places
from controllers.nodeset.rounds import SWEEP_S, Round
from controllers.nodeset.structs import FINALIZER, LABEL_BUSY, LABEL_CLUSTER, LABEL_NODESET, NODESETS_WRITTEN, NodeSet
from controllers.nodeset.workers import Observed
from controllers.runtime.errors import ApiError, Conflict, NotFound
from controllers.runtime.structs import BUDGETS, CLAIMS, CONFIG_MAPS, PODS
from controllers.runtime.writer import Deletion, Patch

TAKEN_S = 30.0
"""A pod that exists, by the API server's word, and is not heard of for so many seconds has lost its labels, or is somebody else's."""

log = structlog.get_logger()


async def add_finalizer(this: Round) -> None:
    """Deleting the set waits for its nodes from now on. Raises ApiError."""
    wanted = [*this.nodeset.metadata.finalizers, FINALIZER]
    await this.world.writer.patch(NODESETS_WRITTEN, this.key, _finalizers(this.nodeset, wanted))


async def protect(this: Round, observed: Observed, decided: Plan) -> None:
    """Before anything else: what may run a job must not be evicted."""
    unknown = observed.nodes is None
    uid, now = this.nodeset.metadata.uid, this.world.clock.now()
    # Applied again at each sweep: whoever has deleted or changed it leaves the jobs unprotected no longer than that.
    applied_uid, was_unknown, applied_at = this.memory.budget
    is_applied = (applied_uid, was_unknown) == (uid, unknown) and now - applied_at < SWEEP_S
    if not is_applied and not decided.done:
        try:
            await this.world.writer.apply(BUDGETS, build.build_disruption_budget(this.nodeset, unknown))
            this.memory.budget = uid, unknown, now
        except ApiError as error:
            this.fail("disruption budget", error)
    await _mark(this, decided.mark_busy, "true")


async def mark_free(this: Round, decided: Plan) -> None:
    """Pods without a job may be evicted."""
    await _mark(this, decided.mark_free, "false")


async def _mark(this: Round, ordinals: Iterable[int], busy: str) -> None:
    change = {"metadata": {"labels": {LABEL_BUSY: busy}}}
    patches = [Patch(this.pod_key(ordinal), change) for ordinal in ordinals]
    still = None if busy == "true" else this.is_fresh
    this.fail_any("label of a pod", await this.world.writer.patch_many(PODS, patches, still=still))


async def create(this: Round, observed: Observed, decided: Plan) -> None:
    """Makes missing claims and pods."""
    world, nodeset = this.world, this.nodeset
    taken, this.memory.taken = this.memory.taken, {}
    claims = [claim for ordinal in (*decided.claim, *decided.create) for claim in build.build_claims(nodeset, ordinal)]
    if this.fail_any("volume claim", await world.writer.create_many(CLAIMS, claims)) or not decided.create:
        return
    places = _places(this, observed)
    manifests = [build.build_pod(nodeset, ordinal, places.get(ordinal)) for ordinal in decided.create]
    for name in this.names(decided.create):
        world.expectations.expect_created(this.key, name)
    log.info("making pods", nodeset=nodeset.metadata.name, pods=this.text(decided.create))
    results = await world.writer.create_many(PODS, manifests)
    for name, result in zip(this.names(decided.create), results, strict=True):
        if isinstance(result, ApiError) and result.result != "unreachable":
            world.expectations.withdraw(this.key, name)
        elif not isinstance(result, ApiError):
            metrics.PODS_CREATED.inc()
            since = world.waking.pop(name, None)
            if since is not None:
                metrics.POWER_UP_SECONDS.observe(world.clock.now() - since)
    if not this.fail_any("pod", results):
        now = world.clock.now()
        there = [
            ordinal
            for ordinal, one in zip(decided.create, results, strict=True)
            if isinstance(one, Conflict) and one.reason == "AlreadyExists"
        ]
        _note_taken(this, {ordinal: taken.get(ordinal, now) for ordinal in there})


def _note_taken(this: Round, taken: dict[int, float]) -> None:
    """Pods that exist already, and since when. For a moment that is news on its way; then a person has to look."""
    this.memory.taken = taken
    if others := [ordinal for ordinal, since in taken.items() if this.world.clock.now() - since >= TAKEN_S]:
        labels = f"{LABEL_CLUSTER}={this.nodeset.spec.cluster} {LABEL_NODESET}={this.key[1]}"
        this.errors.append(
            f"pods of these names are there without the set's labels: {this.text(others)}. Where jobs run, give them back: "
            f"kubectl -n {this.key[0]} label --overwrite pod {this.names(others)[0]} {labels}. Where none do, delete the pod."
        )


async def delete(this: Round, observed: Observed, decided: Plan) -> None:
    """Deletes pods that no job can be on."""
    world = this.world
    if not decided.ghost_batch and observed.nodes is not None:
        this.memory.ghosts = None
    if not decided.delete:
        return
    if not this.is_fresh():
        this.came_too_late = True  # after a long wait for other writes a job may have come: the next round asks again
        return
    if ghosts := [ordinal for ordinal in decided.ghosts if ordinal in decided.delete]:
        this.memory.ghosts = world.clock.now(), decided.ghost_batch
        text, left = this.text(ghosts), len(decided.ghosts_left)
        log.warning("pods run although Slurm has their nodes off", nodeset=this.nodeset.metadata.name, removed_now=text, left=left)
    log.info("deleting pods that no job can be on", nodeset=this.nodeset.metadata.name, pods=this.text(decided.delete))
    deletions = [Deletion(this.pod_key(ordinal), observed.pods[ordinal].uid) for ordinal in decided.delete]
    await _delete_pods(this, deletions, this.is_fresh)


async def delete_unbound(this: Round, observed: Observed, decided: Plan) -> None:
    """Deletes pods that no machine has. The API server refuses that for one that has got a machine meanwhile: its version is another."""
    if not decided.delete_unbound:
        return
    log.info("deleting pods without a machine", nodeset=this.nodeset.metadata.name, pods=this.text(decided.delete_unbound))
    pods = ((ordinal, observed.pods[ordinal]) for ordinal in decided.delete_unbound)
    await _delete_pods(this, [Deletion(this.pod_key(ordinal), pod.uid, version=pod.version) for ordinal, pod in pods])


async def _delete_pods(this: Round, deletions: list[Deletion], still: Callable[[], bool] | None = None) -> None:
    expectations = this.world.expectations
    for one in deletions:
        expectations.expect_deleted(this.key, one.key[1], one.uid)
    results = await this.world.writer.delete_many(PODS, deletions, still)
    for one, result in zip(deletions, results, strict=True):
        if isinstance(result, ApiError) and result.result != "unreachable":
            expectations.withdraw(this.key, one.key[1])
        elif not isinstance(result, ApiError):
            metrics.PODS_DELETED.inc()
    this.fail_any("deletion of a pod", results)


async def record_places(this: Round, observed: Observed) -> None:
    """Writes down where pods of a pinned set run now."""
    if this.nodeset.metadata.deletion_timestamp is not None:
        return
    places = _places(this, observed)
    if places != _recorded(this):
        await this.attempt("record of places", this.world.writer.apply(CONFIG_MAPS, build.build_places(this.nodeset, places)))


def _places(this: Round, observed: Observed) -> dict[int, str]:
    """Where the pods of a pinned set belong."""

    def refusals(ordinal: int) -> int:
        return this.world.refusals.failures(this.key, ordinal)

    return plan_places(this.nodeset.spec, _recorded(this), observed.pods, this.world.machine, refusals)


def _recorded(this: Round) -> dict[int, str]:
    record = this.world.places.get((this.key[0], build.places_name(this.key[1])))
    return build.read_places(record.data) if record is not None else {}


async def finish(this: Round, observed: Observed) -> None:
    """The set has no pod any more: claims go where they should, then the finalizer."""
    nodeset, world = this.nodeset, this.world
    if nodeset.spec.volume_claim_retention.when_deleted == "Delete":
        await drop_claims(this, observed.with_claims)
        if this.errors:
            return
    left = [one for one in nodeset.metadata.finalizers if one != FINALIZER]
    try:
        await world.writer.patch(NODESETS_WRITTEN, this.key, _finalizers(nodeset, left))
    except NotFound:
        pass
    except Conflict:
        return  # news of it, such as the status that was just written, is on its way, and brings the next round
    log.info("set is gone", nodeset=nodeset.metadata.name)


async def drop_claims(this: Round, ordinals: frozenset[int]) -> None:
    """Deletes the claims of these ordinals that nobody else owns."""
    claims = this.world.claims.by_index("nodeset", this.key) if ordinals else []
    ours = [one.metadata for one in claims if not other_owner(this.nodeset, one.metadata)]
    going = [one for one in ours if build.claim_ordinal(this.key[1], one.name) in ordinals]
    deletions = [Deletion(meta.key, meta.uid) for meta in going if meta.deletion_timestamp is None]
    this.fail_any("deletion of a claim", await this.world.writer.delete_many(CLAIMS, deletions))


def _finalizers(nodeset: NodeSet, wanted: list[str]) -> dict[str, Any]:
    """A patch that is refused where somebody else has changed them meanwhile."""
    return {"metadata": {"finalizers": wanted or None, "resourceVersion": nodeset.metadata.resource_version}}
