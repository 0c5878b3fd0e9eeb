"""Whether a verb may change this cluster: whose it is, as recorded in it, and whether somebody has said yes. Pure.

A stack's `clusterIdentifier` is recorded at its namespace and at the Secret of its random values. The local cluster is made for this
checkout, so nobody is asked about it.
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
    """What the question of a verb is decided from."""

    verb: Literal["up", "destroy"]
    said_yes: bool
    """`--yes` was given."""
    has_terminal: bool
    """There is somebody to ask."""
    is_local: bool
    """It is the local cluster of this checkout."""
    is_known: bool
    """The stack is in this cluster already."""
    losses: tuple[str, ...] = ()
    """The data that `up` would delete, an object a line; see changes.data."""
    harms: tuple[str, ...] = ()
    """What `up` would do to running jobs, a line each; see changes.story."""


def plan_question(now: Situation) -> Answer:
    """Whether to go on, to ask, or to refuse. `up` asks before it makes a stack's first objects, unless in the local cluster, and before it
    deletes data or ends jobs."""
    costs = now.losses or now.harms
    if now.said_yes or (now.verb == "up" and not costs and (now.is_local or now.is_known)):
        return "yes"
    return "ask" if now.has_terminal else "refuse"


_REMEDY = (
    "Declare the objects again to keep them. To let them go, give --yes. To keep a claim that the stack is to forget, take it out of the "
    f"stack's hands first: kubectl -n NAMESPACE label persistentvolumeclaim NAME {labels.APPLYSET}-"
)


_SPARE_THEM = (
    "To spare them, drain the nodes (scontrol update NodeName=... State=DRAIN Reason=...), and run `up` when no job is left there. To let "
    "them go, give --yes."
)


def loss_lines(losses: Sequence[str]) -> str:
    """The message before the question: a line for each object whose data would be deleted."""
    return f"This deletes for good:\n{rows(losses)}"


def harm_lines(harms: Sequence[str]) -> str:
    """The message before the question: a line for each change that ends running jobs."""
    return f"This ends running jobs:\n{rows(harms)}"


def refusal(now: Situation, stack: str, target: Target, namespace: str) -> str:
    """Why nothing was done: there is no terminal to ask at."""
    if now.losses:
        return f"Nothing was changed: this `up` deletes data, and there is no terminal to ask at.\n{_REMEDY}"
    if now.harms:
        return f"Nothing was changed: this `up` ends running jobs, and there is no terminal to ask at.\n{_SPARE_THEM}"
    outcome = "deleted" if now.verb == "destroy" else "changed"
    where = f"{target}, namespace {namespace}"
    why = "" if now.verb == "destroy" else "this cluster has nothing of the stack yet, and "
    return f"Nothing was {outcome}: {why}there is no terminal to ask at. To {now.verb} {stack} in {where}, give --yes."


def is_local(root: Path, kubeconfig: str | None, target: Target) -> bool:
    """True when this is the cluster that `make up` makes in this checkout: its own kubeconfig and context."""
    mine = root / ".slipway" / "kubeconfig"
    return kubeconfig is not None and target.context == LOCAL_CONTEXT and mine.exists() and Path(kubeconfig).resolve() == mine.resolve()


def identifier(plan: Plan) -> str:
    """What the stack calls the Kubernetes cluster it is for; empty where it does not say."""
    return str(provider_inputs(plan.resources).get("clusterIdentifier") or "")


def refuse_other(plan: Plan, recorded: Mapping[Key, str], target: str) -> None:
    """Raises SlipwayError when the namespace or the kept values belong to a stack with another clusterIdentifier."""
    ours = identifier(plan)
    others = {key: said for key, said in recorded.items() if said and ours and said != ours}
    if not others:
        return
    named = rows(f"{key}: {said}" for key, said in sorted(others.items()))
    mark = f"{annotations.CLUSTER_IDENTIFIER}={ours}"
    commands = rows(
        f"kubectl {f'-n {key.namespace} ' if key.namespace else ''}annotate --overwrite {key.kind.lower()} {key.name} {mark}"
        for key in sorted(others)
    )
    raise SlipwayError(
        f'Nothing was changed: the stack "{plan.stack}" is for the cluster "{ours}" (clusterIdentifier), and at {target} these belong to '
        f"another:\n{named}\nChoose the right cluster with --context, or another namespace. Where the stack's clusterIdentifier has "
        f"changed for good:\n{commands}"
    )
