"""Deletes sets that are no longer declared, for a deployer that cannot wait for their jobs: the Pulumi CLI.

The CLI's Kubernetes provider waits until each object that it deletes is gone, and a drain may delay that for weeks. So the CLI forgets a
set without deleting it, and takes its name off a list (a ConfigMap). Deleting the list, as `destroy` does, waits: the list keeps a
finalizer as long as a set names it. So slurmctld and this controller, which are deleted after the list, outlive the sets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import structlog

from controllers.nodeset.structs import NODESETS, NodeSetObject
from controllers.runtime.api import Api
from controllers.runtime.clock import Clock
from controllers.runtime.errors import ApiError, Conflict, NotFound
from controllers.runtime.informer import Informer
from controllers.runtime.structs import CONFIG_MAPS, ConfigMap, Key
from controllers.runtime.writer import Deletion, Writer
from names import annotations, finalizers

LOOK_S = 1.0
AGAIN_S = 10.0
"""Seconds until the next try after an error."""

log = structlog.get_logger()


@dataclass(frozen=True)
class DeclaredPlan:
    """Sets to delete, and lists whose deletion may end."""

    delete: tuple[NodeSetObject, ...] = ()
    release: tuple[ConfigMap, ...] = ()


def is_undeclared(nodeset: NodeSetObject, declared: ConfigMap) -> bool:
    """True when the list is being deleted, or does not name the set."""
    return declared.metadata.deletion_timestamp is not None or nodeset.metadata.name not in declared.data


def plan_declared(nodesets: Iterable[NodeSetObject], lists: Mapping[Key, ConfigMap]) -> DeclaredPlan:
    """Which sets and lists go. A list that does not exist says nothing about its sets."""
    delete: list[NodeSetObject] = []
    named: set[Key] = set()
    for nodeset in nodesets:
        key = list_of(nodeset)
        if key is None:
            continue
        named.add(key)
        if nodeset.metadata.deletion_timestamp is None and key in lists and is_undeclared(nodeset, lists[key]):
            delete.append(nodeset)
    ending = (declared for declared in lists.values() if declared.metadata.deletion_timestamp is not None)
    unnamed = (item for item in ending if item.metadata.key not in named and finalizers.NODE_SETS in item.metadata.finalizers)
    return DeclaredPlan(tuple(delete), tuple(unnamed))


def list_of(nodeset: NodeSetObject) -> Key | None:
    """The list that a set names."""
    name = nodeset.metadata.annotations.get(annotations.DECLARED_IN)
    return (nodeset.metadata.namespace, name) if name else None


class DeclaredSets:
    """Deletes undeclared sets and releases lists, as the informers show them. Before a set is deleted, its list is read again."""

    def __init__(self, nodesets: Informer[NodeSetObject], lists: Informer[ConfigMap], api: Api, writer: Writer, clock: Clock) -> None:
        self._nodesets, self._lists, self._api, self._writer, self._clock = nodesets, lists, api, writer, clock

    async def run(self) -> None:
        """Looks every LOOK_S, for ever."""
        await self._nodesets.synced.wait()
        await self._lists.synced.wait()
        while True:
            try:
                await self.look()
            except ApiError as error:
                log.warning("sets that are no longer declared could not be deleted", error=str(error))
                await self._clock.sleep(AGAIN_S)
            await self._clock.sleep(LOOK_S)

    async def look(self) -> None:
        """Deletes and releases what is due. Raises ApiError."""
        lists = {declared.metadata.key: declared for declared in self._lists.store.values()}
        plan = plan_declared(self._nodesets.store.values(), lists)
        for nodeset in plan.delete:
            await self._delete(nodeset)
        for declared in plan.release:
            left = [finalizer for finalizer in declared.metadata.finalizers if finalizer != finalizers.NODE_SETS]
            change = {"metadata": {"finalizers": left or None, "resourceVersion": declared.metadata.resource_version}}
            try:
                await self._writer.patch(CONFIG_MAPS, declared.metadata.key, change)
            except (Conflict, NotFound):
                continue
            log.info("all sets of the list are gone", list=declared.metadata.name)

    async def _delete(self, nodeset: NodeSetObject) -> None:
        """The set may be newer than the informer's copy of its list, so the list is read first."""
        key = list_of(nodeset)
        if key is None:
            return
        try:
            if not is_undeclared(nodeset, await self._api.get(CONFIG_MAPS, *key)):
                return
            # A set that has changed meanwhile may be declared in another way by now: its newer version is looked at next.
            about = nodeset.metadata
            await self._writer.delete(NODESETS, Deletion(about.key, about.uid, version=about.resource_version))
        except (Conflict, NotFound):
            return
        log.info("deleting a set that is no longer declared; its nodes are drained first", nodeset=nodeset.metadata.name)
