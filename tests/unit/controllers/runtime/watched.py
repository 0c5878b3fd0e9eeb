"""An informer, and what it has told."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from controllers.runtime.api import Api
from controllers.runtime.informer import Informer, Pace
from controllers.runtime.structs import PODS, Pod
from tests.support.fakes.kubernetes import FakeKubernetes

QUICK = Pace(page_size=2, backoff_base_s=0.001, backoff_most_s=0.01)


class Watched:
    """An informer of pods and what its handler heard: `+name`, `~name`, `-name`."""

    def __init__(self, api: Api, pace: Pace = QUICK, **options: Any) -> None:
        self.heard: list[str] = []
        self.informer = Informer(api, PODS, pace=pace, **options)
        self.informer.on_change(self._hear)

    def _hear(self, old: Pod | None, new: Pod | None) -> None:
        one = new or old
        assert one is not None
        self.heard.append(("~" if old and new else "+" if new else "-") + one.metadata.name)

    @property
    def names(self) -> set[str]:
        return {item.metadata.name for item in self.informer.store.values()}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Watched"]:
        task = asyncio.create_task(self.informer.run())
        try:
            yield self
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.wait([task])


def phase_of(item: Pod) -> list[str]:
    """Another."""
    return [item.status.phase]


def agrees(watched: Watched, server: FakeKubernetes) -> Callable[[], bool]:
    """That the copy is what the server has."""

    def versions() -> bool:
        held = {item.metadata.key: item.metadata.resource_version for item in watched.informer.store.values()}
        return held == {key: server.get(PODS, key)["metadata"]["resourceVersion"] for key in server.keys(PODS)}

    return versions
