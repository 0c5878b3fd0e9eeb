"""Decides what the guard does about an object that is not as it was deployed. Pure.

Only the last complete deployment is restored. During a deployment, and after one that failed, its objects are newer than the record, which
is written last: they are left alone.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from controllers.guard import fields
from controllers.guard.record import Declared, Name, Path, RecordMeta
from controllers.runtime.structs import ObjectMeta
from names import annotations, labels, writers

NOT_RESTORED: Mapping[str, tuple[Path, ...]] = {"NodeSet": (("spec", "replicas"),)}
"""Declared fields that may be changed by hand, but not removed: `kubectl scale nodeset` resizes a fixed set between two deployments."""
DATA = ("data", "binaryData")
"""Maps that are the stack's as a whole: a key that it does not declare is removed."""

MOST = 5
WINDOW_S = 600.0
"""An object that was restored MOST times within WINDOW_S is left as it is. An admin has to find out who keeps changing it."""


@dataclass(frozen=True)
class Change:
    """How an object differs from what was deployed."""

    paths: tuple[Path, ...] = ()
    """Fields that have other values than declared, or none."""
    extra: tuple[Path, ...] = ()
    """Keys of data that are not declared."""

    def __bool__(self) -> bool:
        return bool(self.paths or self.extra)

    @property
    def all(self) -> tuple[Path, ...]:
        return (*self.paths, *self.extra)


@dataclass(frozen=True)
class Marks:
    """What the deployer adds to what the stack declares, such as the label of kubectl's ApplySet, and how it writes."""

    manager: str
    """The name that it writes under."""
    operation: str = "Apply"
    """`Update` for an object that the Pulumi provider created and has not changed since."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])


def read_marks(live: Mapping[str, Any], program: str) -> Marks | None:
    """The marks of the program that deployed the stack, as the object bears them. None if that program did not write the object."""
    entry = fields.deployer(fields.managers(live), program)
    if entry is None:
        return None
    about = live["metadata"]
    owned: Mapping[str, Any] = entry.fields.get("f:metadata") or {}

    def of(part: str) -> dict[str, str]:
        mine: Mapping[str, Any] = owned.get(f"f:{part}") or {}
        borne: Mapping[str, str] = about.get(part) or {}
        return {key: value for key, value in borne.items() if f"f:{key}" in mine}

    return Marks(entry.manager, entry.operation, of("labels"), of("annotations"))


def program_of(record: RecordMeta | None) -> str:
    """The program that deployed the stack: the one that wrote the record last."""
    programs = [(entry.time, program) for entry in (record.managed_fields if record else ()) if (program := fields.program(entry.manager))]
    return max(programs, default=("", writers.SLIPWAY))[1]


def guess_marks(record: RecordMeta | None) -> Marks:
    """The marks of an object that nobody remembers: how its program creates objects, and the label that it puts on all of them."""
    part_of = {key: value for key, value in (record.labels if record else {}).items() if key == labels.APPLYSET}
    program = program_of(record)
    return Marks(program, "Update" if program == writers.PULUMI else "Apply", part_of)


def read_others(declared: Declared, live: Mapping[str, Any]) -> dict[Path, Any]:
    """The values that others set in an object, to create it again with them. A Secret's keys are left out: a key may be removed because it
    leaked.
    """
    return {} if live["kind"] == "Secret" else {path: fields.value_at(live, path) for path in declared.ignored}


def plan_manifest(declared: Declared, live: Mapping[str, Any] | None, marks: Marks, others: Mapping[Path, Any]) -> dict[str, Any] | None:
    """The manifest that makes the object as deployed. None if `others`, from read_others, lacks a value that it needs."""
    manifest = copy.deepcopy(declared.manifest)
    about = manifest["metadata"]
    about["labels"] = {**marks.labels, **_texts(about, "labels")}
    # What begins with pulumi.com/ is for the provider: if it does put them on the object, they are among its marks.
    declared_annotations = {key: value for key, value in _texts(about, "annotations").items() if not key.startswith("pulumi.com/")}
    if annotations := {**marks.annotations, **declared_annotations}:
        about["annotations"] = annotations
    else:
        about.pop("annotations", None)
    if live is None:
        if others.keys() < set(declared.ignored):
            return None
        for path in declared.ignored:
            _put(manifest, path, others[path])
        return manifest
    may_change = NOT_RESTORED.get(manifest["kind"], ())
    by_hand = [path for path in may_change if None not in (fields.value_at(live, path), fields.value_at(manifest, path))]
    for path in (*declared.ignored, *by_hand):
        _put(manifest, path, fields.value_at(live, path))
    about |= {key: live["metadata"][key] for key in ("uid", "resourceVersion")}
    return manifest


def find_change(manifest: Mapping[str, Any], live: Mapping[str, Any], would: Mapping[str, Any]) -> Change:
    """How the object differs from what was deployed. `would` is the server's answer to a dry run of applying `manifest`."""
    extra = [
        (part, key)
        for part in DATA
        if manifest["kind"] in ("ConfigMap", "Secret")
        for key in sorted(live.get(part) or {})
        if key not in (manifest.get(part) or {})
    ]
    return Change(tuple(fields.differences(fields.content(live), fields.content(would))), tuple(extra))


