"""What is read from and written to the cluster, each a kubectl call or two. Decisions are in changes.py and readiness.py.

One stack keeps two objects of its own beside its declared ones: the ApplySet's parent (ConfigMap `slipway-<project>-<stack>`) and its
random values (Secret `slipway-<project>-<stack>-random`). The Secret is made before anything that uses a value, and never overwritten.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from standalone import kinds
from standalone.changes import PART_OF, applyset_id, labelled
from standalone.faults import StandaloneError
from standalone.kubectl import FIELD_MANAGER, Kubectl, decoded, document_list
from standalone.render import CLUSTER_SCOPED, IDENTIFIER, Document, Key, Sort, key_of
from standalone.requirements import Offer

_KINDS = "applyset.kubernetes.io/contains-group-kinds"
_IMMUTABLE = ("immutable", "updates to statefulset spec", "may not change", "cannot be changed")
_TAKE_OVER = "--force-conflicts"
_OWN_PODS = ("CronJob", "DaemonSet", "Deployment", "Job", "StatefulSet")
_VERBS = ("get", "list", "create", "patch", "delete")


@dataclass(frozen=True)
class Home:
    """Where one stack lives: its cluster, its namespace and the names of its own two objects."""

    kubectl: Kubectl
    namespace: str
    name: str

    @property
    def set_id(self) -> str:
        """The label value of the stack's objects."""
        return applyset_id(self.name, self.namespace)

    @property
    def random_name(self) -> str:
        """Name of the Secret that keeps the random values."""
        return f"{self.name}-random"

    @property
    def keeper(self) -> Key:
        """The Secret that keeps the random values."""
        return Key("", "Secret", self.namespace, self.random_name)


@dataclass(frozen=True)
class Kept:
    """The stack's own two objects as they are: random values by key, their version, and the kinds the stack has had."""

    values: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    version: str | None = None
    kinds: tuple[str, ...] = ()
    identifier: str = ""
    """The clusterIdentifier of the stack that keeps its values here."""

    @property
    def is_known(self) -> bool:
        """True when the stack has been applied to this cluster before."""
        return self.version is not None or bool(self.kinds)


@dataclass(frozen=True)
class Seen:
    """All that a decision needs: live objects, the server's dry-run results, what it will not change in place, members of the ApplySet."""

    live: Mapping[Key, Mapping[str, Any]]
    results: Mapping[Key, Mapping[str, Any]]
    immutable: Mapping[Key, str]
    members: Sequence[Mapping[str, Any]]
    untried: frozenset[Key] = frozenset()
    """Objects of a kind whose definition is about to change: the server can judge them only once it has."""


def kept(home: Home) -> Kept:
    """The stack's own objects; empty before its first `up`."""
    names = (f"secret/{home.random_name}", f"configmap/{home.name}")
    found = {one["kind"]: one for one in home.kubectl.objects("get", *names, "-n", home.namespace, "--ignore-not-found")}
    secret: dict[str, Any] = found.get("Secret", {})
    parent: dict[str, Any] = found.get("ConfigMap", {})
    data: dict[str, str] = secret.get("data") or {}
    values = {key: base64.b64decode(value) for key, value in data.items()}
    listed = annotation(parent, _KINDS)
    version = secret.get("metadata", {}).get("resourceVersion")
    return Kept(values, version, tuple(kind for kind in listed.split(",") if kind), annotation(secret, IDENTIFIER))


def annotation(live: Mapping[str, Any], name: str) -> str:
    """The value of an annotation of a live object; empty where it has none."""
    annotations: dict[str, str] = live.get("metadata", {}).get("annotations") or {}
    return annotations.get(name, "")


