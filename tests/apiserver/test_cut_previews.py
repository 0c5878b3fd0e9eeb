"""A preview during which the cluster stops answering: it goes on without the cluster and says so, or fails where it must have one."""

import json
import selectors
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.apiserver.server import ApiServer
from tests.support.apiserver.verbs import Verbs


@contextmanager
def cut_after(url: str, most_bytes: int) -> Generator[int]:
    """The port of a relay to an API server that hangs up on everybody, for good, once the server has sent so many bytes."""
    target = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = threading.Thread(target=_relay, args=(listener, (str(target.hostname), int(target.port or 443)), most_bytes), daemon=True)
        relay.start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        relay.join(10)


def _relay(listener: socket.socket, target: tuple[str, int], most_bytes: int) -> None:
    """Copies in both directions until the server has sent its share."""
    ways: dict[socket.socket, tuple[socket.socket, bool]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        while most_bytes > 0:
            for key, _ in selector.select():
                if key.fileobj is listener:
                    try:
                        client, _ = listener.accept()
                    except OSError:
                        most_bytes = 0
                        break
                    server = socket.create_connection(target)
                    ways |= {client: (server, False), server: (client, True)}
                    for each in (client, server):
                        selector.register(each, selectors.EVENT_READ)
                    continue
                source = next(each for each in ways if each is key.fileobj)
                sink, is_server = ways[source]
                with suppress(OSError):
                    data = source.recv(4096)
                    sink.sendall(data)
                    if data:
                        most_bytes -= len(data) if is_server else 0
                        continue
                for each in (source, sink):
                    selector.unregister(each)
                    each.close()
                    del ways[each]
    listener.close()
    for each in ways:
        each.close()


def through(server: ApiServer, port: int, folder: Path) -> str:
    """A kubeconfig whose cluster is the relay."""
    config = json.loads(server.kubeconfig().read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    file = folder / "cut.kubeconfig"
    file.write_text(json.dumps(config))
    return str(file)


# The server's greeting alone is 2 kB, the kinds that it knows 60 kB.
CUTS = [pytest.param(1_000, id="greeting"), pytest.param(6_000, id="kinds"), pytest.param(30_000, id="objects")]


@pytest.mark.parametrize("most_bytes", CUTS)
def test_preview_goes_on_without_a_cluster_that_stops_answering(server: ApiServer, small: Verbs, tmp_path: Path, most_bytes: int) -> None:
    with cut_after(server.url, most_bytes) as port:
        said = small.run("preview", "--kubeconfig", through(server, port, tmp_path), "--exit-code", code=2)
    assert "No cluster answers at" in said
    assert "compared with nothing: no plan is saved yet" in said


@pytest.mark.parametrize("most_bytes", CUTS)
def test_preview_that_must_have_the_cluster_fails(server: ApiServer, small: Verbs, tmp_path: Path, most_bytes: int) -> None:
    with cut_after(server.url, most_bytes) as port:
        said = small.run("preview", "--kubeconfig", through(server, port, tmp_path), "--require-cluster", code=1)
    assert "No cluster answers at" in said
