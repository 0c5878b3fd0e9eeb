"""The page as its pod serves it, on loopback, beside an API server and a Slurm that a test writes: for tests with a real browser."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from controllers.nodeset.structs import NODESETS, SLURM_NODES
from controllers.page.history import Point, dump
from controllers.page.program import StatusPage
from controllers.page.settings import Settings
from controllers.runtime import serve
from controllers.runtime.api import connect
from controllers.runtime.clock import Clock
from controllers.slurm.client import SlurmClient
from controllers.slurm.tokens import TokenSource
from tests.support.controllers.page.examples import NOW, cluster, day, node_set, queue
from tests.support.controllers.slurm.fake_rest import FakeRest
from tests.support.fakes.kubernetes import FakeKubernetes, ResourceLike
from tests.support.patience import patience

T = TypeVar("T")


@dataclass
class Served:
    """A page with all that it asks."""

    page: StatusPage
    kubernetes: FakeKubernetes
    slurm: FakeRest
    url: str = ""
    loop: asyncio.AbstractEventLoop | None = None
    thread: int = 0
    later_s: float = 0.0
    """How far the page's clock is ahead of when it started."""

    def put_nodes(self, rows: Sequence[dict[str, str]], objects: Sequence[dict[str, Any]] = ()) -> None:
        """What Slurm lists, and SlurmNodes."""
        self.slurm.answers["/nodes/"] = (200, {"nodes": list(rows), "errors": []})
        for each in objects:
            self.put(SLURM_NODES, each)

    def put(self, resource: ResourceLike, manifest: dict[str, Any]) -> None:
        """An object, from whatever thread: the API server belongs to the loop's."""
        assert self.loop is not None
        if threading.get_ident() == self.thread:
            self.kubernetes.put(resource, manifest)
            return

        async def put() -> None:
            self.kubernetes.put(resource, manifest)

        asyncio.run_coroutine_threadsafe(put(), self.loop).result(30 * patience())

    def put_jobs(self, rows: Sequence[dict[str, str]]) -> None:
        """What squeue lists."""
        self.slurm.answers["/queue/"] = (200, {"jobs": list(rows), "errors": []})

    def silence(self, why: str = "squeue: Unable to contact slurm controller") -> None:
        """Slurm answers no more."""
        fault = {"errors": [{"description": why, "error_number": 0, "error": "running-jobs"}]}
        self.slurm.answers |= {"/nodes/": (502, fault), "/queue/": (502, fault)}

    def read(self) -> None:
        """Has the page read now, and waits for it. From the test's thread."""
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(self.page.read(), self.loop).result(30 * patience())

    def when_told(self, is_so: Callable[[StatusPage], bool]) -> None:
        """Waits until the page's informers know that. From the test's thread."""
        assert self.loop is not None

        async def wait() -> None:
            while not is_so(self.page):
                await asyncio.sleep(0.01)

        asyncio.run_coroutine_threadsafe(asyncio.wait_for(wait(), 30 * patience()), self.loop).result(60 * patience())


@asynccontextmanager
async def serving(folder: Path, hidden: frozenset[str] = frozenset(), history: Sequence[Point] = ()) -> AsyncGenerator[Served]:
    """A page without any node or job, at `url`."""
    key = folder / "key"
    key.write_bytes(b"a key of thirty-two bytes or so...")
    (folder / "history.json").write_text(dump(history))
    began = time.monotonic()
    slurm = FakeRest(answers={"/nodes/": (200, {"nodes": [], "errors": []}), "/queue/": (200, {"jobs": [], "errors": []})})
    rest = await asyncio.start_server(slurm.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{rest.sockets[0].getsockname()[1]}"
    async with FakeKubernetes() as kubernetes:
        api = connect(kubernetes.config())
        async with SlurmClient(url, TokenSource(key, time.time), deadline_s=10 * patience(), jobs_url=url) as client:
            clock = Clock(wall=lambda: NOW + time.monotonic() - began + served.later_s)
            settings = Settings(
                cluster="dev", namespace="slurm", slurmrestd=url, jwt_key=key, history=folder / "history.json", hidden=hidden
            )
            served = Served(StatusPage.__new__(StatusPage), kubernetes, slurm)
            served.page.__init__(settings, api, client, clock)
            server = await serve.listener(pages=served.page.site.pages).start(0, "127.0.0.1")
            served.url = f"http://127.0.0.1:{server.port}/"
            served.loop, served.thread = asyncio.get_running_loop(), threading.get_ident()
            following = [asyncio.create_task(each.run()) for each in (served.page.node_sets, served.page.slurm_nodes)]
            yield served
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
            server.close()
        await api.close()
    rest.close()


@contextmanager
def in_thread(folder: Path, hidden: frozenset[str] = frozenset(), history: Sequence[Point] = ()) -> Generator[Served]:
    """The same in a thread of its own, for tests that wait for a browser."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(60 * patience())

    manager = serving(folder, hidden, history)
    served = run(manager.__aenter__())
    try:
        yield served
    finally:
        run(manager.__aexit__(None, None, None))
        run(_end_all())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10 * patience())
        loop.close()


def _ignore(*_: object) -> None:
    pass


async def _end_all() -> None:
    """Connections that a browser or a client has kept open. Python 3.11 reports each that is cancelled."""
    asyncio.get_running_loop().set_exception_handler(_ignore)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@contextmanager
def example(folder: Path, size: int, jobs: int = 240) -> Generator[Served]:
    """A page of a cluster of that many nodes, with a day behind it."""
    with in_thread(folder, history=day(nodes=size)) as served:
        rows, objects = cluster(size)
        served.put_nodes(rows, objects)
        served.put_jobs(queue(jobs))
        for name in ("cpu", "gpu"):
            served.put(NODESETS, node_set(name, sum(row["NodeList"].startswith(name) for row in rows)))
        served.when_told(lambda page: len(page.slurm_nodes.store) == len(objects) and len(page.node_sets.store) == 2)
        served.read()
        yield served
