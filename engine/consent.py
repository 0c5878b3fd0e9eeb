"""Whether a command may change this cluster: it must belong to the stack, and the user must agree. Pure.

A stack's `clusterIdentifier` is recorded at its namespace and at the Secret of its random values. The local cluster belongs to this
checkout, so it needs no question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.faults import SlipwayError, rows
from engine.kubeconfig import LOCAL_CONTEXT, Target
from engine.plan import Plan
from engine.render import Key, provider_inputs
from names import annotations, labels

Answer = Literal["yes", "ask", "refuse"]


@dataclass(frozen=True)
class Situation:
    """What decides whether a command asks before it changes the cluster."""

    verb: Literal["up", "destroy"]
    said_yes: bool
    """`--yes` was given."""
    has_terminal: bool
    """A user can be asked."""
    is_local: bool
    """It is the local cluster of this checkout."""
    is_known: bool
    """The stack is in this cluster already."""
    losses: tuple[str, ...] = ()
    """The data that `up` would delete, one line for each object; see changes.data."""
    harms: tuple[str, ...] = ()
    """What `up` would do to running jobs, one line for each change; see changes.story."""


def plan_question(situation: Situation) -> Answer:
    """Whether to continue, ask or refuse. `up` asks before it creates a stack's first objects, except in the local cluster, and before it
    deletes data or ends jobs."""
    costs = situation.losses or situation.harms
    if situation.said_yes or (situation.verb == "up" and not costs and (situation.is_local or situation.is_known)):
        return "yes"
    return "ask" if situation.has_terminal else "refuse"


_REMEDY = (
    "Declare the objects again to keep them. To delete them, give --yes. To keep a claim that the stack no longer declares, take it out of "
    f"the stack first: kubectl -n NAMESPACE label persistentvolumeclaim NAME {labels.APPLYSET}-"
)
_SPARE_THEM = (
    "To spare them, drain the nodes (scontrol update NodeName=... State=DRAIN Reason=...) and run `up` when no job is left there. To end "
    "them, give --yes."
)


def loss_lines(losses: Sequence[str]) -> str:
    """The message before the question, with a line for each object whose data would be deleted."""
    return f"This deletes for good:\n{rows(losses)}"


def harm_lines(harms: Sequence[str]) -> str:
    """The message before the question, with a line for each change that ends running jobs."""
    return f"This ends running jobs:\n{rows(harms)}"


def refusal(situation: Situation, stack: str, target: Target, namespace: str) -> str:
    """The error message if there is no terminal to ask at."""
    if situation.losses:
        return f"Nothing was changed: this `up` deletes data, and there is no terminal to ask at.\n{_REMEDY}"
    if situation.harms:
        return f"Nothing was changed: this `up` ends running jobs, and there is no terminal to ask at.\n{_SPARE_THEM}"
    outcome = "deleted" if situation.verb == "destroy" else "changed"
    where = f"{target}, namespace {namespace}"
    why = "" if situation.verb == "destroy" else "this cluster has nothing of the stack yet, and "
    return f"Nothing was {outcome}: {why}there is no terminal to ask at. To {situation.verb} {stack} in {where}, give --yes."


def is_local(root: Path, kubeconfig: str | None, target: Target) -> bool:
    """True for the cluster that `make up` creates in this checkout, by its kubeconfig and context."""
    local_file = root / ".slipway" / "kubeconfig"
    is_local_file = kubeconfig is not None and local_file.exists() and Path(kubeconfig).resolve() == local_file.resolve()
    return is_local_file and target.context == LOCAL_CONTEXT


def identifier(plan: Plan) -> str:
    """The stack's clusterIdentifier; empty if it has none."""
    return str(provider_inputs(plan.resources).get("clusterIdentifier") or "")


def refuse_other(plan: Plan, recorded: Mapping[Key, str], target: str) -> None:
    """Raises SlipwayError if the namespace or the stored values belong to a stack with another clusterIdentifier."""
    ours = identifier(plan)
    foreign = sorted((key, owner) for key, owner in recorded.items() if owner and ours and owner != ours)
    if not foreign:
        return
    foreign_lines = rows(f"{key}: {owner}" for key, owner in foreign)
    new_annotation = f"{annotations.CLUSTER_IDENTIFIER}={ours}"
    commands = rows(
        f"kubectl {f'-n {key.namespace} ' if key.namespace else ''}annotate --overwrite {key.kind.lower()} {key.name} {new_annotation}"
        for key, _ in foreign
    )
    raise SlipwayError(
        f'Nothing was changed: the stack "{plan.stack}" is for the cluster "{ours}" (clusterIdentifier), and at {target} these belong to '
        f"another:\n{foreign_lines}\nChoose the right cluster with --context, or another namespace. If the stack's clusterIdentifier has "
        f"changed for good, run:\n{commands}"
    )
