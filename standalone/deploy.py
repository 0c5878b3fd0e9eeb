"""`up` and `destroy`: everything is refused before anything is touched, then kubectl acts, then it says what it waits for.

Every step can be cut off and repeated: random values are kept before they are used, ApplySets know their members before they exist, pruning
comes last.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from standalone import changes as decide
from standalone import cluster, consent, kinds, readiness, removal
from standalone.changes import ObjectChange
from standalone.cluster import Home
from standalone.faults import StandaloneError, UnreachableError
from standalone.kubectl import decoded
from standalone.render import CRD, Document, Key, key_of, namespace_of
from standalone.requirements import plan_missing
from standalone.show import Line, News, Screen
from standalone.stack import Outlook, Stack, outlook

_POLL_S = 1.0
_PODS_EVERY_S = 3.0
_HOPELESS_AFTER_S = 15.0
_KINDS_S = 60.0
_Expected = Mapping[Key, Sequence[readiness.Expectation]]
_DESPITE = "Where it will have them later (nodes that an autoscaler makes, for instance): --ignore-missing."
_VERBS = {"create": "created", "update": "updated", "replace": "made again", "delete": "deleted"}


def up(
    stack: Stack,
    screen: Screen,
    timeout_s: float,
    force_conflicts: bool,
    adopt: bool,
    agree: Callable[[tuple[str, ...]], None],
    must_fit: bool = False,
) -> Outlook:
    """Makes the cluster what the stack declares and waits until it is ready. Says "nothing to change" when it is so already.

    `agree` is called with the data that would be deleted, an object a line, before anything is touched, and raises where nobody agrees.
    `must_fit`: refuses a cluster that lacks what the changed objects need, see requirements.py.
    """
    namespace_of(stack.documents)
    expected = {one.key: [readiness.expectation(each) for each in one.waits_for] for one in stack.documents if one.waits_for}
    found = outlook(stack, force_conflicts)
    pending = [one for one in found.objects if one.op != "same"]
    _refuse(found.objects, stack.home, adopt)
    for line in decide.left_as_they_are(found.objects):
        screen.say(f"warning: {line}", "yellow")
    if not pending and not stack.fresh:
        screen.tick(f"nothing to change: {len(found.objects)} objects are as declared")
    else:
        if lacks := cluster.lacking_rights(stack.home, stack.documents):
            rows = "\n".join(f"  {one}" for one in lacks)
            raise StandaloneError(
                f"{stack.home.kubectl} may not do what the stack needs in namespace {stack.home.namespace}; it lacks:\n{rows}"
            )
        if must_fit:
            _refuse_missing(stack, pending, screen)
        for line in decide.consequences(pending):
            screen.say(f" · {line}", "dim")
        if lost := decide.losses(pending):
            agree(tuple(lost))
        _apply(stack, found.objects, screen, force_conflicts)
    _wait(stack, found, expected, screen, timeout_s)
    _warn_of_refusals(stack.home, screen)
    removal.say_leaving(stack.home, [one.live for one in pending if one.op == "delete" and one.live and one.key.sort.is_custom], screen)
    return found


def _refuse(found: Sequence[ObjectChange], home: Home, adopt: bool) -> None:
    if said := decide.refusals(found, home.set_id, adopt):
        raise StandaloneError("Nothing was changed:\n" + "\n".join(f"  {line}" for line in said))


def _refuse_missing(stack: Stack, pending: Sequence[ObjectChange], screen: Screen) -> None:
    try:
        offer = cluster.offer(stack.home)
    except UnreachableError:
        raise
    except StandaloneError as error:
        screen.say(f"warning: what the cluster lacks was not looked for: {error}", "yellow")
        return
    if missing := plan_missing([one.document for one in pending if one.document], offer):
        rows = "\n".join(f"  {line}" for line in missing)
        raise StandaloneError(f"Nothing was changed: the cluster lacks {len(missing)} of what the stack needs:\n{rows}\n{_DESPITE}")


def _apply(stack: Stack, found: Sequence[ObjectChange], screen: Screen, force_conflicts: bool) -> None:
    home = stack.home
    pending = [one for one in found if one.op != "same"]
    before = time.monotonic()
    by_key = {one.key: one for one in pending}
    namespace = by_key.get(Key("", "Namespace", "", home.namespace))
    if namespace and namespace.op == "create" and namespace.document:
        cluster.make_namespace(home, namespace.document)
    cluster.keep(home, stack.kept, stack.fresh, consent.identifier(stack.plan))
    cluster.release(home, leaving := decide.deleted_by_controller(found))
    cluster.release(home, kept := decide.retained(pending))
    for key in kept:
        screen.tick(f"{key} stays in the cluster (retainOnDelete)")
    replaced = [one.live for one in pending if one.op == "replace" and one.live]
    removal.delete(home, replaced, screen, timeout_s=600)
    definitions = [one.document for one in pending if one.document and one.key.kind == CRD]
    if definitions:
        with screen.waiting("waiting until the API server serves the new kinds"):
            kinds.make(home.kubectl, home.set_id, definitions, force_conflicts, _KINDS_S)
        for one in definitions:
            screen.tick(f"{one.key} {_VERBS[by_key.pop(one.key).op]}, and its kind is served", before)
    with screen.waiting("applying") as line:
        for said in cluster.apply(home, _to_apply(stack, found), force_conflicts):
            if one := _named(said, by_key):
                screen.tick(f"{one.key} {_VERBS[one.op]}", before)
                before = time.monotonic()
            line.update(f"applying: {said}")
    for key in leaving:
        screen.tick(f"{key} is no longer declared: its controller deletes it", before)


def _to_apply(stack: Stack, found: Sequence[ObjectChange]) -> list[Document]:
    """Each object as it was tried; one that is made again, as it is declared."""
    declared = {one.key: one for one in stack.documents}
    return [declared[one.key] if one.op == "replace" else one.document for one in found if one.document]


def _named(said: str, by_key: Mapping[Key, ObjectChange]) -> ObjectChange | None:
    """The change that one of kubectl's lines is about: `statefulset.apps/gpu serverside-applied`."""
    what, slash, rest = said.partition("/")
    kind, _, group = what.partition(".")
    name = rest.partition(" ")[0]
    matches = (one for key, one in by_key.items() if (key.kind.lower(), key.group, key.name) == (kind, group, name))
    return next(matches, None) if slash else None


