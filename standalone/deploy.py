"""`up` and `destroy`: everything is refused before anything is touched, then kubectl acts, then it says what it waits for.

Every step can be cut off and repeated: random values are kept before they are used, ApplySets know their members before they exist, pruning
comes last.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from standalone import changes as decide
from standalone import cluster, readiness
from standalone.changes import ObjectChange
from standalone.cluster import Home
from standalone.faults import StandaloneError
from standalone.render import PROTECT, RETAIN, Key, depths, key_of, namespace_of
from standalone.show import Line, Screen
from standalone.stack import Outlook, Stack, forbidden, outlook

_POLL_S = 1.0
_PODS_EVERY_S = 3.0
_HOPELESS_AFTER_S = 15.0
_VERBS = {"create": "created", "update": "updated", "replace": "made again", "delete": "deleted"}


def up(stack: Stack, screen: Screen, timeout_s: float, force_conflicts: bool, adopt: bool) -> Outlook:
    """Makes the cluster what the stack declares and waits until it is ready. Says "nothing to change" when it is so already."""
    namespace_of(stack.documents)
    found = outlook(stack, force_conflicts)
    pending = [one for one in found.objects if one.op != "same"]
    _refuse(found.objects, stack.home, adopt)
    if not pending and not stack.fresh:
        screen.tick(f"nothing to change: {len(found.objects)} objects are as declared")
    else:
        if lacks := cluster.lacking_rights(stack.home, stack.documents):
            rows = "\n".join(f"  {one}" for one in lacks)
            raise StandaloneError(
                f"{stack.home.kubectl} may not do what the stack needs in namespace {stack.home.namespace}; it lacks:\n{rows}"
            )
        for line in decide.consequences(pending):
            screen.say(f" · {line}", "dim")
        _apply(stack, pending, screen, force_conflicts)
    _wait(stack, found, screen, timeout_s)
    return found


def _refuse(found: Sequence[ObjectChange], home: Home, adopt: bool) -> None:
    if said := decide.refusals(found, home.set_id, adopt):
        raise StandaloneError("Nothing was changed:\n" + "\n".join(f"  {line}" for line in said))


def _apply(stack: Stack, pending: Sequence[ObjectChange], screen: Screen, force_conflicts: bool) -> None:
    home = stack.home
    before = time.monotonic()
    by_key = {one.key: one for one in pending}
    namespace = by_key.get(Key("", "Namespace", "", home.namespace))
    if namespace and namespace.op == "create" and namespace.document:
        cluster.make_namespace(home, namespace.document)
    cluster.keep(home, stack.kept, stack.fresh)
    cluster.release(home, kept := decide.retained(pending))
    for key in kept:
        screen.tick(f"{key} stays in the cluster (retainOnDelete)")
    replaced = [one.live for one in pending if one.op == "replace" and one.live]
    for line in cluster.delete(home, replaced, timeout_s=600):
        screen.tick(line)
    with screen.waiting("applying") as line:
        for said in cluster.apply(home, stack.documents, force_conflicts):
            if one := _named(said, by_key):
                screen.tick(f"{one.key} {_VERBS[one.op]}", before)
                before = time.monotonic()
            line.update(f"applying: {said}")


def _named(said: str, by_key: Mapping[Key, ObjectChange]) -> ObjectChange | None:
    """The change that one of kubectl's lines is about: `statefulset.apps/gpu serverside-applied`."""
    what, slash, rest = said.partition("/")
    kind, _, group = what.partition(".")
    name = rest.partition(" ")[0]
    matches = (one for key, one in by_key.items() if (key.kind.lower(), key.group, key.name) == (kind, group, name))
    return next(matches, None) if slash else None


