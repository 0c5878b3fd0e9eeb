"""What programs of controllers/ serve: `/healthz` and `/readyz` to the kubelet on a port of their own, `/metrics` to Prometheus, and pages.

slurm/listen bounds the clients of each port: a flood on one leaves the other to the kubelet.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

from controllers.runtime.environment import ProgramSettings
from slurm import web
from slurm.listen import Bounds, Listener
from slurm.web import Answer, Asked

Check = Callable[[], str]
"""Gives why something is not as it should be, for a person to read; empty when all is well."""
Page = Callable[[Asked], Answer]
Post = Callable[[Asked], Awaitable[Answer]]


def listener(
    pages: Mapping[str, Page] | None = None,
    posts: Mapping[str, Post] | None = None,
    registry: CollectorRegistry = REGISTRY,
    bounds: Bounds | None = None,
) -> Listener:
    """Serves `/metrics`, the `pages`, and `posts`, which take a POST; both by path."""
    metrics = web.shared(lambda: Answer(generate_latest(registry), CONTENT_TYPE_LATEST))
    served: dict[str, Page] = {"/metrics": lambda _: metrics(), **(pages or {})}
    taken = posts or {}

    async def answer(asked: Asked) -> Answer:
        if asked.method == "POST" and asked.path in taken:
            return await taken[asked.path](asked) if asked.body else Answer(b"no body\n", status=HTTPStatus.BAD_REQUEST)
        if asked.method not in ("GET", "HEAD"):
            return web.NOT_ALLOWED
        return served[asked.path](asked) if asked.path in served else web.not_found(served)

    return web.listener(answer, bounds)


def probes(live: Mapping[str, Check], ready: Mapping[str, Check], bounds: Bounds | None = None) -> Listener:
    """For the kubelet. A fault of `live` means that only a restart helps; a fault of `ready`, that the process cannot do its work now."""
    return web.gives({"/healthz": lambda: _judged(live), "/readyz": lambda: _judged(ready)}, bounds)


@asynccontextmanager
async def served(
    settings: ProgramSettings, *, live: Mapping[str, Check], ready: Mapping[str, Check], pages: Mapping[str, Page] | None = None
) -> AsyncGenerator[None]:
    """Serves a program's two ports. Raises OSError if a port is in use."""
    listeners = {probes(live, ready): settings.probe_port, listener(pages): settings.port}
    try:
        for server, port in listeners.items():
            await server.start(port)
        yield
    finally:
        for server in listeners:
            server.close()


def _judged(checks: Mapping[str, Check]) -> Answer:
    faults = {name: fault for name, check in checks.items() if (fault := check())}
    text = "".join(f"{name}: {fault}\n" for name, fault in faults.items()) or "ok\n"
    return Answer(text.encode(), status=HTTPStatus.SERVICE_UNAVAILABLE if faults else HTTPStatus.OK)
