"""Kubernetes objects with versions, as etcd and the API server keep them; without a network.

Simpler than the real one: no schemas and defaults, no admission, no garbage collection. Server-side apply knows fields by path, takes lists
whole but for conditions, and only fields that were applied have owners. Objects are kept as encoded JSON, so that large lists cost nothing
to give out.
"""

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

Manifest = dict[str, Any]
Key = tuple[str, str]
Path = tuple[str, ...]

_CONDITIONS: Path = ("status", "conditions")
"""A list by type, of which an apply brings and takes its own elements: `x-kubernetes-list-type: map`, also of nodes and pods."""
_WITHOUT_STATUS = {"slurmnodes"}
"""Kinds whose status is a field as any other, and no subresource."""


class Fault(Exception):
    """The API server's refusal."""

    def __init__(self, code: int, reason: str, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    def status(self) -> bytes:
        """As a Status object."""
        details = {"details": {"retryAfterSeconds": self.retry_after_s}} if self.retry_after_s is not None else {}
        said = {"code": self.code, "reason": self.reason, "message": self.message, "status": "Failure", **details}
        return msgspec.json.encode({"kind": "Status", "apiVersion": "v1", **said})


class _OnlyMetadata(msgspec.Struct):
    metadata: Manifest


@dataclass(frozen=True, slots=True)
class Stored:
    """One object."""

    raw: bytes
    uid: str
    version: int
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One event, before a selector has its say."""

    type: str
    key: Key
    raw: bytes
    before: dict[str, str] | None
    """Labels; None where there was no object."""
    after: dict[str, str] | None


@dataclass
class Kind:
    """All objects of one kind, and what has happened to them."""

    api_version: str
    plural: str
    kind: str = ""
    objects: dict[Key, Stored] = field(default_factory=dict[Key, Stored])
    applied: dict[Key, dict[str, dict[Path, Any]]] = field(default_factory=dict[Key, dict[str, dict[Path, Any]]])
    """By object and field manager: the fields that it has applied."""
    changes: list[Change] = field(default_factory=list[Change])
    versions: list[int] = field(default_factory=list[int])
    dropped: int = 0
    """Changes that are no longer in `changes`."""
    oldest: int = 0
    """A watch that starts before this version is refused."""
    listeners: set[Callable[[], None]] = field(default_factory=set[Callable[[], None]])

    def start(self, version: int) -> int:
        """Number of the first change after a version. Raises Fault when that is too long ago."""
        if version < self.oldest:
            raise Fault(410, "Expired", f"too old resource version: {version} ({self.oldest})")
        return self.dropped + bisect_right(self.versions, version)

    def after(self, start: int, most: int) -> list[Change]:
        """Changes from a number on. Raises Fault when they are gone."""
        if start < self.dropped:
            raise Fault(410, "Expired", "too old resource version")
        return self.changes[start - self.dropped : start - self.dropped + most]


class Objects:
    """The whole cluster."""

    def __init__(self, wall: Callable[[], float] = time.time, history: int = 50_000) -> None:
        self.version = 1
        self._wall = wall
        self._history = history
        self._uids = 0
        self._kinds: dict[tuple[str, str], Kind] = {}

    def kind(self, api_version: str, plural: str, kind: str = "") -> Kind:
        """The kind, made when it is asked for."""
        found = self._kinds.setdefault((api_version, plural), Kind(api_version, plural))
        found.kind = found.kind or kind
        return found

    def expire(self) -> None:
        """No watch can start from any version there was up to now."""
        self.version += 1
        for kind in self._kinds.values():
            kind.oldest = self.version

    def read(self, kind: Kind, key: Key) -> Manifest:
        """One object. Raises Fault."""
        return msgspec.json.decode(self.stored(kind, key).raw)

    def stored(self, kind: Kind, key: Key) -> Stored:
        """One object, encoded. Raises Fault."""
        if key not in kind.objects:
            raise Fault(404, "NotFound", f'{kind.plural} "{key[1]}" not found')
        return kind.objects[key]

    def put(self, kind: Kind, manifest: Manifest) -> bytes:
        """As kubelets and other controllers would: sets the whole object, status and all."""
        meta = manifest["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        if key not in kind.objects:
            return self._store(kind, key, {**manifest, "metadata": self._new_meta(meta)})
        old = msgspec.json.decode(kind.objects[key].raw, type=_OnlyMetadata).metadata
        kept = {name: old[name] for name in ("uid", "creationTimestamp", "generation", "deletionTimestamp") if name in old}
        return self._store(kind, key, {**manifest, "metadata": {**meta, **kept}})

    def create(self, kind: Kind, namespace: str, manifest: Manifest) -> bytes:
        """POST. The status is the server's own, and dropped."""
        meta = {**manifest.get("metadata", {}), **({"namespace": namespace} if namespace else {})}
        if not meta.get("name"):
            raise Fault(422, "Invalid", "metadata.name: Required value: name or generateName is required")
        key = (namespace, meta["name"])
        if key in kind.objects:
            raise Fault(409, "AlreadyExists", f'{kind.plural} "{key[1]}" already exists')
        kind.kind = kind.kind or manifest.get("kind", "")
        new = {**manifest, "metadata": self._new_meta(meta)}
        if kind.plural not in _WITHOUT_STATUS:
            new.pop("status", None)
        return self._store(kind, key, new)

    def replace(self, kind: Kind, key: Key, manifest: Manifest, subresource: str = "") -> bytes:
        """PUT."""
        return self._update(kind, key, manifest, subresource)

    def merge(self, kind: Kind, key: Key, change: Manifest, subresource: str = "") -> bytes:
        """PATCH with a JSON merge patch."""
        current = self.read(kind, key)
        current["metadata"].pop("resourceVersion")
        return self._update(kind, key, merged(current, change), subresource)

    def apply(self, kind: Kind, key: Key, manifest: Manifest, manager: str, force: bool, subresource: str = "") -> bytes:
        """PATCH by server-side apply. Raises Fault over a field that another has applied with another value."""
        fresh = key not in kind.objects
        if fresh and subresource:
            raise Fault(404, "NotFound", f'{kind.plural} "{key[1]}" not found')
        uid = manifest.get("metadata", {}).get("uid")
        if subresource and uid and uid != kind.objects[key].uid:  # measured; without a subresource it is a Conflict
            message = f'{kind.kind} "{key[1]}" is invalid: metadata.uid: Invalid value: "{uid}": field is immutable'
            raise Fault(422, "Invalid", message)
        owners = kind.applied.setdefault(key, {})
        ours = dict(_fields(manifest))
        disputed = {
            path: name
            for name, theirs in owners.items()
            if name != manager
            for path in ours
            if path in theirs and theirs[path] != ours[path]
        }
        if disputed and not force:
            listed = ", ".join(f".{'.'.join(path)} of {name}" for path, name in sorted(disputed.items()))
            raise Fault(409, "Conflict", f"Apply failed with {len(disputed)} conflicts: {listed}")
        for path, name in disputed.items():
            del owners[name][path]
        held = {path for name, theirs in owners.items() if name != manager for path in theirs}
        current: Manifest = {"metadata": {}} if fresh else self.read(kind, key)
        for path in owners.get(manager, {}):
            if path not in ours and path not in held:
                _remove(current, path)
        for path, value in ours.items():
            _set(current, path, value)
        owners[manager] = ours
        current["metadata"] |= {"name": key[1], **({"namespace": key[0]} if key[0] else {})}
        if fresh:
            return self.create(kind, key[0], {**current, "apiVersion": manifest["apiVersion"], "kind": manifest["kind"]})
        version = manifest.get("metadata", {}).get("resourceVersion")
        current["metadata"] |= {"resourceVersion": version} if version else {}
        return self._update(kind, key, current, subresource)

    def delete(self, kind: Kind, key: Key, options: Manifest | None = None) -> bytes:
        """DELETE. A pod that runs gets a deletion time and goes when its kubelet says so (grace 0); so does what has finalizers."""
        asked: Manifest = options or {}
        stored = self.stored(kind, key)
        wanted: dict[str, str] = asked.get("preconditions", {})
        for name, is_so in (("uid", stored.uid), ("resourceVersion", str(stored.version))):
            if wanted.get(name, is_so) != is_so:
                raise Fault(409, "Conflict", f"Precondition failed: {name} in precondition: {wanted[name]}, in object meta: {is_so}")
        current = msgspec.json.decode(stored.raw)
        meta = current["metadata"]
        runs = kind.kind == "Pod" and bool(current.get("spec", {}).get("nodeName"))
        grace_s = asked.get("gracePeriodSeconds")
        if not meta.get("finalizers") and (not runs or grace_s == 0):
            self._remove(kind, key)
            return stored.raw
        if meta.get("deletionTimestamp"):
            return stored.raw
        meta["deletionTimestamp"] = self._now()
        return self._store(kind, key, current)

    def _update(self, kind: Kind, key: Key, new: Manifest, subresource: str) -> bytes:
        stored = self.stored(kind, key)
        old: Manifest = msgspec.json.decode(stored.raw)
        said = new.get("metadata", {})
        if said.get("resourceVersion", str(stored.version)) != str(stored.version):
            raise Fault(409, "Conflict", f'Operation cannot be fulfilled on {kind.plural} "{key[1]}": the object has been modified')
        if said.get("uid", stored.uid) != stored.uid:
            raise Fault(409, "Conflict", f"Precondition failed: UID in precondition: {said['uid']}, UID in object meta: {stored.uid}")
        if subresource == "status":
            meta = dict(old["metadata"])
            for name in {"Pod": ["annotations"], "Node": ["annotations", "labels"]}.get(kind.kind, []):  # as Kubernetes does (measured)
                meta.pop(name, None)
                meta |= {name: said[name]} if said.get(name) else {}
            new = {**old, "metadata": meta, "status": new.get("status", {})}
        else:
            new = {**new, "apiVersion": old.get("apiVersion"), "kind": old.get("kind")}
            fixed = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "generation", "resourceVersion")
            own = {name: old["metadata"][name] for name in fixed if name in old["metadata"]}
            new["metadata"] = {**{name: value for name, value in said.items() if name not in fixed}, **own}
            if kind.plural not in _WITHOUT_STATUS:
                new.pop("status", None)
                new |= {"status": old["status"]} if "status" in old else {}
            if new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if new == old:
            return stored.raw
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers") and old["metadata"].get("finalizers"):
            self._remove(kind, key)
            return stored.raw
        return self._store(kind, key, new)

    def _new_meta(self, meta: Manifest) -> Manifest:
        self._uids += 1
        uid = f"00000000-0000-4000-8000-{self._uids:012x}"
        return {**meta, "uid": uid, "creationTimestamp": self._now(), "generation": 1}

    def _store(self, kind: Kind, key: Key, new: Manifest) -> bytes:
        self.version += 1
        meta = {**new["metadata"], "resourceVersion": str(self.version)}
        raw = msgspec.json.encode({**new, "metadata": meta})
        old = kind.objects.get(key)
        labels: dict[str, str] = new["metadata"].get("labels") or {}
        kind.objects[key] = Stored(raw, meta["uid"], self.version, labels)
        self._tell(kind, Change("MODIFIED" if old else "ADDED", key, raw, old.labels if old else None, labels))
        return raw

    def _remove(self, kind: Kind, key: Key) -> None:
        self.version += 1
        old = kind.objects.pop(key)
        kind.applied.pop(key, None)
        last: Manifest = msgspec.json.decode(old.raw)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._tell(kind, Change("DELETED", key, msgspec.json.encode(last), old.labels, None))

    def _tell(self, kind: Kind, change: Change) -> None:
        kind.changes.append(change)
        kind.versions.append(self.version)
        if len(kind.changes) > 2 * self._history:
            kind.oldest = max(kind.oldest, kind.versions[self._history - 1])
            kind.dropped += self._history
            del kind.changes[: self._history], kind.versions[: self._history]
        for listener in kind.listeners:
            listener()

    def now(self) -> float:
        """Seconds since 1970, by the server's clock."""
        return self._wall()

    def _now(self) -> str:
        return datetime.fromtimestamp(self._wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merged(current: Any, change: Any) -> Any:
    """A JSON merge patch, RFC 7386."""
    if not isinstance(change, dict):
        return change
    result: Manifest = dict(current) if isinstance(current, dict) else {}  # pyright: ignore[reportUnknownArgumentType]
    for name, value in change.items():  # pyright: ignore[reportUnknownVariableType]
        if value is None:
            result.pop(str(name), None)  # pyright: ignore[reportUnknownArgumentType]
        else:
            result[str(name)] = merged(result.get(str(name)), value)  # pyright: ignore[reportUnknownArgumentType]
    return result


_TERM = re.compile(r"\s*(!?)([\w./-]+)\s*(?:(==?|!=)\s*([\w.:-]*)|(in|notin)\s*\(([^)]*)\))?\s*(?:,|$)")


def selects(selector: str, labels: Mapping[str, str] | None) -> bool:
    """True when a label selector takes an object with these labels; None is no object."""
    if labels is None:
        return False
    return all(_holds(term, labels) for term in _TERM.finditer(selector)) if selector else True


def _holds(term: re.Match[str], labels: Mapping[str, str]) -> bool:
    inverted, name, operator, value, set_operator, members = term.groups()
    if set_operator:
        is_in = labels.get(name) in {one.strip() for one in members.split(",")}
        return is_in if set_operator == "in" else not is_in
    if operator:
        return (labels.get(name) == value) != (operator == "!=")
    return (name in labels) != bool(inverted)


def has_fields(selector: str, raw: bytes) -> bool:
    """True when a field selector takes an object: `spec.nodeName=a,status.phase!=Failed`."""
    if not selector:
        return True
    content: Any = msgspec.json.decode(raw)
    for term in selector.split(","):
        name, operator, value = re.split(r"(!=|==?)", term, maxsplit=1)
        found = content
        for part in name.split("."):
            found = found.get(part, {})
        if ((found or "") == value) == (operator == "!="):
            return False
    return True


def _fields(manifest: Manifest, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    for name, value in manifest.items():
        path = (*at, name)
        if path in (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "resourceVersion")):
            continue
        if path == _CONDITIONS and isinstance(value, list):
            conditions = cast(list[Manifest], value)
            yield from (((*path, one["type"]), one) for one in conditions)
        elif isinstance(value, dict) and value:
            yield from _fields(value, path)  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield path, value


def _set(content: Manifest, path: Path, value: Any) -> None:
    if path[:2] == _CONDITIONS:
        status: Manifest = content.setdefault("status", {})
        others: list[Manifest] = status.get("conditions") or []
        at = next((number for number, one in enumerate(others) if one["type"] == path[2]), len(others))
        status["conditions"] = [*others[:at], value, *others[at + 1 :]]
        return
    for name in path[:-1]:
        if not isinstance(content.get(name), dict):
            content[name] = {}
        content = content[name]
    content[path[-1]] = value


def _remove(content: Manifest, path: Path) -> None:
    if path[:2] == _CONDITIONS:
        said: Manifest = content.get("status") or {}
        present: list[Manifest] = said.get("conditions") or []
        said["conditions"] = [one for one in present if one["type"] != path[2]]
        return
    for name in path[:-1]:
        content = content.get(name) or {}
    content.pop(path[-1], None)
