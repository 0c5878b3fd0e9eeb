"""Reads Slurm every few seconds while somebody looks, once a minute otherwise, and hands each reading to the site. Thin.

A failed reading leaves the last one with its age and reason. Lists come from the program beside slurmrestd, causes from SlurmNode objects.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import structlog

from controllers.nodeset.structs import NODESETS, SLURM_NODES, NodeSetObject, SlurmNode
from controllers.page.history import EVERY_S, Point, dump, load, with_point
from controllers.page.settings import Settings
from controllers.page.site import Site
from controllers.page.snapshot import Reading, Readings, build, jobs_of, read_jobs, read_nodes, use
from controllers.runtime.api import Api
from controllers.runtime.clock import SYSTEM, Clock
from controllers.runtime.informer import Informer
from controllers.slurm.client import SlurmClient, SlurmError
from names import labels

LOOKED_S = 30.0
"""Seconds after a request for data during which somebody counts as looking."""
OFTEN_S = 5.0
T = TypeVar("T")
log = structlog.get_logger()


class StatusPage:
    """The readings of one cluster, and the site that shows them."""

    def __init__(self, settings: Settings, api: Api, slurm: SlurmClient, clock: Clock = SYSTEM) -> None:
        self._settings, self._slurm, self._clock = settings, slurm, clock
        self._readings = Readings()
        self._history: tuple[Point, ...] = load(_text(settings.history))
        self._looked_at = -LOOKED_S
        self._is_wanted = asyncio.Event()
        self.node_sets: Informer[NodeSetObject] = Informer(api, NODESETS, namespace=settings.namespace, clock=clock)
        self.slurm_nodes: Informer[SlurmNode] = Informer(api, SLURM_NODES, namespace=settings.namespace, clock=clock)
        self.site = Site(lambda user: jobs_of(user, self._readings.jobs.value, settings.hidden), self._look, clock.wall, settings.hosts)
        self._tell()

    async def run(self) -> None:
        """Reads for ever."""
        while True:
            await self.read()
            self._is_wanted.clear()
            if self._clock.now() - self._looked_at < LOOKED_S:
                await self._clock.sleep(OFTEN_S)
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._is_wanted.wait(), EVERY_S)

    async def read(self) -> None:
        """Reads everything once. Lists are read in turn: the program beside slurmrestd makes one at a time for each address."""
        before = self._readings
        nodes = await self._ask(before.nodes, "nodes", read_nodes)
        jobs = await self._ask(before.jobs, "queue", read_jobs)
        self._readings = Readings(nodes, jobs)
        if not nodes.fault and nodes.value:
            self._history = with_point(self._history, use(nodes.value, self._clock.wall()))
            _keep(self._settings.history, dump(self._history))
        self._tell()

    async def tell_often(self) -> None:
        """Causes come from Kubernetes and do not wait for Slurm, which may be silent for a minute before a reading fails."""
        while True:
            await self._clock.sleep(OFTEN_S)
            if self._clock.now() - self._looked_at < LOOKED_S or not self.slurm_nodes.synced.is_set():
                self._tell()

    def _tell(self) -> None:
        readings = Readings(
            self._readings.nodes,
            self._readings.jobs,
            self._heard(),
            [*self.node_sets.store.values()],
            [node for node in self.slurm_nodes.store.values() if self._is_ours(node)],
        )
        self.site.tell(build(self._settings.cluster, readings, self._history, self._settings.hidden))

    def _is_ours(self, node: SlurmNode) -> bool:
        """Two clusters may share a namespace."""
        return node.metadata.labels.get(labels.CLUSTER, self._settings.cluster) == self._settings.cluster

    def _heard(self) -> Reading[None]:
        contacts = [informer.last_contact for informer in (self.node_sets, self.slurm_nodes)]
        if None in contacts or not (self.node_sets.synced.is_set() and self.slurm_nodes.synced.is_set()):
            return Reading(fault="the API server has not listed node sets and their nodes yet")
        return Reading(at=self._clock.wall() - max(informer.silent_s() for informer in (self.node_sets, self.slurm_nodes)))

    async def _ask(
        self, before: Reading[T], what: Literal["nodes", "queue"], understand: Callable[[Iterable[Mapping[str, str]]], T]
    ) -> Reading[T]:
        try:
            listing = await self._slurm.listing(what)
            value = understand(listing.nodes if what == "nodes" else listing.jobs)
        except SlurmError as error:
            fault = str(error)
        except (KeyError, ValueError) as error:
            fault = f"the list of {what} cannot be read: {type(error).__name__}: {error}"
        else:
            return Reading(value, self._clock.wall())
        if fault != before.fault:
            log.warning("Slurm does not answer; the last reading is shown with its age", what=what, fault=fault)
        return Reading(before.value, before.at, fault)

    def _look(self) -> None:
        was_long_ago = self._clock.now() - self._looked_at >= LOOKED_S
        self._looked_at = self._clock.now()
        if was_long_ago:
            self._is_wanted.set()


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, ValueError):
        return ""


def _keep(file: Path, text: str) -> None:
    """Best effort: the last day is in memory, too."""
    with contextlib.suppress(OSError):
        new = file.with_suffix(".new")
        new.write_text(text)
        new.replace(file)


def probes(page: StatusPage, deaf_s: float) -> dict[str, Callable[[], str]]:
    """The faults that make the process unhealthy: an informer that has heard nothing for `deaf_s`. A silent Slurm does not: the page
    reports it.
    """

    def deaf(informer: Informer[Any]) -> Callable[[], str]:
        return lambda: f"nothing heard for {deaf_s:.0f} s" if informer.synced.is_set() and informer.silent_s() > deaf_s else ""

    return {"node sets": deaf(page.node_sets), "Slurm nodes": deaf(page.slurm_nodes)}
