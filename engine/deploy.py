"""`up`: checks everything before it changes anything, applies the objects, then waits until they are ready.

Every step can be interrupted and repeated. Random values are stored before they are used, the ApplySet lists kinds before their objects
exist, and pruning comes last.
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
_DESPITE = "If the cluster gets them later (nodes of an autoscaler, for instance), give --ignore-missing."
_VERBS = {"create": "created", "update": "updated", "replace": "recreated", "delete": "deleted"}


def up(
    stack: Stack,
    screen: Screen,
    timeout_s: float,
    force_conflicts: bool,
    adopt: bool,
    agree: Callable[[tuple[str, ...], tuple[str, ...]], None],
    must_fit: bool = False,
) -> Outlook:
    """Applies what the stack declares and waits until it is ready.

    `agree` is called before any change, with the data that would be deleted and with what would happen to running jobs, one line each. It
    raises if the user does not agree.
    `must_fit`: refuses a cluster that lacks what the changed objects need, see requirements.py.
    """
    namespace_of(stack.documents)
    awaited = [document for document in stack.documents if document.waits_for]
    expected = {document.key: [readiness.expectation(expression) for expression in document.waits_for] for document in awaited}
    forecast = outlook(stack, force_conflicts)
    pending = [change for change in forecast.objects if change.op != "same"]
    _refuse(forecast.objects, stack.home, adopt)
    screen.warn(*decide.left_as_they_are(forecast.objects))
    if not pending and not stack.fresh:
        screen.tick(f"nothing to change: {len(forecast.objects)} objects are as declared")
    else:
        if lacking := lacking_rights(stack.home, stack.documents):
            raise lacking
        if must_fit:
            _refuse_missing(stack, pending, screen)
        steps = decide.steps(pending)
        for line in consequences(steps):
            screen.say(f" · {line}", "dim")
        lost_data, harms = losses(steps), previews.harms_of(forecast.steps, lambda: queue.read(stack.home.api, stack.home.namespace))
        if lost_data or harms:
            agree(tuple(lost_data), harms)
        _apply(stack, forecast.objects, screen, force_conflicts)
    since = time.monotonic()
    _wait(stack, forecast, expected, screen, timeout_s)
    slurm_files.wait(stack.home, pending, screen, timeout_s)
    _warn_of_refusals(stack.home, screen)
    pruned = [change.live for change in pending if change.op == "delete" and change.live and change.key.sort.is_custom]
    removal.say_leaving(stack.home, pruned, screen, since)
    return forecast


def _refuse(changes: Sequence[ObjectChange], home: Home, adopt: bool) -> None:
    if reasons := decide.refusals(changes, home.set_id, adopt):
        raise SlipwayError(f"Nothing was changed:\n{rows(reasons)}")


def _refuse_missing(stack: Stack, pending: Sequence[ObjectChange], screen: Screen) -> None:
    try:
        offer = cluster.offer(stack.home)
    except UnreachableError:
        raise
    except SlipwayError as error:
        screen.warn(f"the cluster was not checked for what the stack needs: {error}")
        return
    if missing := plan_missing([change.document for change in pending if change.document], offer):
        raise SlipwayError(f"Nothing was changed: the cluster does not have what the stack needs:\n{rows(missing)}\n{_DESPITE}")


def _apply(stack: Stack, changes: Sequence[ObjectChange], screen: Screen, force_conflicts: bool) -> None:
    home, since = stack.home, time.monotonic()
    pending = [change for change in changes if change.op != "same"]
    by_key = {change.key: change for change in pending}
    namespace = by_key.get(Key("", "Namespace", "", home.namespace))
    if namespace and namespace.op == "create" and namespace.document:
        cluster.apply(home, namespace.document, force_conflicts)  # before all else: the stack's own two objects live there
    cluster.keep(home, stack.kept, stack.fresh, consent.identifier(stack.plan))
    cluster.release(home, leaving := decide.deleted_by_controller(changes))
    cluster.release(home, retained := decide.retained(pending))
    for key in retained:
        screen.tick(f"{key} stays in the cluster (retainOnDelete)")
    replaced = [change.live for change in pending if change.op == "replace" and change.live]
    cluster.unrecord(home, map(key_of, replaced))
    removal.delete(home, replaced, screen, timeout_s=600)
    definitions = [change.document for change in pending if change.document and change.key.kind == CRD]
    if definitions:
        with screen.waiting("waiting until the API server serves the new kinds"):
            cluster.make_kinds(home, definitions, force_conflicts, _KINDS_S)
        for document in definitions:
            screen.tick(f"{document.key} {_VERBS[by_key.pop(document.key).op]}, and its kind is served", since)
    to_prune = [change.live for change in pending if change.op == "delete" and change.live and change.key not in (*leaving, *retained)]
    sorts = {document.key.sort for document in stack.documents}
    cluster.enlist(home, {*sorts, *map(cluster.sort_of, stack.kept.kinds)})
    with screen.waiting("applying") as line:
        faults: list[str] = []
        applied: set[str] = set()
        for document in _to_apply(stack, changes):
            line.update(f"applying: {document.key}")
            try:
                applied.add(cluster.apply(home, document, force_conflicts)["metadata"]["uid"])
            except RefusedError as error:
                faults.append(f"{document.key}: {error}")
                continue
            if change := by_key.get(document.key):
                screen.tick(f"{change.key} {_VERBS[change.op]}", since)
                since = time.monotonic()
        if faults:
            raise SlipwayError("\n".join(faults))
        unpruned = removal.prune(home, to_prune, applied, screen)
    unlisted = cluster.unlisted(home, stack.kept)
    if unlisted:
        names = ", ".join(map(str, unlisted))
        screen.warn(
            f"the API server does not list these kinds now, so no object of them was looked for or deleted: {names}. "
            f"If a kind is gone for good, remove it from the annotation of {home.parent}."
        )
    cluster.enlist(home, {*sorts, *unlisted, *(key.sort for key in unpruned)})
    for key in leaving:
        screen.tick(f"{key} is no longer declared: its controller deletes it", since)


def _to_apply(stack: Stack, changes: Sequence[ObjectChange]) -> list[Document]:
    """The documents as they were dry-run, and those of replaced objects as they are declared."""
    declared = {document.key: document for document in stack.documents}
    return [declared[change.key] if change.op == "replace" else change.document for change in changes if change.document]


def _wait(stack: Stack, outlook: Outlook, expected: _Expected, screen: Screen, timeout_s: float) -> None:
    """Waits until every object that the stack waits for is ready. Raises SlipwayError with each reason after `timeout_s`."""
    wanted = {
        document.key
        for document in stack.documents
        if document.is_waited_for and document.key.kind != CRD and (document.key.kind in readiness.WORKLOADS or document.key in expected)
    }
    if all(change.op == "same" for change in outlook.objects if change.document):
        live = [change.live for change in outlook.objects if change.live and change.key in wanted]
        if not readiness.waiting(live, expected):
            return
    if not wanted:
        return
    started = time.monotonic()
    ready: set[Key] = set()
    hopeless: dict[str, float] = {}
    troubles: list[readiness.Trouble] = []
    pods_read_at = -_PODS_EVERY_S
    news = News(screen)
    with screen.waiting("waiting") as line:
        while True:
            now = time.monotonic() - started
            workloads = {key_of(live): live for live in cluster.of_sorts(stack.home, {key.sort for key in wanted})}
            present = wanted & workloads.keys()
            late = {key: why for key in present for why in readiness.waiting([workloads[key]], expected)}
            for key in sorted(present - ready - late.keys()):
                screen.tick(f"{key} ready", started)
                ready.add(key)
            if not late and present == wanted:
                return
            late_workloads = [late[key] for key in sorted(late)]
            if now - pods_read_at >= _PODS_EVERY_S or any(workload.has_failed for workload in late_workloads):
                pods_read_at = now
                pods = _pods(stack.home, late_workloads)
                troubles = readiness.troubles(pods)
                _unstick(stack.home, list(workloads.values()), pods, screen)
                hopeless = {trouble.pod: hopeless.get(trouble.pod, now) for trouble in troubles if trouble.is_hopeless}
            _say_waiting(line, late_workloads, troubles)
            for workload in late_workloads:
                if workload.kind not in readiness.WORKLOADS:
                    news.say(f"{workload.kind} {workload.name}", workload.progress, now)
            has_failed = any(workload.has_failed for workload in late_workloads)
            if has_failed or now > timeout_s or any(now - since > _HOPELESS_AFTER_S for since in hopeless.values()):
                raise SlipwayError(_not_ready(stack.home, late_workloads, troubles, now))
            if late:
                stack.home.api.await_change(workloads[min(late)], _POLL_S)
            else:
                time.sleep(_POLL_S)


def _warn_of_refusals(home: Home, screen: Screen) -> None:
    """Warns of refused files of an earlier `up`, which may have ended before slurmctld refused them, or of the Pulumi CLI."""
    fields = "reason=Unhealthy,type=Warning,involvedObject.kind=Pod"
    with contextlib.suppress(RefusedError):  # this user may not read events
        events = home.api.list(Sort("", "Event"), home.namespace, fieldSelector=fields)
        screen.warn(*readiness.refusals(events, datetime.now(UTC)))


def _pods(home: Home, late: Sequence[readiness.Waiting]) -> list[dict[str, Any]]:
    """The pods of the late workloads only, so that a large set that is ready is never listed."""
    return [pod for workload in late if workload.selector for pod in home.api.list(_POD, home.namespace, labelSelector=workload.selector)]


def _unstick(home: Home, workloads: Sequence[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]], screen: Screen) -> None:
    """Deletes pods that never started and hold up a newer template (see readiness.stuck)."""
    uids = {str(pod["metadata"]["name"]): str(pod["metadata"]["uid"]) for pod in pods}
    for name in readiness.stuck(workloads, pods):
        with contextlib.suppress(RefusedError):
            home.api.delete(Key("", "Pod", home.namespace, name), uid=uids[name])
            screen.tick(f"Pod {name} deleted: it was stuck on an older template and had never started")


def _say_waiting(line: Line, late: Sequence[readiness.Waiting], troubles: Sequence[readiness.Trouble]) -> None:
    parts = ", ".join(f"{workload.kind} {workload.name} ({workload.progress})" for workload in late)
    why = f"; {troubles[0].pod}: {troubles[0].reason}" if troubles else ""
    line.update(f"waiting for {parts}{why}")


def _not_ready(home: Home, late: Sequence[readiness.Waiting], troubles: Sequence[readiness.Trouble], after_s: float) -> str:
    lines = [f"Not ready after {after_s:.0f} s. All applied objects stay; fix the cause, then run `up` again."]
    for workload in late:
        lines.append(f"  {workload.kind} {workload.name}: {workload.progress}")
    for trouble in troubles[:10]:
        lines.append(f"    {trouble.pod}: {trouble.reason}")
        if trouble.logs_of:
            lines += [f"      | {text}" for text in cluster.last_words(home, trouble.pod, trouble.logs_of)]
    return "\n".join(lines)
