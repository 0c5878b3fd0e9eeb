"""slurmd's port is held: nobody connects, no user takes it, and root's slurmd shares it. Real sockets."""

import os
import socket
from pathlib import Path

import pytest

from programs.worker.port import hold

USER = 10001


def free_port() -> int:
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::", 0))
        return probe.getsockname()[1]


def takes(port: int, user: int, *options: int, address: str = "::") -> bool:
    """True if a process of the user can bind the port."""
    child = os.fork()
    if not child:
        os.setuid(user)
        try:
            taken = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
            for option in options:
                taken.setsockopt(socket.SOL_SOCKET, option, 1)
            taken.bind((address, port))
            taken.listen()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def preload(tmp_path: Path) -> str:
    file = tmp_path / "slurmd_bcast.so"
    file.write_bytes(b"\x7fELF slipway_held_port ")
    return str(file)


@pytest.mark.parametrize("address", ["::", "::1", "0.0.0.0", "127.0.0.1"])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="plain"),
        pytest.param((socket.SO_REUSEADDR,), id="reuse-address"),
        pytest.param((socket.SO_REUSEADDR, socket.SO_REUSEPORT), id="reuse-port"),
    ],
)
def test_no_user_takes_a_held_port(preload: str, options: tuple[int, ...], address: str) -> None:
    port = free_port()
    held = hold(preload, port)
    assert held
    with held:
        assert not takes(port, USER, *options, address=address)
    assert takes(port, USER, *options, address=address)


def test_slurmd_shares_a_held_port_and_nobody_connects_without_it(preload: str) -> None:
    port = free_port()
    held = hold(preload, port)
    assert held
    with held:
        assert takes(port, 0, socket.SO_REUSEADDR, socket.SO_REUSEPORT)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)


def test_port_is_not_held_where_slurmd_could_not_share_it(tmp_path: Path) -> None:
    older = tmp_path / "slurmd_bcast.so"
    older.write_bytes(b"\x7fELF")
    assert hold(str(older), free_port()) is None
    assert hold(str(tmp_path / "gone"), free_port()) is None
