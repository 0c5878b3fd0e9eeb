"""One stack brought together: the recorded program, the cluster it is for, and every change between the two.

Reads only. `preview` shows what this finds, `up` acts on it, so both see the same.
"""

import base64
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from changes.steps import Step
from changes.workloads import is_record
from engine import api, cluster, consent, kubeconfig, random_values, record, recovery, render
from engine import changes as decide
from engine.api import RefusedError
from engine.cluster import Home, Kept
from engine.faults import SlipwayError, rows
from engine.kubeconfig import Where
from engine.plan import Change, Plan, Resource, as_json, compare, saved_steps, secret_texts
from engine.project import Project
from engine.recovery import Recovered
from engine.render import Document, Key
from engine.screen import Screen
from names import annotations


@dataclass(frozen=True)
class Stack:
    """A stack as declared, and its home in a cluster."""

    plan: Plan
    documents: tuple[Document, ...]
    home: Home
    kept: Kept
    fresh: Mapping[str, bytes]
    """Random values that are not kept yet."""
    recovered: Recovered
    """Those of `fresh` that are not new: live Secrets have them."""


@dataclass(frozen=True)
class Outlook:
    """Everything that an `up` would do: by resource for people, by object for kubectl."""

    changes: Mapping[str, Change]
    gone: tuple[Change, ...]
    objects: tuple[decide.ObjectChange, ...]
    """Empty against a saved plan."""
    steps: tuple[Step, ...]
    """The Kubernetes objects, as the story of the change is told from."""

    @property
    def counted(self) -> list[Change]:
        """The changes that the count line counts."""
        return [*self.changes.values(), *self.gone]


def home(plan: Plan, project: Project, where: Where) -> Home:
    """Where the stack lives: the context is the option's, else the stack's Kubernetes provider's. Raises UnreachableError."""
    inputs = render.provider_inputs(plan.resources)
    context = where.context or (str(inputs["context"]) if inputs.get("context") else None)
    objects = [resource for resource in plan.resources if resource.is_object]
    namespaces = [
        str(resource.inputs["metadata"]["namespace"]) for resource in objects if resource.inputs.get("metadata", {}).get("namespace")
    ]
    namespace = max(sorted(set(namespaces)), key=namespaces.count) if namespaces else str(inputs.get("namespace") or "default")
    return Home(api.connect(kubeconfig.find(project.root, where.kubeconfig, context)), namespace, f"slipway-{plan.project}-{plan.stack}")


def read(project: Project, where: Where, screen: Screen, for_real: bool, check: Callable[[Plan], object] | None = None) -> Stack:
    """Runs the program, asks the cluster for the stack's random values, and runs it again with them where there are any.

    `for_real` makes missing values now (in memory); a preview takes stand-ins. `check` sees the plan before the cluster is asked, and may
    raise. Raises SlipwayError, UnreachableError for no cluster.
    """
    first = record.record(project)
    screen.warn(*first.messages)
    if check or not for_real:
        hide(screen, first.plan)
    if check:
        check(first.plan)
    at = home(first.plan, project, where)
    declared = first.plan
    if for_real:
        render.documents(declared)  # refuses what only the pulumi CLI can make
    try:
        if for_real:
            render.namespace_of(cluster.scoped(at, render.own_documents(declared)))
        before = cluster.kept(at)
        live = cluster.live_secrets(at, render.own_documents(declared)) if before.version is None else {}
    except RefusedError as error:
        raise forbidden(error, at, declared) from error
    lost = recovery.plan_recovery(declared, live)
    fresh: dict[str, bytes] = {}
    if any(resource.type.startswith("random:") for resource in declared.resources):

        def value_of(key: str, others: tuple[str, ...], type_: str, inputs: Mapping[str, Any]) -> bytes:
            known = next((before.values[name] for name in (key, *others) if name in before.values), lost.values.get(key))
            if known is None:
                known = random_values.make(type_, inputs, os.urandom if for_real else random_values.placeholder(key))
            if key not in before.values:
                fresh[key] = known
            return known

        declared = record.record(project, value_of, preview=not for_real).plan
    hide(screen, declared)
    return Stack(declared, tuple(cluster.scoped(at, render.own_documents(declared))), at, before, fresh, lost)


def hide(screen: Screen, plan: Plan) -> None:
    """Tells the screen every secret text of the plan, and what each is in base64 or out of it."""
    for resource in plan.resources:
        texts = list(secret_texts(resource.inputs))
        screen.hide(texts)
        if resource.inputs.get("kind") == "Secret":
            screen.hide(decoded for text in texts if (decoded := _from_base64(text)))
    screen.hide(secret_texts(plan.outputs))


