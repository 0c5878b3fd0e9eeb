"""One stack: its recorded program, its cluster, and every change between the two. Changes nothing.

`preview` shows these changes and `up` makes them, so both see the same.
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
    """A stack as declared, and its place in a cluster."""

    plan: Plan
    documents: tuple[Document, ...]
    home: Home
    kept: Kept
    fresh: Mapping[str, bytes]
    """Random values that are not stored yet."""
    recovered: Recovered
    """Values of `fresh` that are not new but read from live Secrets."""


@dataclass(frozen=True)
class Outlook:
    """Everything that `up` would do, by resource and by object."""

    changes: Mapping[str, Change]
    gone: tuple[Change, ...]
    objects: tuple[decide.ObjectChange, ...]
    """Empty if compared with a saved plan."""
    steps: tuple[Step, ...]
    """The changes of Kubernetes objects, for the story."""

    @property
    def counted(self) -> list[Change]:
        """The changes that the count line counts."""
        return [*self.changes.values(), *self.gone]


def home(plan: Plan, project: Project, where: Where) -> Home:
    """The stack's place. The context is the option's, else that of the stack's Kubernetes provider. Raises UnreachableError."""
    inputs = render.provider_inputs(plan.resources)
    context = where.context or (str(inputs["context"]) if inputs.get("context") else None)
    objects = [resource for resource in plan.resources if resource.is_object]
    namespaces = [
        str(resource.inputs["metadata"]["namespace"]) for resource in objects if resource.inputs.get("metadata", {}).get("namespace")
    ]
    namespace = max(sorted(set(namespaces)), key=namespaces.count) if namespaces else str(inputs.get("namespace") or "default")
    return Home(api.connect(kubeconfig.find(project.root, where.kubeconfig, context)), namespace, f"slipway-{plan.project}-{plan.stack}")


def read(project: Project, where: Where, screen: Screen, for_real: bool, check: Callable[[Plan], object] | None = None) -> Stack:
    """Runs the program, reads the stack's random values from the cluster, and runs it again with them if there are any.

    `for_real` makes missing values now (in memory); a preview uses stand-ins. `check` is called with the plan before the cluster is asked,
    and may raise. Raises SlipwayError, and UnreachableError if there is no cluster.
    """
    first_recording = record.record(project)
    screen.warn(*first_recording.messages)
    if check or not for_real:
        hide(screen, first_recording.plan)
    if check:
        check(first_recording.plan)
    stack_home = home(first_recording.plan, project, where)
    declared = first_recording.plan
    if for_real:
        render.documents(declared)  # refuses what only the Pulumi CLI can make
    try:
        if for_real:
            render.namespace_of(cluster.scoped(stack_home, render.own_documents(declared)))
        stored = cluster.kept(stack_home)
        live_data = cluster.live_secrets(stack_home, render.own_documents(declared)) if stored.version is None else {}
    except RefusedError as error:
        raise forbidden(error, stack_home, declared) from error
    recovered = recovery.plan_recovery(declared, live_data)
    fresh: dict[str, bytes] = {}
    if any(resource.type.startswith("random:") for resource in declared.resources):

        def value_of(key: str, alias_keys: tuple[str, ...], type_: str, inputs: Mapping[str, Any]) -> bytes:
            value = next((stored.values[name] for name in (key, *alias_keys) if name in stored.values), recovered.values.get(key))
            if value is None:
                value = random_values.make(type_, inputs, os.urandom if for_real else random_values.placeholder(key))
            if key not in stored.values:
                fresh[key] = value
            return value

        declared = record.record(project, value_of, preview=not for_real).plan
    hide(screen, declared)
    return Stack(declared, tuple(cluster.scoped(stack_home, render.own_documents(declared))), stack_home, stored, fresh, recovered)


def hide(screen: Screen, plan: Plan) -> None:
    """Hides every secret text of the plan on the screen, and the decoded values of Secrets."""
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


def forbidden(error: RefusedError, stack_home: Home, plan: Plan) -> SlipwayError:
    """The same error; if its reason is Forbidden, an error with every right that the user lacks."""
    if error.reason != "Forbidden":
        return error
    return lacking_rights(stack_home, render.own_documents(plan)) or error