def _wait(stack: Stack, found: Outlook, expected: _Expected, screen: Screen, timeout_s: float) -> None:
    """Until every object that the stack waits for is ready. Raises StandaloneError with each reason after `timeout_s`."""
    wanted = {
        one.key
        for one in stack.documents
        if one.is_waited_for and one.key.kind != CRD and (one.key.kind in readiness.WORKLOADS or one.key in expected)
    }
    if all(one.op == "same" for one in found.objects if one.document):
        live = [one.live for one in found.objects if one.live and one.key in wanted]
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
            workloads = _workloads(stack.home, wanted)
            late = readiness.waiting(workloads, expected)
            absent = wanted - {key_of(one) for one in workloads}
            for key in sorted(wanted - ready - absent - {_key(one, wanted) for one in late}):
                screen.tick(f"{key} ready", begin)
                ready.add(key)
            if not late and not absent:
                return
            if now - asked >= _PODS_EVERY_S or any(one.has_failed for one in late):
                asked = now
                pods = _pods(stack.home, late)
                troubles = readiness.troubles(pods)
                _unstick(stack.home, workloads, pods, screen)
                hopeless = {one.pod: hopeless.get(one.pod, now) for one in troubles if one.is_hopeless}
            _say_waiting(line, late, troubles)
            for one in late:
                if one.kind not in readiness.WORKLOADS:
                    news.say(f"{one.kind} {one.name}", one.progress, now)
            given_up = any(one.has_failed for one in late) or any(now - since > _HOPELESS_AFTER_S for since in hopeless.values())
            if now > timeout_s or given_up:
                raise StandaloneError(_not_ready(stack.home, late, troubles, now))
            time.sleep(_POLL_S)


