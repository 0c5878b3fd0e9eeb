"""How the two tasks of a job find each other without MPI: one listens, the other connects. Standard library only.

Both try the same few TCP ports, which follow from a secret of the step. Strangers who connect are turned away.
"""

import contextlib
import json
import random
import select
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
_MOST_STRANGERS = 64
"""That are listened to at once; the oldest goes first."""


class Line:
    """A connection between the tasks: one JSON object a line."""

    def __init__(self, connection: socket.socket, within_s: float) -> None:
        """`within_s` is how long a line may take to come."""
        self._connection = connection
        self._within_s = within_s
        self._said = b""

    def send(self, **what: Any) -> None:
        """Raises OSError."""
        self._connection.settimeout(self._within_s)
        self._connection.sendall(json.dumps(what).encode() + b"\n")

    def receive(self) -> "dict[str, Any]":
        """Raises OSError if the other task is silent, gone, or sends something else."""
        end = time.monotonic() + self._within_s
        while (message := self._read_line()) is None:
            self._connection.settimeout(max(0.001, end - time.monotonic()))  # a byte now and then does not renew it
            self._hear()
        return message

    def hear(self, token: str) -> "bool | None":
        """Reads from a task that has sent something: whether it is of this step; None while its line is incomplete. Raises OSError."""
        self._connection.settimeout(0.001)
        self._hear()
        message = self._read_line()
        return None if message is None else message.get("token") == token

    def _hear(self) -> None:
        piece = self._connection.recv(_LONGEST)
        self._said += piece
        if not piece or len(self._said) > _LONGEST:
            raise OSError("the other node has ended")

    def _read_line(self) -> "dict[str, Any] | None":
        line, end, remainder = self._said.partition(b"\n")
        if not end:
            return None
        self._said = remainder
        try:
            return dict(json.loads(line.decode("utf-8", "replace")))
        except (TypeError, ValueError):
            raise OSError("the other node has ended") from None

    def let(self, within_s: float) -> "Line":
        """The same line, with another deadline."""
        self._within_s = within_s
        return self

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()


def ports_of(token: str) -> "list[int]":
    """The TCP ports of a step, below those that the kernel hands out."""
    return random.Random(token).sample(range(20000, 32000), 8)  # noqa: S311 - the token is the secret, and these only follow from it


def listen(number: int) -> socket.socket:
    """Raises OSError if the port is taken. 0 is any free one."""
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", number), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", number))


def wait_for_other(token: str, within_s: float, meets_s: float = MEETS_S) -> Line:
    """The side that listens. Raises OSError if nobody comes within `meets_s`."""
    end = time.monotonic() + meets_s
    strangers: dict[Line, float] = {}
    with _first_free(token) as server:
        server.settimeout(_SAYS_S)
        try:
            while (left := end - time.monotonic()) > 0:
                for ready in select.select([server, *strangers], [], [], min(left, _SAYS_S))[0]:
                    if not isinstance(ready, Line):
                        with contextlib.suppress(OSError):  # it may have left already
                            strangers[Line(server.accept()[0], _SAYS_S)] = time.monotonic() + _SAYS_S
                    elif _is_other(ready, token):
                        del strangers[ready]
                        return ready.let(within_s)
                for line in _late(strangers):
                    del strangers[line]
                    line.close()
        finally:
            for line in strangers:
                line.close()
    raise OSError(f"nobody came within {meets_s:.0f} s")


def _is_other(line: Line, token: str) -> bool:
    """True for the other task of this step, which is answered then. A stranger's line is closed."""
    try:
        is_other = line.hear(token)
        if is_other:
            line.send(token=token)
        elif is_other is not None:
            line.close()
    except OSError:
        line.close()
        return False
    return bool(is_other)


def _late(strangers: "dict[Line, float]") -> "list[Line]":
    """Lines that are closed, have sent no token in time, or are too many."""
    now = time.monotonic()
    return [*strangers][: max(0, len(strangers) - _MOST_STRANGERS)] + [
        line for line, until in [*strangers.items()][-_MOST_STRANGERS:] if line.fileno() < 0 or until < now
    ]


def _first_free(token: str) -> socket.socket:
    for number in ports_of(token):
        with contextlib.suppress(OSError):
            return listen(number)
    raise OSError("no free port to meet at")


def go_to_other(host: str, token: str, within_s: float, meets_s: float = MEETS_S) -> Line:
    """The side that connects. Raises OSError if nobody of this step answers within `meets_s`."""
    end = time.monotonic() + meets_s
    reason = "no answer"
    while (left := end - time.monotonic()) > 0:
        for number in ports_of(token):
            try:
                connection = socket.create_connection((host, number), timeout=left)
                line = Line(connection, _SAYS_S)
                with contextlib.suppress(OSError):
                    line.send(token=token)
                    if line.receive().get("token") == token:
                        return line.let(within_s)
                line.close()
            except OSError as error:
                reason = str(error)
        time.sleep(_PAUSE_S)
    raise OSError(f"{host} did not answer within {meets_s:.0f} s: {reason}")