def keep(home: Home, before: Kept, fresh: Mapping[str, bytes], identifier: str) -> None:
    """Stores new random values, and whose they are. Raises StandaloneError when somebody else did so in the meantime: the next run reads
    theirs."""
    marked = before.version is None or before.identifier == identifier
    if not fresh and marked:
        return
    data = {key: base64.b64encode(value).decode() for key, value in fresh.items()}
    about: dict[str, Any] = {
        "name": home.random_name,
        "namespace": home.namespace,
        "labels": {"app.kubernetes.io/managed-by": "slipway"},
        "annotations": {IDENTIFIER: identifier} if identifier else {},
    }
    if before.version is None:
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "slipway.dev/random", "data": data}
        answer = home.kubectl.call("create", "-f", "-", "--field-manager", FIELD_MANAGER, stdin=json.dumps(body))
    else:
        body = {"metadata": {"resourceVersion": before.version, "annotations": about["annotations"]}, "data": data}
        where = ("secret", home.random_name, "-n", home.namespace)
        answer = home.kubectl.call("patch", *where, "--type=merge", "--patch-file=/dev/stdin", stdin=json.dumps(body))
    if answer.code:
        raise StandaloneError(f"The stack's random values could not be kept, so nothing was applied: {answer.err}")


def offer(home: Home) -> Offer:
    """What the cluster has that a stack may need. Raises StandaloneError where this user may not look."""
    nodes = home.kubectl.objects("get", "nodes")
    classes = home.kubectl.objects("get", "storageclasses")
    claims = home.kubectl.objects("get", "persistentvolumeclaims", "-n", home.namespace)
    return Offer(nodes, classes, frozenset(str(one["metadata"]["name"]) for one in claims))


def live_secrets(home: Home, declared: Sequence[Document]) -> dict[Key, Mapping[str, bytes]]:
    """The data of the declared Secrets that are there, whoever made them."""
    found = _live(home, [one for one in declared if one.key.kind == "Secret"])
    data: dict[Key, dict[str, str]] = {key: one.get("data") or {} for key, one in found.items()}
    return {key: {name: base64.b64decode(text) for name, text in entries.items()} for key, entries in data.items()}


def look(home: Home, declared: Sequence[Document], before: Kept, force_conflicts: bool) -> Seen:
    """Live objects, members and dry-run results, read side by side. Raises StandaloneError with all that the server refuses.

    Objects of a kind that the stack itself is about to bring are new, and nothing is asked about them.
    """
    sorts = {one.key.sort for one in declared} | {kinds.sort_of(kind) for kind in before.kinds}
    missing = kinds.unserved(home.kubectl, sorts)
    kinds.refuse_unknown(declared, missing)
    known = [one for one in declared if one.key.sort not in missing]
    with ThreadPoolExecutor(3) as pool:
        members = pool.submit(_members, home, sorts - missing)
        live = pool.submit(_live, home, known)
        early = pool.submit(_dry_run, home, known, force_conflicts)
        seen = live.result()
        namespaces = {one.key.name for one in known if one.key.kind == "Namespace" and one.key not in seen}
        # In a namespace that is still to be made, the server has nothing to compare with, and every object is new.
        answerable = [one for one in known if one.key.namespace not in namespaces]
        results, faults = early.result()
        if faults and namespaces:
            results, faults = _dry_run(home, answerable, force_conflicts)
        if faults:
            results, faults = _dry_run_apart(home, answerable, seen, force_conflicts, faults)
    changing = {one.brings for one in known if one.brings and _changes(seen.get(one.key), results.get(one.key))}
    untried = frozenset(key for key, fault in faults.items() if key and key.sort in changing and _TAKE_OVER not in fault)
    immutable = {
        key: fault for key, fault in faults.items() if key and key not in untried and any(sign in fault.lower() for sign in _IMMUTABLE)
    }
    refused = {key: fault for key, fault in faults.items() if key not in immutable and key not in untried}
    if refused:
        rows = "\n".join(f"  {key}: {fault}" if key else f"  {fault}" for key, fault in refused.items())
        raise StandaloneError(f"The API server refuses {len(refused)} of the objects; nothing was changed:\n{rows}")
    return Seen(seen, results, immutable, members.result(), untried)


