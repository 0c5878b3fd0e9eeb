"""`up`: everything is refused before anything is touched, then objects are applied, then it says what it waits for.

Every step can be cut off and repeated: random values are kept before they are used, ApplySets know their members before they exist, pruning
comes last.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from changes.data import losses
from changes.workloads import consequences
from engine import changes as decide
from engine import cluster, consent, previews, queue, readiness, removal, slurm_files
from engine.api import RefusedError
from engine.changes import ObjectChange
from engine.cluster import Home
from engine.faults import SlipwayError, UnreachableError, rows
from engine.render import CRD, Document, Key, Sort, key_of, namespace_of
from engine.requirements import plan_missing
from engine.screen import Line, News, Screen
from engine.stack import Outlook, Stack, lacking_rights, outlook

_POLL_S = 1
_PODS_EVERY_S = 3.0
_HOPELESS_AFTER_S = 15.0
_KINDS_S = 60.0
_POD = Sort("", "Pod")
_Expected = Mapping[Key, Sequence[readiness.Expectation]]
_DESPITE = "Where it will have them later (nodes that an autoscaler makes, for instance): --ignore-missing."
_VERBS = {"create": "created", "update": "updated", "replace": "made again", "delete": "deleted"}


def up(
    stack: Stack,
    screen: Screen,
    timeout_s: float,
    force_conflicts: bool,
    adopt: bool,
    agree: Callable[[tuple[str, ...], tuple[str, ...]], None],
    must_fit: bool = False,
) -> Outlook:
    """Makes the cluster what the stack declares and waits until it is ready. Says "nothing to change" when it is so already.

    `agree` is called with the data that would be deleted, and with what would be done to running jobs, a line each, before anything is
    touched. It raises where nobody agrees.
    `must_fit`: refuses a cluster that lacks what the changed objects need, see requirements.py.
    """
    namespace_of(stack.documents)
    awaited = [document for document in stack.documents if document.waits_for]
    expected = {document.key: [readiness.expectation(each) for each in document.waits_for] for document in awaited}
    found = outlook(stack, force_conflicts)
    pending = [change for change in found.objects if change.op != "same"]
    _refuse(found.objects, stack.home, adopt)
    screen.warn(*decide.left_as_they_are(found.objects))
    if not pending and not stack.fresh:
        screen.tick(f"nothing to change: {len(found.objects)} objects are as declared")
    else:
        if lacking := lacking_rights(stack.home, stack.documents):
            raise lacking
        if must_fit:
            _refuse_missing(stack, pending, screen)
        told = decide.steps(pending)
        for line in consequences(told):
            screen.say(f" · {line}", "dim")
        lost, harms = losses(told), previews.harms_of(found.steps, lambda: queue.read(stack.home.api, stack.home.namespace))
        if lost or harms:
            agree(tuple(lost), harms)
        _apply(stack, found.objects, screen, force_conflicts)
    since = time.monotonic()
    _wait(stack, found, expected, screen, timeout_s)
    slurm_files.wait(stack.home, pending, screen, timeout_s)
    _warn_of_refusals(stack.home, screen)
    pruned = [change.live for change in pending if change.op == "delete" and change.live and change.key.sort.is_custom]
    removal.say_leaving(stack.home, pruned, screen, since)
    return found


def _refuse(found: Sequence[ObjectChange], home: Home, adopt: bool) -> None:
    if said := decide.refusals(found, home.set_id, adopt):
        raise SlipwayError(f"Nothing was changed:\n{rows(said)}")


def _refuse_missing(stack: Stack, pending: Sequence[ObjectChange], screen: Screen) -> None:
    try:
        offer = cluster.offer(stack.home)
    except UnreachableError:
        raise
    except SlipwayError as error:
        screen.warn(f"what the cluster lacks was not looked for: {error}")
        return
    if missing := plan_missing([change.document for change in pending if change.document], offer):
        lacking = f"Nothing was changed: the cluster lacks {len(missing)} of what the stack needs:"
        raise SlipwayError(f"{lacking}\n{rows(missing)}\n{_DESPITE}")


def _apply(stack: Stack, found: Sequence[ObjectChange], screen: Screen, force_conflicts: bool) -> None:
    home, before = stack.home, time.monotonic()
    pending = [change for change in found if change.op != "same"]
    by_key = {change.key: change for change in pending}
    namespace = by_key.get(Key("", "Namespace", "", home.namespace))
    if namespace and namespace.op == "create" and namespace.document:
        cluster.apply(home, namespace.document, force_conflicts)  # before all else: the stack's own two objects live there
    cluster.keep(home, stack.kept, stack.fresh, consent.identifier(stack.plan))
    cluster.release(home, leaving := decide.deleted_by_controller(found))
    cluster.release(home, kept := decide.retained(pending))
    for key in kept:
        screen.tick(f"{key} stays in the cluster (retainOnDelete)")
    replaced = [change.live for change in pending if change.op == "replace" and change.live]
    cluster.unrecord(home, map(key_of, replaced))
    removal.delete(home, replaced, screen, timeout_s=600)
    definitions = [change.document for change in pending if change.document and change.key.kind == CRD]
    if definitions:
        with screen.waiting("waiting until the API server serves the new kinds"):
            cluster.make_kinds(home, definitions, force_conflicts, _KINDS_S)
        for document in definitions:
            screen.tick(f"{document.key} {_VERBS[by_key.pop(document.key).op]}, and its kind is served", before)
    goes = [change.live for change in pending if change.op == "delete" and change.live and change.key not in (*leaving, *kept)]
    sorts = {document.key.sort for document in stack.documents}
    cluster.enlist(home, {*sorts, *map(cluster.sort_of, stack.kept.kinds)})
    with screen.waiting("applying") as line:
        faults: list[str] = []
        applied: set[str] = set()
        for document in _to_apply(stack, found):
            line.update(f"applying: {document.key}")
            try:
                applied.add(cluster.apply(home, document, force_conflicts)["metadata"]["uid"])
            except RefusedError as error:
                faults.append(f"{document.key}: {error}")
                continue
            if change := by_key.get(document.key):
                screen.tick(f"{change.key} {_VERBS[change.op]}", before)
                before = time.monotonic()
        if faults:
            raise SlipwayError("\n".join(faults))
        left = removal.prune(home, goes, applied, screen)
    unlisted = cluster.unlisted(home, stack.kept)
    if unlisted:
        names = ", ".join(map(str, unlisted))
        screen.warn(
            f"the API server does not list these kinds now, so no object of theirs was looked for, and none was deleted: {names}. "
            f"A kind that is gone for good is struck from the annotation of {home.parent}."
        )
    cluster.enlist(home, {*sorts, *unlisted, *(key.sort for key in left)})
    for key in leaving:
        screen.tick(f"{key} is no longer declared: its controller deletes it", before)


def _to_apply(stack: Stack, found: Sequence[ObjectChange]) -> list[Document]:
    """Each object as it was tried; as it is declared where it is made again."""
    declared = {document.key: document for document in stack.documents}
    return [declared[change.key] if change.op == "replace" else change.document for change in found if change.document]


def _wait(stack: Stack, found: Outlook, expected: _Expected, screen: Screen, timeout_s: float) -> None:
    """Until every object that the stack waits for is ready. Raises SlipwayError with each reason after `timeout_s`."""
    wanted = {
        document.key
        for document in stack.documents
        if document.is_waited_for and document.key.kind != CRD and (document.key.kind in readiness.WORKLOADS or document.key in expected)
    }
    if all(change.op == "same" for change in found.objects if change.document):
        live = [change.live for change in found.objects if change.live and change.key in wanted]
        if not readiness.waiting(live, expected):
            return
    if not wanted:
        return
    begin = time.monotonic()
    ready: set[Key] = set()
    hopeless: dict[str, float] = {}
    troubles: list[readiness.Trouble] = []
    asked = -_PODS_EVERY_S
    news = News(screen)
    with screen.waiting("waiting") as line:
        while True:
            now = time.monotonic() - begin
            workloads = {key_of(live): live for live in cluster.of_sorts(stack.home, {key.sort for key in wanted})}
            there = wanted & workloads.keys()
            late = {key: why for key in there for why in readiness.waiting([workloads[key]], expected)}
            for key in sorted(there - ready - late.keys()):
                screen.tick(f"{key} ready", begin)
                ready.add(key)
            if not late and there == wanted:
                return
            waits = [late[key] for key in sorted(late)]
            if now - asked >= _PODS_EVERY_S or any(workload.has_failed for workload in waits):
                asked = now
                pods = _pods(stack.home, waits)
                troubles = readiness.troubles(pods)
                _unstick(stack.home, list(workloads.values()), pods, screen)
                hopeless = {trouble.pod: hopeless.get(trouble.pod, now) for trouble in troubles if trouble.is_hopeless}
            _say_waiting(line, waits, troubles)
            for workload in waits:
                if workload.kind not in readiness.WORKLOADS:
                    news.say(f"{workload.kind} {workload.name}", workload.progress, now)
            given_up = any(workload.has_failed for workload in waits) or any(now - since > _HOPELESS_AFTER_S for since in hopeless.values())
            if now > timeout_s or given_up:
                raise SlipwayError(_not_ready(stack.home, waits, troubles, now))
            if late:
                stack.home.api.await_change(workloads[min(late)], _POLL_S)
            else:
                time.sleep(_POLL_S)


def _warn_of_refusals(home: Home, screen: Screen) -> None:
    """Of files that an earlier `up` brought: it may have ended before slurmctld said so, or the pulumi CLI deployed them."""
    fields = "reason=Unhealthy,type=Warning,involvedObject.kind=Pod"
    with contextlib.suppress(RefusedError):  # a user who may not read events is not told
        events = home.api.list(Sort("", "Event"), home.namespace, fieldSelector=fields)
        screen.warn(*readiness.refusals(events, datetime.now(UTC)))


def _pods(home: Home, late: Sequence[readiness.Waiting]) -> list[dict[str, Any]]:
    """Pods of the late workloads only: a large set that is ready is never listed."""
    return [pod for workload in late if workload.selector for pod in home.api.list(_POD, home.namespace, labelSelector=workload.selector)]


def _unstick(home: Home, workloads: Sequence[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]], screen: Screen) -> None:
    """Deletes pods that never started and hold up a newer template (see readiness.stuck)."""
    uids = {str(pod["metadata"]["name"]): str(pod["metadata"]["uid"]) for pod in pods}
    for name in readiness.stuck(workloads, pods):
        with contextlib.suppress(RefusedError):
            home.api.delete(Key("", "Pod", home.namespace, name), uid=uids[name])
            screen.tick(f"Pod {name}, stuck on an older template without ever having started, deleted")


def _say_waiting(line: Line, late: Sequence[readiness.Waiting], troubles: Sequence[readiness.Trouble]) -> None:
    parts = ", ".join(f"{workload.kind} {workload.name} ({workload.progress})" for workload in late)
    why = f"; {troubles[0].pod}: {troubles[0].reason}" if troubles else ""
    line.update(f"waiting for {parts}{why}")


def _not_ready(home: Home, late: Sequence[readiness.Waiting], troubles: Sequence[readiness.Trouble], after_s: float) -> str:
    said = [f"Not ready after {after_s:.0f} s. What was applied stays; mend the cause, then run `up` again."]
    for workload in late:
        said.append(f"  {workload.kind} {workload.name}: {workload.progress}")
    for trouble in troubles[:10]:
        said.append(f"    {trouble.pod}: {trouble.reason}")
        if trouble.logs_of:
            said += [f"      | {text}" for text in cluster.last_words(home, trouble.pod, trouble.logs_of)]
    return "\n".join(said)
