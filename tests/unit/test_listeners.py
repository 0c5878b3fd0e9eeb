"""Every listener of our programs, while somebody drips, floods and holds it: a client that says what it wants is served, from another
address and from the same one. Deadlines are far away here, so it is served by the bounds alone. tests/unit/slurm/test_listen.py has these.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from controllers.runtime import serve
from programs.config_sync.report import Desk
from programs.metrics.readings import Readings
from programs.metrics.run import listener as metrics
from programs.node_checks.collect import Collector, Waiting
from programs.node_checks.collect import listener as checks
from programs.running_jobs.run import listener as running_jobs
from programs.worker.gpu_metrics import Exporter
from programs.worker.gpu_metrics import listener as gpu_metrics
from slurm import web
from slurm.listen import Bounds, InThread, Listener
from tests.support.patience import patience
from tests.support.programs.node_checks.fake import FakeSlurm

BOUNDS = Bounds(clients=24, per_address=6, request_s=600, answer_s=600)
DEADLINE_S = 10
GET = "GET {} HTTP/1.1\r\nHost: a\r\nX-SLURM-USER-TOKEN: a.b.c\r\n\r\n"


def collector(bounds: Bounds) -> Listener:
    return checks(Collector(FakeSlurm({}, {}), lambda _: None), Waiting(), lambda _: None, lambda line: (0, line), bounds)


LISTENERS: dict[str, tuple[Callable[[Bounds], Listener], str, str]] = {
    "running-jobs": (
        lambda bounds: running_jobs(bounds, lambda path, token: (200, {"jobs": [path, token]})),
        GET.format("/jobs/"),
        "a.b.c",
    ),
    "config-sync": (lambda bounds: Desk().listener(bounds), GET.format("/files"), "has just started"),
    "checks": (collector, "status\n", '{"notes": true}'),
    "metrics": (lambda bounds: metrics(Readings(("nodes",), 0), bounds), GET.format("/metrics"), "slipway_slurm_up 0"),
    "gpu-metrics": (lambda bounds: gpu_metrics(Exporter("h100", 1), bounds), GET.format("/metrics"), "DCGM_FI_DEV_GPU_UTIL"),
    "programs-probes": (web.healthy, GET.format("/healthz"), "ok"),
    "controllers": (lambda bounds: serve.listener(bounds=bounds), GET.format("/metrics"), "python_info"),
    "controllers-probes": (lambda bounds: serve.probes({}, {"a": lambda: "not yet"}, bounds), GET.format("/readyz"), "a: not yet"),
}
"""How each is made, a request, and what is in the answer."""


class Attacker:
    """Holds connections from its addresses."""

    def __init__(self, port: int, addresses: list[str], request: bytes) -> None:
        self.port, self.addresses, self.request = port, addresses, request
        self.held: list[socket.socket] = []

    def connect(self, times: int = 2 * BOUNDS.per_address, says: bytes = b"", ends: bool = False) -> None:
        """So often from each address, more than it may hold."""
        for address in self.addresses * times:
            with contextlib.suppress(ConnectionError):  # it may be dropped already
                made = socket.create_connection(("127.0.0.1", self.port), DEADLINE_S * patience(), source_address=(address, 0))
                self.held.append(made)
                made.sendall(says)
                if ends:
                    made.shutdown(socket.SHUT_WR)

    def say(self, byte: bytes) -> None:
        for each in self.held:
            with contextlib.suppress(ConnectionError):
                each.sendall(byte)

    def close(self) -> None:
        for each in self.held:
            each.close()


def hold(attacker: Attacker) -> Generator[None]:
    attacker.connect()
    yield


def drip(attacker: Attacker) -> Generator[None]:
    """A byte each, of a request that is never whole, before each question of the others."""
    attacker.connect()
    for number in range(len(attacker.request) - 1):
        attacker.say(attacker.request[number : number + 1])
        yield


def flood(attacker: Attacker) -> Generator[None]:
    """Connects without end."""
    stop = threading.Event()

    def connect() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                attacker.connect(1)
            attacker.held, dropped = attacker.held[-200:], attacker.held[:-200]
            for each in dropped:
                each.close()

    thread = threading.Thread(target=connect)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def huge_header(attacker: Attacker) -> Generator[None]:
    attacker.connect(says=b"GET / HTTP/1.1\r\nA: " + b"a" * (1 << 19))
    yield


def half_closed(attacker: Attacker) -> Generator[None]:
    attacker.connect(says=b"GET /", ends=True)
    yield


def unread(attacker: Attacker) -> Generator[None]:
    """Asks as everybody does, and does not read."""
    attacker.connect(says=attacker.request)
    yield


@pytest.fixture(params=LISTENERS)
def served(request: pytest.FixtureRequest) -> Generator[tuple[int, bytes, str]]:
    """Port, request and answer of each listener."""
    make, asked, answer = LISTENERS[request.param]
    serving = InThread((make(BOUNDS), 0))
    yield serving.ports[0], asked.encode(), answer
    serving.close()


@pytest.mark.parametrize("addresses", [pytest.param(1, id="one-address"), pytest.param(12, id="twelve-addresses")])
@pytest.mark.parametrize("attack", [hold, drip, flood, huge_header, half_closed, unread])
def test_client_is_served_beside(served: tuple[int, bytes, str], attack: Callable[[Attacker], Generator[None]], addresses: int) -> None:
    port, request, answer = served
    attacker = Attacker(port, [f"127.0.1.{number}" for number in range(1, addresses + 1)], request)
    running = attack(attacker)
    try:
        for client in ("127.0.0.1", "127.0.0.1", attacker.addresses[0]):
            next(running, None)
            assert answer in ask(port, client, request)
    finally:
        running.close()
        attacker.close()


def ask(port: int, address: str, request: bytes) -> str:
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S * patience(), source_address=(address, 0)) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile(newline="").read()


def test_every_program_that_listens_is_in_the_table() -> None:
    """None opens a server in another way; the exceptions say why."""
    root = Path(__file__).parents[2]
    words = ("http.server", "socketserver", "create_server", "start_server", ".listen(")
    exceptions = {
        "programs/node_checks/meeting.py",  # two tasks of one job meet there for seconds
    }
    files = [path for package in ("controllers", "programs", "slurm") for path in (root / package).rglob("*.py")]
    found = {str(path.relative_to(root)) for path in files if any(word in path.read_text() for word in words)}
    assert found == {"slurm/listen.py", *exceptions}
