"""How the two tasks of a job find each other without MPI: one listens, the other one connects. Standard library only.

Both try the same few TCP ports, which follow from a secret of the step: anybody on the cluster's network may try to come in the other
task's place, and is turned away.
"""

import contextlib
import json
import random
import socket
import time
from typing import Any

MEETING = "SLIPWAY_MEETING"
"""The environment variable with the secret, which each job gets on its standard input."""
MEETS_S = 30.0
_PAUSE_S = 0.1
_SAYS_S = 1.0
"""How long a task takes to say its token. Somebody else's listener may be silent for ever."""
_LONGEST = 65536


class Line:
    """A connection between the tasks: one JSON object a line."""

    def __init__(self, connection: socket.socket, within_s: float) -> None:
        """`within_s` is how long a line may take to come."""
        connection.settimeout(within_s)
        self._connection = connection
        self._file = connection.makefile("r", encoding="utf-8", errors="replace")

    def send(self, **what: Any) -> None:
        """Raises OSError."""
        self._connection.sendall(json.dumps(what).encode() + b"\n")

    def receive(self) -> "dict[str, Any]":
        """Raises OSError where the other task is silent, gone, or says something else."""
        try:
            return dict(json.loads(self._file.readline(_LONGEST)))
        except (TypeError, ValueError):
            raise OSError("the other node has ended") from None

    def close(self) -> None:
        self._file.close()
        self._connection.close()


def ports_of(token: str) -> "list[int]":
    """The TCP ports of a step, below those that the kernel hands out."""
    return random.Random(token).sample(range(20000, 32000), 8)  # noqa: S311 - the token is the secret, and these only follow from it


def listen(number: int) -> socket.socket:
    """Raises OSError where the port is taken. 0 is any free one."""
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", number), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", number))


def wait_for_other(token: str, within_s: float, meets_s: float = MEETS_S) -> Line:
    """The side that listens. Raises OSError where nobody comes within `meets_s`."""
    end = time.monotonic() + meets_s
    with _first_free(token) as server:
        while (left := end - time.monotonic()) > 0:
            server.settimeout(left)
            connection, _ = server.accept()
            line = Line(connection, _SAYS_S)
            with contextlib.suppress(OSError):
                if line.receive().get("token") == token:
                    line.send(token=token)
                    connection.settimeout(within_s)
                    return line
            line.close()
    raise OSError(f"nobody came within {meets_s:.0f} s")


def _first_free(token: str) -> socket.socket:
    for number in ports_of(token):
        with contextlib.suppress(OSError):
            return listen(number)
    raise OSError("no free port to meet at")


def go_to_other(host: str, token: str, within_s: float, meets_s: float = MEETS_S) -> Line:
    """The side that connects. Raises OSError where nobody of this step answers within `meets_s`."""
    end = time.monotonic() + meets_s
    said = "no answer"
    while (left := end - time.monotonic()) > 0:
        for number in ports_of(token):
            try:
                connection = socket.create_connection((host, number), timeout=left)
                line = Line(connection, _SAYS_S)
                with contextlib.suppress(OSError):
                    line.send(token=token)
                    if line.receive().get("token") == token:
                        connection.settimeout(within_s)
                        return line
                line.close()
            except OSError as error:
                said = str(error)
        time.sleep(_PAUSE_S)
    raise OSError(f"{host} did not answer within {meets_s:.0f} s: {said}")
