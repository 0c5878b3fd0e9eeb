import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest
from prometheus_client import CollectorRegistry, Counter

from controllers.runtime import serve

pytestmark = pytest.mark.anyio


@dataclass
class Probed:
    """A server and the faults that it tells."""

    port: int = 0
    live: str = ""
    ready: str = ""
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    async def get(self, path: str, method: str = "GET") -> httpx2.Response:
        async with httpx2.AsyncClient(trust_env=False) as client:
            return await client.request(method, f"http://127.0.0.1:{self.port}{path}")


@asynccontextmanager
async def probed() -> AsyncGenerator[Probed]:
    one = Probed()
    live: dict[str, Callable[[], str]] = {"watch": lambda: one.live}
    ready: dict[str, Callable[[], str]] = {"pods": lambda: one.ready, "fine": lambda: ""}
    server = await serve.start(0, live=live, ready=ready, host="127.0.0.1", registry=one.registry)
    one.port = server.sockets[0].getsockname()[1]
    yield one
    server.close()
    await server.wait_closed()


async def test_probes_tell_what_is_wrong() -> None:
    async with probed() as one:
        assert [(answer.status_code, answer.text) for answer in (await one.get("/healthz"), await one.get("/readyz"))] == [
            (200, "ok\n")
        ] * 2
        one.ready = "not listed yet"
        answer = await one.get("/readyz?verbose")
        assert (answer.status_code, answer.text) == (503, "pods: not listed yet\n")
        assert (await one.get("/healthz")).status_code == 200
        one.live = "silent for 301 s"
        assert (await one.get("/healthz")).text == "watch: silent for 301 s\n"


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
        pytest.param("HEAD", "/healthz", 200, id="head"),
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
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000, id="endless headers"),
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
        assert (await one.get("/healthz")).status_code == 200


async def test_port_that_is_taken_is_an_error() -> None:
    async with probed() as one:
        with pytest.raises(OSError, match="address already in use"):
            await serve.start(one.port, live={}, ready={}, host="127.0.0.1")


async def test_post_reaches_the_path_that_takes_it_and_no_other() -> None:
    taken: list[bytes] = []

    async def take(asked: serve.Asked) -> serve.Answer:
        taken.append(asked.body)
        return serve.Answer(asked.headers.get("authorization", "nobody").encode())

    server = await serve.start(0, live={}, ready={}, host="127.0.0.1", posts={"/steps": take})
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with httpx2.AsyncClient(trust_env=False) as client:
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
