"""Holds slurmd's port, so that no job takes it while slurmd is down. Jobs share the pod's network, and the port is open to all users.

The socket is bound and never listens: who connects is refused, as without it. slurmd shares the port by SO_REUSEPORT, which Linux allows to
sockets of one user alone (measured on 6.18); images/slurm/root/bcast.c sets that for slurmd.
"""

import contextlib
import socket

from names import ports

_MARK = b"slipway_held_port"


def hold(preload: str, port: int = ports.SLURMD) -> socket.socket | None:
    """The socket, which holds the port while it is open. None where slurmd could not share it, as its preloaded file is older, and where
    somebody has the port already."""
    with contextlib.suppress(OSError):
        with open(preload, "rb") as file:
            if _MARK not in file.read():
                return None
        held = socket.socket(socket.AF_INET6)
        try:
            held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind(("::", port))
        except OSError:
            held.close()
            raise
        return held
    return None
