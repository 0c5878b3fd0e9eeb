"""The guard. Informers report that an object of the stack was changed or deleted; the guard reads it, decides (plan.py), and restores it.

It writes as the deployer does and under its name, so that the next deployment meets no conflict. It keeps no state: after a restart it
looks at every object once. Orders to leave an object alone are written at the object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import structlog

from controllers.guard import fields, metrics
from controllers.guard.cron_jobs import CRON_JOBS, note
from controllers.guard.plan import (
    MOST,
    WINDOW_S,
    Change,
    Fights,
    Marks,
    find_change,
    guess_marks,
    is_listed,
    matters,
    may_restore,
    plan_manifest,
    plan_patch,
    plan_removal,
    program_of,
    read_marks,
    read_others,
    say_change,
    whole,
)
from controllers.guard.record import COMPONENT as RECORD_COMPONENT
from controllers.guard.record import KINDS, RECORD, Declared, Name, Path, Record, RecordMeta, read_record
from controllers.guard.reports import build_event
from controllers.runtime.api import Api
from controllers.runtime.clock import Clock
from controllers.runtime.errors import ApiError, Conflict, NotFound, Refused
from controllers.runtime.informer import Informer
from controllers.runtime.queue import WorkQueue
from controllers.runtime.structs import EVENTS, PartialObject, Resource
from names import annotations, labels, writers

STOPPED = "stopped"
SETTLE_S = 3.0
"""Seconds until a deleted object is created again: a deployment replaces an object by deleting it and creating it at once."""
_TERMINATING_S = 1.0
_WORKERS = 2

log = structlog.get_logger()


@dataclass(frozen=True)
class Pace:
    """Times in seconds, for tests to lower."""

    settle_s: float = SETTLE_S
    retry_most_s: float = 5.0


class Guard:
    """The guarded objects of one Slurm cluster."""

    def __init__(self, api: Api, namespace: str, cluster: str, instance: str, clock: Clock, pace: Pace = Pace()) -> None:
        self._api, self._namespace, self._instance, self._clock, self._pace = api, namespace, instance, clock, pace
        ours = f"{labels.CLUSTER}={cluster}"
        self.record_informer = Informer(api, RECORD, namespace=namespace, labels=f"{ours},{RECORD_COMPONENT}", clock=clock)
        self.informers = {kind: Informer(api, resource, namespace=namespace, labels=ours, clock=clock) for kind, resource in KINDS.items()}
        self.cron_jobs = Informer(api, CRON_JOBS, namespace=namespace, labels=ours, clock=clock)
        """Of which the times of success are counted; the informer above has metadata only."""
        self.cron_jobs.on_change(note)
        self.queue: WorkQueue[Name] = WorkQueue("guard", clock=clock, most_s=pace.retry_most_s)
        self._record = Record()
        self._fights = Fights()
        self._marks: dict[Name, Marks] = {}
        """The last marks of each object: a deleted object has none."""
        self._others: dict[Name, dict[Path, Any]] = {}
        """Values that others had set in each object when it was last seen: the stack does not have them."""
        self._settled: dict[Name, str] = {}
        """When the deployer had last written to the object, as it was last seen to be as deployed."""
        self._missing_since: dict[Name, float] = {}
        self._stopped: set[Name] = set()
        self._paused: set[Name] = set()
        self._refused: set[Name] = set()
        """Objects that the API server does not let the guard restore."""
        self.record_informer.on_change(lambda _old, _new: self._record_changed())
        for kind, informer in self.informers.items():
            informer.on_change(lambda old, new, kind=kind: self._changed(kind, old, new))

    async def run(self) -> None:
        """Looks at what changed, for ever."""
        for informer in (self.record_informer, *self.informers.values()):
            await informer.synced.wait()
        self._record_changed()
        await self.queue.run(self._work, _WORKERS)

    def _record_changed(self) -> None:
        self._record = read_record(self.record_informer.store.values())
        metrics.GUARDED.set(len(self._record.entries))
        for name in self._record.entries:
            self.queue.add(name)
        self._count()

    def _changed(self, kind: str, old: PartialObject | None, new: PartialObject | None) -> None:
        item = new or old
        name = kind, item.metadata.name if item else ""
        if name in self._record.entries and matters(old.metadata if old else None, new.metadata if new else None):
            self.queue.add(name)

    async def _work(self, name: Name) -> None:
        try:
            await self.look(name)
        except Conflict:
            self.queue.add_backed_off(name)  # it has changed since it was read
        except (ApiError, ValueError) as error:
            log.warning("object could not be looked at", object=" ".join(name), error=str(error), again_s=self.queue.add_backed_off(name))
        else:
            self.queue.forget(name)
        self._count()

    async def look(self, name: Name) -> None:
        """Looks at an object, and does what it needs. Raises ApiError, and ValueError for an invalid record."""
        record = self._record
        declared = record.declared(name)
        if declared is None or record.is_paused:
            return
        try:
            live = await self._api.get(_whole(name), self._namespace, name[1])
        except NotFound:
            await self._look_at_missing(name, declared, record)
            return
        self._missing_since.pop(name, None)
        about: Mapping[str, Any] = live["metadata"]
        if about.get("deletionTimestamp"):
            self.queue.add_after(name, _TERMINATING_S)
            return
        object_annotations: Mapping[str, str] = about.get("annotations") or {}
        word = object_annotations.get(annotations.GUARD)
        (self._paused.add if word and word != STOPPED else self._paused.discard)(name)
        (self._stopped.add if word == STOPPED else self._stopped.discard)(name)
        if not word:
            await self._look_at(name, declared, record, live)

    async def _look_at(self, name: Name, declared: Declared, record: Record, live: dict[str, Any]) -> None:
        program = program_of(self._record_meta(name))
        if (mended := fields.mended(live, program)) is not None:
            about = {"resourceVersion": live["metadata"]["resourceVersion"], "managedFields": mended}
            live = await self._api.patch(_whole(name), self._namespace, name[1], {"metadata": about}, field_manager=writers.GUARD)
        entries = fields.managers(live)
        marks = self._marks[name] = read_marks(live, program) or self._marks.get(name) or guess_marks(self._record_meta(name))
        self._others[name] = read_others(declared, live)
        manifest = plan_manifest(declared, live, marks, {})
        if manifest is None:
            return
        try:
            would, patcher = await self._try(name, manifest, marks, live, program)
        except Refused as error:
            await self._tell_refused(name, live, error)
            raise
        self._refused.discard(name)
        change = find_change(manifest, live, would)
        if not change:
            self._settled[name] = fields.deployed_at(entries)
            return
        # If a deployment has ended since, the record's time is newer than `declared`, and an old value would look right.
        if self._record is not record or not may_restore(change, live, self._record_time(name), self._settled.get(name, "")):
            return  # looked at again when the record or the object changes
        description = say_change(change, entries, live)
        if self._fights.is_lost(name, self._clock.now()):
            await self._stop(name, live, description)
            return
        restored = await self._restore(name, manifest, marks, change, live, would, patcher)
        self._settled[name] = fields.deployed_at(fields.managers(restored))
        self._fights.note(name, self._clock.now())
        await self._tell(name, live, "Restored", f"restored to what was deployed: {description}")

    async def _look_at_missing(self, name: Name, declared: Declared, record: Record) -> None:
        if name in self._paused:  # it went while it was to be left alone: the next deployment makes it again
            return
        now = self._clock.now()
        wait_s = self._missing_since.setdefault(name, now) + self._pace.settle_s - now
        if wait_s > 0:
            self.queue.add_after(name, wait_s)
            return
        marks = self._marks.get(name) or guess_marks(self._record_meta(name))
        manifest = plan_manifest(declared, None, marks, self._others.get(name, {}))
        if manifest is None:
            log.warning(
                "object is gone and stays so until the next deployment: what others had set in it is not known", object=" ".join(name)
            )
            return
        if not await self._is_still_declared(name) or not await self._is_listed(manifest) or self._record is not record:
            return
        if self._fights.is_lost(name, now):
            if name not in self._stopped:
                log.error("object is deleted again and again; it is not made again", object=" ".join(name), times=MOST)
            self._stopped.add(name)
            return
        if program_of(self._record_meta(name)) == writers.PULUMI:  # as the provider makes it: what it has once applied makes no difference
            typed = {"apiVersion": KINDS[name[0]].api_version, **manifest}
            created = await self._api.create(_whole(name), typed, field_manager=writers.PULUMI)
        else:
            created = await self._api.apply(_whole(name), manifest, field_manager=marks.manager)
        self._fights.note(name, now)
        self._missing_since.pop(name, None)
        self._settled[name] = fields.deployed_at(fields.managers(created))
        message = "made again as it was deployed: it had been deleted (by whom, only the API server's audit log can tell)"
        await self._tell(name, created, "Restored", message)

    async def _is_still_declared(self, name: Name) -> bool:
        """Asks the API server: the informer's copy of the record may be older than the deletion by `destroy`."""
        location = self._record.entries.get(name)
        if location is None:
            return False
        try:
            secret = await self._api.get(RECORD, *location[0])
        except NotFound:
            return False
        return (
            secret.metadata.deletion_timestamp is None
            and location[1] in secret.data
            and annotations.GUARD not in secret.metadata.annotations
        )

    async def _is_listed(self, manifest: Mapping[str, Any]) -> bool:
        object_annotations: Mapping[str, str] = manifest["metadata"].get("annotations") or {}
        named = object_annotations.get(annotations.DECLARED_IN)
        if not named:
            return True
        try:
            return is_listed(manifest, await self._api.get(_whole(("ConfigMap", named)), self._namespace, named))
        except NotFound:
            return is_listed(manifest, None)

    async def _try(
        self, name: Name, manifest: dict[str, Any], marks: Marks, live: Mapping[str, Any], program: str
    ) -> tuple[dict[str, Any], str]:
        """The object after a restore (a dry run), and the name under which to patch it; empty to apply.

        An apply leaves what somebody else has put beside the declared fields. If the object may not have both, the server refuses it, and
        the object is written as it was declared. An example is a Service with two ports of the same name.
        """
        kind = _whole(name)
        by_patch = marks.manager if marks.operation == "Update" else ""
        try:
            return await self._api.apply(kind, manifest, field_manager=marks.manager, dry_run=True), by_patch
        except Refused as error:
            if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
        patcher = by_patch or (writers.PULUMI if program == writers.PULUMI else writers.GUARD)
        patch = plan_patch(Change(), live, whole(manifest, live))
        return await self._api.patch(kind, self._namespace, name[1], patch, field_manager=patcher, dry_run=True), patcher

    async def _restore(
        self,
        name: Name,
        manifest: dict[str, Any],
        marks: Marks,
        change: Change,
        live: Mapping[str, Any],
        would: Mapping[str, Any],
        patcher: str,
    ) -> dict[str, Any]:
        kind, at = _whole(name), (self._namespace, name[1])
        if patcher:
            return await self._api.patch(kind, *at, plan_patch(change, live, would), field_manager=patcher)
        applied = await self._api.apply(kind, manifest, field_manager=marks.manager)
        if removal := plan_removal(change):
            removal["metadata"] = {"resourceVersion": applied["metadata"]["resourceVersion"]}
            applied = await self._api.patch(kind, *at, removal, field_manager=writers.GUARD)
        return applied

    async def _stop(self, name: Name, live: Mapping[str, Any], cause: str) -> None:
        about = {"resourceVersion": live["metadata"]["resourceVersion"], "annotations": {annotations.GUARD: STOPPED}}
        await self._api.patch(_whole(name), self._namespace, name[1], {"metadata": about}, field_manager=writers.GUARD)
        self._fights.forget(name)
        kind = name[0].lower()
        note = (
            f"left as it is: restored {MOST} times within {WINDOW_S / 60:.0f} minutes, and changed again ({cause}). Once that is settled: "
            f"kubectl annotate {kind} {name[1]} {annotations.GUARD}- -n {self._namespace}"
        )
        await self._tell(name, live, "GuardStopped", note)

    async def _tell_refused(self, name: Name, live: Mapping[str, Any], error: Refused) -> None:
        """Once for each object, as restoring is retried all the time."""
        if error.status == HTTPStatus.UNPROCESSABLE_ENTITY and name not in self._refused:
            self._refused.add(name)
            delete = f"kubectl delete {name[0].lower()} {name[1]} -n {self._namespace}"
            # The kind may have just been upgraded by an `up` that is still running. That is no reason to delete nodes.
            remedy = "Run `up`" if name[0] == "NodeSet" else f"Delete it, and the guard makes it again: {delete}"
            await self._tell(name, live, "NotRestored", f"cannot be restored to what was deployed. {remedy}. The API server: {error}")

    async def _tell(self, name: Name, live: Mapping[str, Any], reason: str, message: str) -> None:
        """Log, metric and event. A failed event holds nothing up."""
        log.warning(message, object=" ".join(name), reason=reason)
        if reason == "Restored":
            metrics.RESTORED.labels(name[0]).inc()
        typed = {"apiVersion": KINDS[name[0]].api_version, "kind": name[0], **live}
        try:
            await self._api.create(
                EVENTS, build_event(typed, reason, message, self._clock.wall(), self._instance), field_manager=writers.GUARD
            )
        except ApiError as error:
            log.warning("event could not be made", object=" ".join(name), error=str(error))

    def _record_meta(self, name: Name) -> RecordMeta | None:
        secret = self._record.secret_of(name)
        return secret.metadata if secret else None

    def _record_time(self, name: Name) -> str:
        about = self._record_meta(name)
        times = [entry.time for entry in about.managed_fields if fields.program(entry.manager)] if about else []
        return max(times, default="")

    def _count(self) -> None:
        metrics.STOPPED.set(len(self._stopped & self._record.entries.keys()))
        metrics.PAUSED.set(len(self._record.entries) if self._record.is_paused else len(self._paused & self._record.entries.keys()))


def _whole(name: Name) -> Resource[dict[str, Any]]:
    """The kind of a guarded object, with all of its fields."""
    kind = KINDS[name[0]]
    return Resource(kind.api_version, kind.plural, kind.kind, dict[str, Any], kind.namespaced)
