"""Reads what an overview needs from a live cluster. If a source does not answer, its last reading stays, with its age and the error."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from cli.status.overview import Objects, QueueRow, read_nodes, read_queue
from engine import queue
from engine.api import Api, RefusedError
from engine.faults import SlipwayError, UnreachableError
from engine.render import Sort
from names import crds, labels
from slurm.listed import Node

_PART_OF = f"{labels.PART_OF}=slipway"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Reading(Generic[_T]):
    """The last value, its time, and the error since."""

    value: _T | None = None
    at: float | None = None
    """Seconds since 1970."""
    fault: str = ""


@dataclass(frozen=True)
class Readings:
    """The readings of an overview."""

    objects: Reading[Objects] = Reading()
    nodes: Reading[tuple[Node, ...]] = Reading()
    queue: Reading[tuple[QueueRow, ...]] = Reading()


def read(api: Api, namespace: str, before: Readings) -> Readings:
    """Reads all sources again, in parallel."""
    with ThreadPoolExecutor() as pool:
        objects = pool.submit(_try, before.objects, lambda: _objects(api, namespace))
        nodes = pool.submit(_try, before.nodes, lambda: queue.ask(api, namespace, "nodes", read_nodes))
        jobs = pool.submit(_try, before.queue, lambda: queue.ask(api, namespace, "queue", read_queue))
        return Readings(objects.result(), nodes.result(), jobs.result())


def _try(before: Reading[_T], ask: Callable[[], _T]) -> Reading[_T]:
    try:
        return Reading(ask(), time.time())
    except (queue.SilentError, RefusedError, SlipwayError, UnreachableError) as error:
        return Reading(before.value, before.at, str(error))


def _objects(api: Api, namespace: str) -> Objects:
    def ours(group: str, kind: str) -> list[dict[str, object]]:
        return api.list(Sort(group, kind), namespace, labelSelector=_PART_OF)

    programs = [*ours("apps", "Deployment"), *ours("apps", "StatefulSet")]
    try:
        slurm_nodes = api.list(Sort(crds.GROUP, "SlurmNode"), namespace)
    except RefusedError:
        slurm_nodes = []  # an older release has no such kind, or this user may not read it; Slurm's reasons remain
    return Objects(ours(crds.GROUP, "NodeSet"), programs, ours("batch", "CronJob"), ours("", "Pod"), slurm_nodes)