def lacking_rights(stack_home: Home, declared: Sequence[Document]) -> SlipwayError | None:
    """An error with every right that the user lacks, if any."""
    rights = cluster.lacking_rights(stack_home, declared)
    message = f"{stack_home.api} may not do what the stack needs in namespace {stack_home.namespace}; it lacks:\n{rows(rights)}"
    return SlipwayError(message) if rights else None


def outlook(stack: Stack, force_conflicts: bool = False) -> Outlook:
    """Every change, from the server's dry run. Raises SlipwayError if the server refuses objects, the user lacks rights, the cluster
    belongs to another stack, or random values are lost."""
    recovery.refuse_unread(stack.recovered, stack.documents, stack.home.keeper)
    try:
        documents = cluster.beside_live(stack.home, stack.documents)
        seen = cluster.look(stack.home, documents, stack.kept, force_conflicts)
    except RefusedError as error:
        raise forbidden(error, stack.home, stack.plan) from error
    consent.refuse_other(stack.plan, recorded(stack, seen.live.values()), str(stack.home.api))
    objects = decide.object_changes(documents, seen.live, seen.results, seen.immutable, seen.members, seen.untried)
    changes: dict[str, Change] = {}
    gone: list[Change] = []
    records = {change.key for change in objects if change.document and is_record(change.document.manifest)}
    repeating = records if any(change.op != "same" and change.key not in records for change in objects) else frozenset[Key]()
    for change in objects:
        if change.document:
            declared = change.document.resource
            # The guard's record repeats all other changes, so it is shown only if it changes alone.
            op = "same" if change.op == "update" and change.key in repeating else change.op
            shown = () if op == "same" else change.differences
            changes[declared.urn] = Change(op, declared.type, declared.name, declared.urn, shown, change.note)
        else:
            note = "kept in the cluster: retainOnDelete" if change.key in decide.retained([change]) else ""
            gone.append(Change("delete", change.key.kind, f"{change.key.namespace}/{change.key.name}".lstrip("/"), note=note))
    for resource in stack.plan.resources:
        if resource.is_counted and resource.urn not in changes:
            changes[resource.urn] = Change(_other(resource, stack), resource.type, resource.name, resource.urn)
    return Outlook(changes, tuple(gone), tuple(objects), tuple(decide.steps(objects)))


def recorded(stack: Stack, live: Iterable[Mapping[str, Any]]) -> dict[Key, str]:
    """The live clusterIdentifier of the stack's namespace, if these objects contain it, and of its stored values."""
    namespace = Key("", "Namespace", "", stack.home.namespace)
    identifiers = (render.annotation(manifest, annotations.CLUSTER_IDENTIFIER) for manifest in live if render.key_of(manifest) == namespace)
    return {namespace: next(identifiers, ""), stack.home.keeper: stack.kept.identifier}


def _other(resource: Resource, stack: Stack) -> Any:
    if resource.type.startswith("random:"):
        kind, name = resource.type.rpartition(":")[2], resource.name
        return "create" if any(key.startswith(f"{kind}.{name}.") for key in stack.fresh.keys() - stack.recovered.values.keys()) else "same"
    return "cli"


def saved_outlook(plan: Plan, saved: Mapping[str, Any] | None) -> Outlook:
    """Every change against a saved plan."""
    new = as_json(plan)
    all_changes = compare(saved, new)
    changes = {change.urn: change for change in all_changes if change.urn}
    return Outlook(changes, tuple(change for change in all_changes if not change.urn), (), tuple(saved_steps(all_changes, saved, new)))


def plan_file(project: Project) -> Path:
    """The file of the stack's last plan. Git ignores it, and it contains no secret."""
    return project.root / ".slipway" / "plans" / f"{project.stack}.json"


def load_plan(file: Path) -> dict[str, Any] | None:
    """A saved plan, or one that `preview --json` wrote; None if there is no file. Raises SlipwayError if it is not a plan."""
    try:
        plan: object = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SlipwayError(f"{file} is not a plan ({error}). Delete it, or name another.") from error
    if not isinstance(plan, dict) or not isinstance(cast(dict[str, Any], plan).get("resources"), list):
        raise SlipwayError(f"{file} is not a plan (no list of resources). Delete it, or name another.")
    return cast(dict[str, Any], plan)


def save_plan(project: Project, plan: Plan) -> None:
    """Saves the plan for previews without a cluster."""
    file = plan_file(project)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(as_json(plan), indent=2, sort_keys=True) + "\n")