def plan_removal(change: Change) -> dict[str, Any]:
    """The merge patch that removes undeclared keys of data."""
    removal: dict[str, Any] = {}
    for part, key in change.extra:
        removal.setdefault(str(part), {})[key] = None
    return removal


def plan_patch(change: Change, live: Mapping[str, Any], would: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that restores the object in one write."""
    patch = fields.merge_patch(fields.content(live), fields.content(would))
    for part, keys in plan_removal(change).items():
        patch[part] = (patch.get(part) or {}) | keys
    patch.setdefault("metadata", {})["resourceVersion"] = live["metadata"]["resourceVersion"]
    return patch


def whole(manifest: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """The object as declared, without what only others set in it, except metadata."""
    meta: dict[str, Any] = fields.content(live)["metadata"]
    about = {part: {**_texts(meta, part), **_texts(manifest["metadata"], part)} for part in ("labels", "annotations")}
    return {**manifest, "metadata": meta | {part: texts for part, texts in about.items() if texts}}


def may_restore(change: Change, live: Mapping[str, Any], record_time: str, settled_time: str) -> bool:
    """False if a deployment that is not in the record yet may have changed the object.

    `settled_time` is when the deployer had last written to the object while it matched the record.
    """
    entries = fields.managers(live)
    if fields.deployed_at(entries) <= max(record_time, settled_time):
        return True
    # The deployer wrote to it after the record. What another has now was taken from it by hand; the rest may be the deployer's.
    return all(any(not owner.program for owner in fields.owners(entries, live, path)) for path in change.all)


def is_listed(manifest: Mapping[str, Any], lists: Mapping[str, Any] | None) -> bool:
    """False for a node set that its current list does not name: its controller has deleted it."""
    if annotations.DECLARED_IN not in (manifest["metadata"].get("annotations") or {}):
        return True
    return lists is not None and manifest["metadata"]["name"] in (lists.get("data") or {})


def matters(old: ObjectMeta | None, new: ObjectMeta | None) -> bool:
    """True if a change may concern more than the status. Most changes of workloads do not."""
    if old is None or new is None or not new.generation:
        return True
    return _but_for_status(old) != _but_for_status(new)


class Fights:
    """How often each object was restored lately."""

    def __init__(self) -> None:
        self._at: dict[Name, list[float]] = {}

    def note(self, name: Name, now: float) -> None:
        self._at[name] = [at for at in self._at.get(name, []) if now - at < WINDOW_S] + [now]

    def is_lost(self, name: Name, now: float) -> bool:
        """True after MOST restores within WINDOW_S."""
        return len([at for at in self._at.get(name, []) if now - at < WINDOW_S]) >= MOST

    def forget(self, name: Name) -> None:
        self._at.pop(name, None)


def say_change(change: Change, entries: Sequence[fields.Manager], live: Mapping[str, Any]) -> str:
    """The changed fields and who changed them, for people."""
    shown = [fields.show(path) for path in change.all[:3]]
    unshown = len(change.all) - len(shown)
    what = ", ".join(shown) + (f" and {unshown} more" if unshown else "")
    who = fields.culprits(entries, live, change.all)
    if not who:
        return f"{what}, changed by someone who left no trace in its managed fields"
    return f"{what}, changed by {', '.join(map(str, who))}"


def _but_for_status(about: ObjectMeta) -> tuple[Any, ...]:
    return about.generation, about.labels, about.annotations, about.finalizers, about.deletion_timestamp


def _texts(about: Mapping[str, Any], part: str) -> Mapping[str, str]:
    """Labels or annotations. Raises ValueError if the record has anything but a map there."""
    texts: Any = about.get(part) or {}
    if not isinstance(texts, dict):
        raise ValueError(f"the record's metadata.{part} of {about.get('name')} is {texts!r}, and no map")
    return cast(dict[str, str], texts)


def _put(manifest: dict[str, Any], path: Path, value: Any) -> None:
    """Sets a value; None removes it."""
    place: Any = manifest
    for part in path[:-1]:
        if not isinstance(place, dict):
            return
        place = cast(dict[str, Any], place).setdefault(str(part), {})
    if not isinstance(place, dict):
        return
    if value is None:
        cast(dict[str, Any], place).pop(str(path[-1]), None)
    else:
        cast(dict[str, Any], place)[str(path[-1])] = value
