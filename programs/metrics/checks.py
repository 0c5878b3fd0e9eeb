"""Whether what health checks beside jobs find is noted: asks their collector (programs/node_checks/collect.py) in slurmctld's pod. Thin."""

import json
import socket

from .text import Family

_ANSWER_S = 3


def notes(host: str, port: int) -> bool:
    """True when the collector answers, and Slurm takes what it notes."""
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_S) as connection:
            connection.sendall(b"status\n")
            return json.loads(connection.makefile().readline())["notes"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def family(is_noted: bool) -> Family:
    """The answer as a metric."""
    return Family("slipway_checks_noted", "Whether what checks beside jobs find is noted in Slurm: 1 or 0.", (), {(): int(is_noted)})