def _wait(stack: Stack, found: Outlook, screen: Screen, timeout_s: float) -> None:
    """Until every workload that the stack waits for is ready. Raises StandaloneError with each reason after `timeout_s`."""
    wanted = {one.key for one in stack.documents if one.key.kind in readiness.WORKLOADS and one.is_waited_for}
    if all(one.op == "same" for one in found.objects if one.document):
        live = [one.live for one in found.objects if one.live and one.key in wanted]
        if not readiness.waiting(live):
            return
    if not wanted:
        return
    begin = time.monotonic()
    ready: set[Key] = set()
    hopeless: dict[str, float] = {}
    troubles: list[readiness.Trouble] = []
    asked = -_PODS_EVERY_S
    with screen.waiting("waiting") as line:
        while True:
            now = time.monotonic() - begin
            workloads = _workloads(stack.home, wanted)
            late = readiness.waiting(workloads)
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
            given_up = any(one.has_failed for one in late) or any(now - since > _HOPELESS_AFTER_S for since in hopeless.values())
            if now > timeout_s or given_up:
                raise StandaloneError(_not_ready(stack.home, late, troubles, now))
            time.sleep(_POLL_S)


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


def destroy(stack: Stack, screen: Screen, timeout_s: float) -> None:
    """Deletes every object of the stack, workloads first, and waits until they are gone. Refuses, by name, when any is protected."""
    home = stack.home
    try:
        there = cluster.members(home, stack.kept)
    except StandaloneError as error:
        raise forbidden(error, home, stack.plan) from error
    found = [ObjectChange("delete", key_of(one), live=one) for one in there]
    protected = sorted({str(one.key) for one in found if one.is_marked(PROTECT)} | _protected(stack))
    if protected:
        rows = "\n".join(f"  {name}" for name in protected)
        raise StandaloneError(f"Nothing was deleted: these are protected. Take the protection off, `up`, then destroy.\n{rows}")
    if not found and stack.kept.version is None:
        screen.tick("nothing to destroy")
        return
    kept = [one.key for one in found if one.is_marked(RETAIN)]
    namespace = Key("", "Namespace", "", home.namespace)
    if kept and any(one.key == namespace for one in found) and namespace not in kept:
        kept.append(namespace)
        screen.say(f" · {namespace} stays too: what retainOnDelete keeps is in it", "dim")
    goes = [one for one in found if one.key not in kept]
    _say_claims(home, goes, namespace, screen)
    cluster.release(home, kept)
    for key in kept:
        screen.tick(f"{key} stays in the cluster (retainOnDelete)")
    workloads = [one for one in goes if one.live and one.key.kind in readiness.WORKLOADS]
    last = [one.live for one in goes if one.live and one.key == namespace]
    rest = [one.live for one in goes if one.live and one not in workloads and one.live not in last]
    for stage in (*_by_depth(workloads, depths(stack.plan)), rest):
        with screen.waiting(f"deleting {len(stage)} objects, and waiting for their pods to end"):
            for line in cluster.delete(home, stage, timeout_s):
                screen.tick(line)
    cluster.forget(home)
    with screen.waiting(f"deleting {len(last)} namespace"):
        for line in cluster.delete(home, last, timeout_s):
            screen.tick(line)


def _by_depth(workloads: Sequence[ObjectChange], depth: Mapping[Key, int]) -> list[list[Mapping[str, Any]]]:
    """Those that nothing else stands on first: a worker asks slurmctld whether it may go. What is declared no more goes before all."""
    levels = sorted({depth.get(one.key, len(depth)) for one in workloads}, reverse=True)
    return [[one.live for one in workloads if one.live and depth.get(one.key, len(depth)) == level] for level in levels]


def _protected(stack: Stack) -> set[str]:
    """Protected random values: they are of the stack, though no object of it carries the mark."""
    return {f"{one.type} {one.name}" for one in stack.plan.resources if one.type.startswith("random:") and one.options.get("protect")}


def _say_claims(home: Home, goes: Sequence[ObjectChange], namespace: Key, screen: Screen) -> None:
    claims = home.kubectl.objects("get", "persistentvolumeclaims", "-n", home.namespace)
    if left := decide.claims_left(claims, goes):
        fate = (
            f"go with {namespace}" if any(one.key == namespace for one in goes) else "stay (persistentVolumeClaimRetentionPolicy: Retain)"
        )
        screen.say(f" · claims made by StatefulSets {fate}: {', '.join(left)}", "dim")
