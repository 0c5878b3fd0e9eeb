import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest
from prometheus_client import CollectorRegistry, Counter

from controllers.runtime import serve
from tests.support.patience import patience

pytestmark = pytest.mark.anyio


@dataclass
class Probed:
    """A server and its probes, and the faults that they tell."""

    port: int = 0
    probe_port: int = 0
    live: str = ""
    ready: str = ""
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    async def get(self, path: str, method: str = "GET", port: int = 0) -> httpx2.Response:
        async with httpx2.AsyncClient(trust_env=False, timeout=5 * patience()) as client:
            return await client.request(method, f"http://127.0.0.1:{port or self.port}{path}")

    async def probe(self, path: str) -> httpx2.Response:
        return await self.get(path, port=self.probe_port)


@asynccontextmanager
async def probed() -> AsyncGenerator[Probed]:
    one = Probed()
    live: dict[str, Callable[[], str]] = {"watch": lambda: one.live}
    ready: dict[str, Callable[[], str]] = {"pods": lambda: one.ready, "fine": lambda: ""}
    probes = await serve.probes(live, ready).start(0, "127.0.0.1")
    server = await serve.listener(registry=one.registry).start(0, "127.0.0.1")
    one.port, one.probe_port = server.port, probes.port
    yield one
    server.close()
    probes.close()


async def test_probes_tell_what_is_wrong() -> None:
    async with probed() as one:
        assert [(answer.status_code, answer.text) for answer in (await one.probe("/healthz"), await one.probe("/readyz"))] == [
            (200, "ok\n")
        ] * 2
        one.ready = "not listed yet"
        answer = await one.probe("/readyz?verbose")
        assert (answer.status_code, answer.text) == (503, "pods: not listed yet\n")
        assert (await one.probe("/healthz")).status_code == 200
        one.live = "silent for 301 s"
        assert (await one.probe("/healthz")).text == "watch: silent for 301 s\n"


async def test_metrics_are_given_in_prometheus_format() -> None:
    async with probed() as one:
        Counter("slipway_things", "Things.", registry=one.registry).inc(3)
        answer = await one.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        assert "# HELP slipway_things_total Things.\n" in answer.text
        assert "slipway_things_total 3.0\n" in answer.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/", 404, id="other path"),
        pytest.param("POST", "/metrics", 405, id="other method"),
        pytest.param("HEAD", "/metrics", 200, id="head"),
        pytest.param("GET", "/healthz", 404, id="probes elsewhere"),
    ],
)
async def test_other_requests(method: str, path: str, status: int) -> None:
    async with probed() as one:
        answer = await one.get(path, method)
        assert answer.status_code == status
        assert (answer.text == "") == (method == "HEAD")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"nonsense\r\n\r\n", id="no http"),
        pytest.param(b"GET /healthz", id="half a request"),
        pytest.param(b"", id="nothing"),
    ],
)
async def test_bad_client_does_no_harm(sent: bytes) -> None:
    async with probed() as one:
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(sent)
        writer.write_eof()
        assert b"200" not in await reader.read()
        writer.close()
        assert (await one.probe("/healthz")).status_code == 200


async def test_port_that_is_taken_is_an_error() -> None:
    async with probed() as one:
        with pytest.raises(OSError, match="Address already in use"):
            await serve.listener().start(one.port, "127.0.0.1")


async def test_post_reaches_the_path_that_takes_it_and_no_other() -> None:
    taken: list[bytes] = []

    async def take(asked: serve.Asked) -> serve.Answer:
        taken.append(asked.body)
        return serve.Answer(asked.headers.get("authorization", "nobody").encode())

    server = await serve.listener(posts={"/steps": take}).start(0, "127.0.0.1")
    url = f"http://127.0.0.1:{server.port}"
    async with httpx2.AsyncClient(trust_env=False, timeout=5 * patience()) as client:
        answer = await client.post(f"{url}/steps", json={"step": 1}, headers={"Authorization": "Bearer x"})
        assert (answer.status_code, answer.text) == (200, "Bearer x")
        refused = [
            (await client.post(f"{url}/other", json={})).status_code,
            (await client.get(f"{url}/steps")).status_code,
            (await client.post(f"{url}/steps")).status_code,
            (await client.post(f"{url}/steps", content=b"x" * 20_000)).status_code,
        ]
    assert (refused, taken) == ([405, 404, 400, 400], [b'{"step":1}'])
    server.close()
