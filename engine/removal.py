"""`destroy`, and every other deletion: requests it, then reports which objects are gone and what the others wait for.

Nothing is forced: an object with a finalizer, such as a NodeSet whose nodes still run jobs, stays until its controller removes that.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from changes.workloads import is_record
from engine import changes as decide
from engine import cluster, consent, readiness
from engine.api import RefusedError
from engine.changes import ObjectChange
from engine.cluster import Home
from engine.faults import SlipwayError, rows
from engine.render import Key, annotation, depths, key_of
from engine.screen import News, Screen
from engine.stack import Stack, forbidden, recorded
from names import annotations, finalizers

_POLL_S = 1
_HELD_AFTER_S = 3.0
_LEAVING_S = 20.0
"""An object that takes longer waits for jobs."""


def destroy(stack: Stack, screen: Screen, timeout_s: float) -> None:
    """Deletes every object of the stack, workloads first, and waits until they are gone. Raises SlipwayError if any is protected."""
    home = stack.home
    try:
        members = cluster.members(home, stack.kept)
    except RefusedError as error:
        raise forbidden(error, home, stack.plan) from error
    consent.refuse_other(stack.plan, recorded(stack, members), str(home.api))
    protected = sorted({str(key_of(live)) for live in members if annotation(live, annotations.PROTECT) == "true"} | _protected(stack))
    if protected:
        raise SlipwayError(f"Nothing was deleted: these are protected. Remove the protection, run `up`, then `destroy`.\n{rows(protected)}")
    if not members and stack.kept.version is None:
        screen.tick("nothing to destroy")
        return
    retained = [key_of(live) for live in members if annotation(live, annotations.RETAIN) == "true"]
    namespace = Key("", "Namespace", "", home.namespace)
    if any(key.namespace for key in retained) and namespace in map(key_of, members) and namespace not in retained:
        retained.append(namespace)
        screen.say(f" · {namespace} stays too: it contains objects with retainOnDelete", "dim")
    leaving = {key_of(live): live for live in members if key_of(live) not in retained}
    _say_claims(home, leaving, namespace, screen)
    cluster.release(home, retained)
    for key in retained:
        screen.tick(f"{key} stays in the cluster (retainOnDelete)")
    namespace_object = [leaving.pop(namespace)] if namespace in leaving else []
    workloads = {key: live for key, live in leaving.items() if key.kind in readiness.WORKLOADS or key.sort.is_custom or _is_held(live)}
    others_left = [live for key, live in leaving.items() if key not in workloads]
    for stage in (*_by_depth(workloads, depths(stack.plan, stack.documents)), others_left):
        delete(home, stage, screen, timeout_s)
    cluster.forget(home)
    delete(home, namespace_object, screen, timeout_s)


def _is_held(live: Mapping[str, Any]) -> bool:
    """True if a controller of the stack must release the object first, and for the guard's record: the guard would recreate its objects."""
    return is_record(live) or any(str(finalizer).startswith(finalizers.PREFIX) for finalizer in live["metadata"].get("finalizers") or ())


def _by_depth(workloads: Mapping[Key, Mapping[str, Any]], depth: Mapping[Key, int]) -> list[list[Mapping[str, Any]]]:
    """Objects that no other depends on come first: workers need slurmctld while they stop. Undeclared objects precede them."""
    levels = sorted({depth.get(key, len(depth)) for key in workloads}, reverse=True)
    return [[live for key, live in workloads.items() if depth.get(key, len(depth)) == level] for level in levels]


def _protected(stack: Stack) -> set[str]:
    """Protected random values: no object in the cluster carries their protection."""
    return {
        f"{resource.type} {resource.name}"
        for resource in stack.plan.resources
        if resource.type.startswith("random:") and resource.options.get("protect")
    }


