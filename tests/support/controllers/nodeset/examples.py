"""A set, its pods and nodes, and what a plan sees of them, for tables of tests."""

from collections.abc import Collection
from typing import Any

import msgspec

from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan
from controllers.nodeset.pods import revision
from controllers.nodeset.structs import NodeSetObject, NodeSetSpec, PodTemplate
from controllers.nodeset.workers import NodeJob, WorkerNode, WorkerPod
from controllers.runtime.structs import ObjectMeta
from slurm.states import node_state

NOW = 10_000.0


TEMPLATE = PodTemplate({"nodeSelector": {"slipway.dev/pool": "gpu"}, "containers": [{"name": "slurmd", "image": "a"}]})


def nodeset(**spec: Any) -> NodeSetObject:
    whole = NodeSetSpec("dev", TEMPLATE, ordinals=None if "max" in spec else 9)
    return NodeSetObject(ObjectMeta(name="gpu", namespace="slurm", uid="u", generation=3), msgspec.structs.replace(whole, **spec))


CURRENT = revision(nodeset().spec)


def pod(**facts: Any) -> WorkerPod:
    usual: dict[str, Any] = {"uid": "p", "revision": CURRENT, "created_at": 100.0, "ready": True, "marked_busy": False}
    return WorkerPod(**{**usual, **facts})


def node(words: str = "IDLE CLOUD", reason: str = "", **facts: Any) -> WorkerNode:
    return WorkerNode(node_state(words.split()), reason, **facts)


def look(*workers: tuple[WorkerPod | None, WorkerNode | None], now: float = NOW, silent: bool = False, **facts: Any) -> Observed:
    pods = {at: made for at, (made, _) in enumerate(workers) if made is not None}
    nodes = {at: known for at, (_, known) in enumerate(workers) if known is not None}
    return Observed(pods, None if silent else nodes, now, **facts)


def acts_of(made: Plan, expected: Collection[str] = ()) -> dict[str, Any]:
    """What a plan does, as tables write it; labels only where they are expected."""
    acts = {
        "create": made.create,
        "delete": made.deletions.free,
        "drain": made.drains.drain,
        "undrain": made.drains.undrain,
        "resume": made.resumes.resume,
        "release": made.resumes.release,
        "mark_busy": made.labels.busy if "mark_busy" in expected else (),
        "mark_free": made.labels.free if "mark_free" in expected else (),
    }
    return {name: ordinals for name, ordinals in acts.items() if ordinals}


IDLE = (pod(), node())


BUSY = (pod(marked_busy=True), node("ALLOCATED CLOUD", last_job_end=NOW + 50))


OLD = pod(revision="old")


ENDING = NodeJob("7", is_ending=True)


SALLOC, NO_REQUEUE = NodeJob("8", is_batch=False), NodeJob("9", allows_requeue=False)


GHOST = (pod(marked_busy=True), node("IDLE CLOUD POWERED_DOWN"))