def beside_live(home: Home, declared: Sequence[Document]) -> list[Document]:
    """The documents with the cluster's own values where they ignore changes."""
    ignoring = [one for one in declared if one.ignored]
    missing = kinds.unserved(home.kubectl, {one.key.sort for one in ignoring})
    live = _live(home, [one for one in ignoring if one.key.sort not in missing])
    return [one.beside(live[one.key]) if one.key in live else one for one in declared]


def _changes(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    return old is not None and new is not None and old.get("spec") != new.get("spec")


def _live(home: Home, declared: Sequence[Document]) -> dict[Key, Mapping[str, Any]]:
    if not declared:
        return {}
    found = home.kubectl.objects("get", "-f", "-", "--ignore-not-found", stdin=document_list(one.manifest for one in declared))
    return {key_of(one): one for one in found}


def _members(home: Home, sorts: set[Sort]) -> list[Mapping[str, Any]]:
    """Objects of these kinds that carry the ApplySet's label."""
    if not sorts:
        return []
    names = ",".join(sorted(str(one) for one in sorts))
    return list(home.kubectl.objects("get", names, "-n", home.namespace, "-l", f"{PART_OF}={home.set_id}"))


def members(home: Home, before: Kept) -> list[Mapping[str, Any]]:
    """Every object of the stack that is there."""
    sorts = {kinds.sort_of(kind) for kind in before.kinds}
    return _members(home, sorts - kinds.unserved(home.kubectl, sorts))


_Faults = dict[Key | None, str]


def _dry_run(home: Home, declared: Sequence[Document], force_conflicts: bool) -> tuple[dict[Key, Mapping[str, Any]], _Faults]:
    found: dict[Key, Mapping[str, Any]] = {}
    said: list[str] = []
    for forced in (True, False):
        chosen = [one for one in declared if (force_conflicts or one.is_forced) == forced]
        if not chosen:
            continue
        answer = home.kubectl.call(
            *("apply", "--server-side", "--dry-run=server", "--field-manager", FIELD_MANAGER, *_force(forced), "-f", "-", "-o", "json"),
            stdin=document_list(labelled(one.manifest, home.set_id) for one in chosen),
        )
        if answer.code:
            said.append(answer.err)
        found |= {key_of(one): one for one in decoded(answer.out)} if not answer.code else {}
    return ({}, {None: "\n".join(said)}) if said else (found, {})


def _force(forced: bool) -> tuple[str, ...]:
    return ("--force-conflicts",) if forced else ()


def _dry_run_apart(
    home: Home, declared: Sequence[Document], live: Mapping[Key, Any], force_conflicts: bool, faults: _Faults
) -> tuple[dict[Key, Mapping[str, Any]], _Faults]:
    """Which objects the refusal was about: those it names on their own (a conflict names none: then all that exist), the rest together."""
    said = "\n".join(faults.values())
    suspects = [one for one in declared if f'"{one.key.name}"' in said] or [one for one in declared if one.key in live]
    rest = [one for one in declared if one not in suspects]
    results, still = _dry_run(home, rest, force_conflicts)
    with ThreadPoolExecutor(4) as pool:
        apart = [pool.submit(_dry_run, home, [one], force_conflicts) for one in suspects]
    for one, answer in zip(suspects, apart, strict=True):
        result, fault = answer.result()
        results |= result
        if fault:
            still[one.key] = _conflict(next(iter(fault.values())))
    return results, still


def _conflict(said: str) -> str:
    said = said.removeprefix("error: ")
    if "Apply failed with" not in said:
        return said
    return said.partition("\nPlease review")[0].replace("\n", " ") + f"; take the fields over with {_TAKE_OVER}, or stop the other manager"


def lacking_rights(home: Home, declared: Iterable[Document]) -> list[str]:
    """What this user may not do of what the stack needs, all kinds at once: `statefulsets.apps: create, delete`."""
    wanted = {(one.key.group, _plural(one.key.kind), one.key.kind in CLUSTER_SCOPED) for one in declared}
    wanted |= {("", "secrets", False), ("", "configmaps", False)}
    asked = [(group, plural, verb, scope) for group, plural, scope in sorted(wanted) for verb in _VERBS]
    reviews = [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {"group": group, "resource": plural, "verb": verb, **({} if scope else {"namespace": home.namespace})}
            },
        }
        for group, plural, verb, scope in asked
    ]
    answers = home.kubectl.objects("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews}))
    lacks: dict[str, list[str]] = {}
    for one in answers:
        if not one.get("status", {}).get("allowed"):
            about = one["spec"]["resourceAttributes"]
            lacks.setdefault(f"{about['resource']}.{about.get('group', '')}".rstrip("."), []).append(about["verb"])
    return [f"{name}: {', '.join(verbs)}" for name, verbs in lacks.items()]


def _plural(kind: str) -> str:
    word = kind.lower()
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch")) else "s")


def make_namespace(home: Home, one: Document) -> None:
    """The stack's namespace before all else: its own two objects live there."""
    body = document_list([labelled(one.manifest, home.set_id)])
    answer = home.kubectl.call("apply", "--server-side", "--field-manager", FIELD_MANAGER, "-f", "-", stdin=body)
    if answer.code:
        raise StandaloneError(answer.err)


def apply(home: Home, declared: Sequence[Document], force_conflicts: bool) -> Iterator[str]:
    """Applies all and prunes what is no longer declared; gives kubectl's lines as they come. Can be repeated after any failure."""
    # Definitions were applied with their own force before; here they are the same already, and only counted as members.
    forced = _force(force_conflicts or any(one.is_forced for one in declared if not one.brings))
    where = ("-n", home.namespace, "--applyset", f"configmaps/{home.name}", "--prune")
    arguments = ("apply", "--server-side", "--field-manager", FIELD_MANAGER, *forced, *where, "-f", "-")
    return home.kubectl.stream(*arguments, stdin=document_list(one.manifest for one in declared), applyset=True)


def release(home: Home, keys: Iterable[Key]) -> None:
    """Takes objects out of the ApplySet, so that pruning leaves them. One that is gone already is no error."""
    for key in keys:
        kind = f"{key.kind}.{key.group}".rstrip(".")
        where = ("-n", key.namespace) if key.namespace else ()
        answer = home.kubectl.call("label", kind, key.name, *where, f"{PART_OF}-")
        if answer.code and home.kubectl.objects("get", kind, key.name, *where, "--ignore-not-found"):
            raise StandaloneError(f"{key} could not be released: {answer.err}")


def delete(home: Home, objects: Sequence[Mapping[str, Any]]) -> None:
    """Asks for the deletion of objects; waits for none. Kubernetes' own workloads stay until the pods they own are gone.

    Objects of other kinds do not: in the foreground Kubernetes deletes what an object owns at once, before the object's controller can wind
    it down (a NodeSet drains its nodes first).
    """
    for cascade in ("foreground", "background"):
        items = [_item(one) for one in objects if (one["kind"] in _OWN_PODS) == (cascade == "foreground")]
        if not items:
            continue
        how = ("--ignore-not-found", f"--cascade={cascade}", "--wait=false")
        answer = home.kubectl.call("delete", *how, "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        if answer.code:
            raise StandaloneError(answer.err)


def remaining(home: Home, objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of these objects, those that are still there, as they are now. One that was recreated under its name is not."""
    if not objects:
        return []
    uids = {one["metadata"].get("uid") for one in objects}
    items = {"apiVersion": "v1", "kind": "List", "items": [_item(one) for one in objects]}
    found = home.kubectl.objects("get", "-f", "-", "--ignore-not-found", stdin=json.dumps(items))
    return [one for one in found if one["metadata"].get("uid") in uids]


def _item(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": one["apiVersion"], "kind": one["kind"], "metadata": _about(key_of(one))}


def forget(home: Home) -> None:
    """Deletes the stack's own two objects."""
    names = (f"configmap/{home.name}", f"secret/{home.random_name}")
    answer = home.kubectl.call("delete", *names, "-n", home.namespace, "--ignore-not-found")
    if answer.code:
        raise StandaloneError(answer.err)


def _about(key: Key) -> dict[str, str]:
    return {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