def _say_claims(home: Home, leaving: Mapping[Key, Mapping[str, Any]], namespace: Key, screen: Screen) -> None:
    changes = [ObjectChange("delete", key, live=live) for key, live in leaving.items()]
    if claims_left := decide.claims_left(cluster.claims(home), changes):
        fate = f"go with {namespace}" if namespace in leaving else "stay (their set's retention policy is Retain)"
        screen.say(f" · claims made from templates {fate}: {', '.join(claims_left)}", "dim")


def delete(home: Home, objects: Sequence[Mapping[str, Any]], screen: Screen, timeout_s: float) -> None:
    """Deletes objects, waits until they are gone, and shows what they wait for. Raises SlipwayError after `timeout_s`."""
    if not objects:
        return
    started = time.monotonic()
    for key in cluster.delete(home, objects):
        screen.warn(f"{key} was deleted and created again in the meantime: the new object stays.")
    awaited, news = list(objects), News(screen)
    with screen.waiting(f"deleting {len(objects)} objects") as line:
        while awaited:
            now = time.monotonic() - started
            remaining = cluster.remaining(home, awaited)
            keys = {key_of(live) for live in remaining}
            for live in awaited:
                if key_of(live) not in keys:
                    screen.tick(f"{key_of(live)} deleted", started)
            awaited = remaining
            reasons = readiness.leaving(remaining)
            line.update("deleting: " + ", ".join(f"{key} {reason}" for key, reason in reasons.items()))
            if now > _HELD_AFTER_S:
                for key, reason in reasons.items():
                    news.say(str(key), reason, now)
            if remaining and now > timeout_s:
                lines = rows(f"{key} {reason}" for key, reason in reasons.items())
                raise SlipwayError(f"Not gone after {timeout_s:.0f} s; the deletion continues:\n{lines}")
            if remaining:
                home.api.await_change(remaining[0], _POLL_S)


def prune(home: Home, shown: Sequence[Mapping[str, Any]], applied: Collection[str], screen: Screen) -> list[Key]:
    """Deletes the shown objects, unless they were recreated, left the ApplySet or became protected. Returns the keys of those that stay.

    Minutes may have passed at a prompt since they were read. As in kubectl's pruning, dependents are deleted in the background, and an
    object whose UID is in `applied` always stays.
    """
    if not shown:
        return []
    live_by_uid = {live["metadata"]["uid"]: live for live in cluster.of_sorts(home, {key_of(live).sort for live in shown})}
    unpruned: list[Key] = []
    for shown_object in shown:
        key, uid, started = key_of(shown_object), str(shown_object["metadata"]["uid"]), time.monotonic()
        if uid in applied:
            continue
        obstacle = ""
        if uid not in live_by_uid:
            obstacle = "it is gone, was created again, or has left the stack's ApplySet since the comparison"
        elif any(annotation(live_by_uid[uid], mark) == "true" for mark in (annotations.PROTECT, annotations.RETAIN)):
            obstacle = "it was marked as protected or retained after the comparison"
        else:
            try:
                home.api.delete(key, uid=uid)
            except RefusedError as error:
                if error.code != HTTPStatus.CONFLICT:
                    raise
                obstacle = "it was created again in the meantime"
        if obstacle:
            screen.warn(f"{key} is not deleted: {obstacle}.")
            unpruned.append(key)
        else:
            screen.tick(f"{key} deleted", started)
    return unpruned


def say_leaving(home: Home, pruned: Sequence[Mapping[str, Any]], screen: Screen, since: float) -> None:
    """Waits briefly for objects that were deleted at `since` (monotonic seconds), then reports those that still exist, and why. They are
    deleted without further action, however long their jobs run."""
    if not pruned:
        return
    deadline = since + _LEAVING_S
    with screen.waiting("waiting for what is no longer declared") as line:
        while remaining := cluster.remaining(home, pruned):
            line.update("; ".join(f"{key} {reason}" for key, reason in readiness.leaving(remaining).items()))
            if time.monotonic() > deadline:
                break
            home.api.await_change(remaining[0], _POLL_S)
    for key, reason in readiness.leaving(remaining).items():
        screen.say(f" · {key} {reason}; its deletion continues", "dim")
