"""`destroy`, and every other deletion: asks for it, then says what is gone, and what holds the rest.

Nothing is forced: an object with a finalizer, such as a NodeSet whose nodes still run jobs, goes when its controller lets it.
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
"""What has been leaving for so long waits for jobs."""


def destroy(stack: Stack, screen: Screen, timeout_s: float) -> None:
    """Deletes every object of the stack, workloads first, and waits until they are gone. Refuses, by name, when any is protected."""
    home = stack.home
    try:
        there = cluster.members(home, stack.kept)
    except RefusedError as error:
        raise forbidden(error, home, stack.plan) from error
    consent.refuse_other(stack.plan, recorded(stack, there), str(home.api))
    protected = sorted({str(key_of(live)) for live in there if annotation(live, annotations.PROTECT) == "true"} | _protected(stack))
    if protected:
        raise SlipwayError(f"Nothing was deleted: these are protected. Take the protection off, `up`, then destroy.\n{rows(protected)}")
    if not there and stack.kept.version is None:
        screen.tick("nothing to destroy")
        return
    kept = [key_of(live) for live in there if annotation(live, annotations.RETAIN) == "true"]
    namespace = Key("", "Namespace", "", home.namespace)
    if any(key.namespace for key in kept) and namespace in map(key_of, there) and namespace not in kept:
        kept.append(namespace)
        screen.say(f" · {namespace} stays too: what retainOnDelete keeps is in it", "dim")
    leaving = {key_of(live): live for live in there if key_of(live) not in kept}
    _say_claims(home, leaving, namespace, screen)
    cluster.release(home, kept)
    for key in kept:
        screen.tick(f"{key} stays in the cluster (retainOnDelete)")
    last = [leaving.pop(namespace)] if namespace in leaving else []
    workloads = {key: live for key, live in leaving.items() if key.kind in readiness.WORKLOADS or key.sort.is_custom or _is_held(live)}
    rest = [live for key, live in leaving.items() if key not in workloads]
    for stage in (*_by_depth(workloads, depths(stack.plan, stack.documents)), rest):
        delete(home, stage, screen, timeout_s)
    cluster.forget(home)
    delete(home, last, screen, timeout_s)


def _is_held(live: Mapping[str, Any]) -> bool:
    """True of an object that a controller of the stack lets go, and of the guard's record: what it has would be made again."""
    return is_record(live) or any(str(finalizer).startswith(finalizers.PREFIX) for finalizer in live["metadata"].get("finalizers") or ())


def _by_depth(workloads: Mapping[Key, Mapping[str, Any]], depth: Mapping[Key, int]) -> list[list[Mapping[str, Any]]]:
    """First the objects that no other depends on: a worker asks slurmctld whether it may go. Objects no longer declared go before them."""
    levels = sorted({depth.get(key, len(depth)) for key in workloads}, reverse=True)
    return [[live for key, live in workloads.items() if depth.get(key, len(depth)) == level] for level in levels]


def _protected(stack: Stack) -> set[str]:
    """Protected random values: they are of the stack, though no object of it carries the mark."""
    return {
        f"{resource.type} {resource.name}"
        for resource in stack.plan.resources
        if resource.type.startswith("random:") and resource.options.get("protect")
    }


def _say_claims(home: Home, leaving: Mapping[Key, Mapping[str, Any]], namespace: Key, screen: Screen) -> None:
    changes = [ObjectChange("delete", key, live=live) for key, live in leaving.items()]
    if left := decide.claims_left(cluster.claims(home), changes):
        fate = f"go with {namespace}" if namespace in leaving else "stay (their set's retention policy is Retain)"
        screen.say(f" · claims made from templates {fate}: {', '.join(left)}", "dim")


def delete(home: Home, objects: Sequence[Mapping[str, Any]], screen: Screen, timeout_s: float) -> None:
    """Deletes objects and waits until they are gone, saying what holds them. Raises SlipwayError after `timeout_s`."""
    if not objects:
        return
    begin = time.monotonic()
    for key in cluster.delete(home, objects):
        screen.warn(f"{key} was deleted and created again in the meantime: the new object is left as it is.")
    there, news = list(objects), News(screen)
    with screen.waiting(f"deleting {len(objects)} objects") as line:
        while there:
            now = time.monotonic() - begin
            left = cluster.remaining(home, there)
            keys = {key_of(live) for live in left}
            for live in there:
                if key_of(live) not in keys:
                    screen.tick(f"{key_of(live)} deleted", begin)
            there = left
            held = readiness.leaving(left)
            line.update("deleting: " + ", ".join(f"{key} {reason}" for key, reason in held.items()))
            if now > _HELD_AFTER_S:
                for key, reason in held.items():
                    news.say(str(key), reason, now)
            if left and now > timeout_s:
                lines = rows(f"{key} {reason}" for key, reason in held.items())
                raise SlipwayError(f"Not gone after {timeout_s:.0f} s; the deletion goes on by itself:\n{lines}")
            if left:
                home.api.await_change(left[0], _POLL_S)


def prune(home: Home, shown: Sequence[Mapping[str, Any]], applied: Collection[str], screen: Screen) -> list[Key]:
    """Deletes what was shown as no longer declared, where it is still that very object and nothing speaks against it; gives what stays.

    Minutes may have passed at a prompt or a wait since it was read. As kubectl prunes: what an object owns goes after it, and an object
    whose UID is in `applied` never goes, by whatever name it was found.
    """
    if not shown:
        return []
    now = {live["metadata"]["uid"]: live for live in cluster.of_sorts(home, {key_of(live).sort for live in shown})}
    left: list[Key] = []
    for old in shown:
        key, uid, begin = key_of(old), str(old["metadata"]["uid"]), time.monotonic()
        if uid in applied:
            continue
        why = ""
        if uid not in now:
            why = "it is gone, was created again, or has left the stack's ApplySet since it was looked at"
        elif any(annotation(now[uid], mark) == "true" for mark in (annotations.PROTECT, annotations.RETAIN)):
            why = "it was marked as protected or retained after it was looked at"
        else:
            try:
                home.api.delete(key, uid=uid)
            except RefusedError as error:
                if error.code != HTTPStatus.CONFLICT:
                    raise
                why = "it was created again in the meantime"
        if why:
            screen.warn(f"{key} is not deleted: {why}.")
            left.append(key)
        else:
            screen.tick(f"{key} deleted", begin)
    return left


def say_leaving(home: Home, pruned: Sequence[Mapping[str, Any]], screen: Screen, since: float) -> None:
    """Says which objects that were deleted at `since`, in monotonic seconds, are still there, and why, once they had time to go. They go by
    themselves, however long their jobs run."""
    if not pruned:
        return
    end = since + _LEAVING_S
    with screen.waiting("waiting for what is no longer declared") as line:
        while left := cluster.remaining(home, pruned):
            line.update("; ".join(f"{key} {reason}" for key, reason in readiness.leaving(left).items()))
            if time.monotonic() > end:
                break
            home.api.await_change(left[0], _POLL_S)
    for key, reason in readiness.leaving(left).items():
        screen.say(f" · {key} {reason}; it goes on by itself", "dim")