def _from_base64(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return None


def forbidden(error: RefusedError, at: Home, plan: Plan) -> SlipwayError:
    """The same error, or, where the server said Forbidden, every right the user lacks."""
    if error.reason != "Forbidden":
        return error
    return lacking_rights(at, render.own_documents(plan)) or error


def lacking_rights(at: Home, declared: Sequence[Document]) -> SlipwayError | None:
    """An error with every right the user lacks; None where none does."""
    lacks = cluster.lacking_rights(at, declared)
    words = f"{at.api} may not do what the stack needs in namespace {at.namespace}; it lacks:\n{rows(lacks)}"
    return SlipwayError(words) if lacks else None


def outlook(stack: Stack, force_conflicts: bool = False) -> Outlook:
    """Every change, from the server's own answers. Raises SlipwayError with what the server refuses, the rights that lack, whose the
    cluster is if it is another's, and values that are lost."""
    recovery.refuse_unread(stack.recovered, stack.documents, stack.home.keeper)
    try:
        documents = cluster.beside_live(stack.home, stack.documents)
        seen = cluster.look(stack.home, documents, stack.kept, force_conflicts)
    except RefusedError as error:
        raise forbidden(error, stack.home, stack.plan) from error
    consent.refuse_other(stack.plan, recorded(stack, seen.live.values()), str(stack.home.api))
    objects = decide.object_changes(documents, seen.live, seen.results, seen.immutable, seen.members, seen.untried)
    found: dict[str, Change] = {}
    gone: list[Change] = []
    records = {change.key for change in objects if change.document and is_record(change.document.manifest)}
    repeating = records if any(change.op != "same" and change.key not in records for change in objects) else frozenset[Key]()
    for change in objects:
        if change.document:
            about = change.document.resource
            # The guard's record repeats all other changes: shown only when it changes alone.
            op = "same" if change.op == "update" and change.key in repeating else change.op
            shown = () if op == "same" else change.differences
            found[about.urn] = Change(op, about.type, about.name, about.urn, shown, change.note)
        else:
            note = "kept in the cluster: retainOnDelete" if change.key in decide.retained([change]) else ""
            gone.append(Change("delete", change.key.kind, f"{change.key.namespace}/{change.key.name}".lstrip("/"), note=note))
    for resource in stack.plan.resources:
        if resource.is_counted and resource.urn not in found:
            found[resource.urn] = Change(_other(resource, stack), resource.type, resource.name, resource.urn)
    return Outlook(found, tuple(gone), tuple(objects), tuple(decide.steps(objects)))


def recorded(stack: Stack, live: Iterable[Mapping[str, Any]]) -> dict[Key, str]:
    """The clusterIdentifier that the stack's namespace, if it is among these objects, and its kept values carry in the cluster."""
    namespace = Key("", "Namespace", "", stack.home.namespace)
    said = (render.annotation(manifest, annotations.CLUSTER_IDENTIFIER) for manifest in live if render.key_of(manifest) == namespace)
    return {namespace: next(said, ""), stack.home.keeper: stack.kept.identifier}


def _other(resource: Resource, stack: Stack) -> Any:
    if resource.type.startswith("random:"):
        kind, name = resource.type.rpartition(":")[2], resource.name
        return "create" if any(key.startswith(f"{kind}.{name}.") for key in stack.fresh.keys() - stack.recovered.values.keys()) else "same"
    return "cli"


def saved_outlook(plan: Plan, saved: Mapping[str, Any] | None) -> Outlook:
    """Every change against a saved plan: without a cluster, what was last known."""
    new = as_json(plan)
    found = compare(saved, new)
    changes = {change.urn: change for change in found if change.urn}
    return Outlook(changes, tuple(change for change in found if not change.urn), (), tuple(saved_steps(found, saved, new)))


def plan_file(project: Project) -> Path:
    """Where the last plan of the stack is saved: git-ignored, no secret in it."""
    return project.root / ".slipway" / "plans" / f"{project.stack}.json"


def load_plan(file: Path) -> dict[str, Any] | None:
    """A saved plan, or one that `preview --json` wrote; None where there is no file. Raises SlipwayError when it holds no plan."""
    try:
        plan: object = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SlipwayError(f"{file}: not a plan ({error}); delete it, or name another.") from error
    if not isinstance(plan, dict) or not isinstance(cast(dict[str, Any], plan).get("resources"), list):
        raise SlipwayError(f"{file}: not a plan (no list of resources); delete it, or name another.")
    return cast(dict[str, Any], plan)


def save_plan(project: Project, plan: Plan) -> None:
    """Writes the plan for the next preview without a cluster."""
    file = plan_file(project)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(as_json(plan), indent=2, sort_keys=True) + "\n")