def _warn_of_refusals(home: Home, screen: Screen) -> None:
    """Of files that an earlier `up` brought: the kubelet takes about a minute to bring those of this one, which is not waited for."""
    fields = "--field-selector=reason=Unhealthy,type=Warning,involvedObject.kind=Pod"
    answer = home.kubectl.call("get", "events", "-n", home.namespace, fields, "-o", "json")
    if answer.code == 0:  # who may not read events is not told
        for line in readiness.refusals(decoded(answer.out), datetime.now(UTC)):
            screen.say(f"warning: {line}", "yellow")


def _key(one: readiness.Waiting, wanted: set[Key]) -> Key | None:
    return next((key for key in wanted if (key.kind, key.name) == (one.kind, one.name)), None)


def _workloads(home: Home, wanted: set[Key]) -> list[dict[str, Any]]:
    kinds = ",".join(sorted({f"{key.kind}.{key.group}" for key in wanted}))
    found = home.kubectl.objects("get", kinds, "-n", home.namespace, "-l", f"{decide.PART_OF}={home.set_id}")
    return [one for one in found if key_of(one) in wanted]


def _pods(home: Home, late: Sequence[readiness.Waiting]) -> list[dict[str, Any]]:
    """Pods of the late workloads only: a large set that is ready is never listed."""
    selectors = [one.selector for one in late if one.selector]
    with ThreadPoolExecutor(3) as pool:
        listed = [pool.submit(home.kubectl.objects, "get", "pods", "-n", home.namespace, "-l", selector) for selector in selectors]
        return [pod for pods in listed for pod in pods.result()]


def _unstick(home: Home, workloads: Sequence[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]], screen: Screen) -> None:
    """Deletes pods that never started and hold up a newer template (see readiness.stuck)."""
    for name in readiness.stuck(workloads, pods):
        answer = home.kubectl.call("delete", "pod", name, "-n", home.namespace, "--ignore-not-found", "--wait=false")
        if answer.code == 0:
            screen.tick(f"Pod {name}, stuck on an older template without ever having started, deleted")


def _say_waiting(line: Line, late: Sequence[readiness.Waiting], troubles: Sequence[readiness.Trouble]) -> None:
    parts = ", ".join(f"{one.kind} {one.name} ({one.progress})" for one in late)
    why = f"; {troubles[0].pod}: {troubles[0].reason}" if troubles else ""
    line.update(f"waiting for {parts}{why}")


def _not_ready(home: Home, late: Sequence[readiness.Waiting], troubles: Sequence[readiness.Trouble], after_s: float) -> str:
    said = [f"Not ready after {after_s:.0f} s. What was applied stays; mend the cause, then run `up` again."]
    for one in late:
        said.append(f"  {one.kind} {one.name}: {one.progress}")
    for trouble in troubles[:10]:
        said.append(f"    {trouble.pod}: {trouble.reason}")
        if trouble.logs_of:
            said += [f"      | {text}" for text in _last_words(home, trouble.pod, trouble.logs_of)]
    return "\n".join(said)


def _last_words(home: Home, pod: str, container: str) -> list[str]:
    """The last lines of a container that ends again and again: of its newest run, or of the one before while that one is silent."""
    for which in ((), ("--previous",)):
        answer = home.kubectl.call("logs", pod, "-n", home.namespace, "-c", container, "--tail=8", *which)
        lines = [line for line in answer.out.splitlines() if line and not line.startswith("unable to retrieve container logs")]
        if lines:
            return lines
    return []
