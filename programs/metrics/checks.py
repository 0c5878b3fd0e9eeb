"""Asks the collector of checks beside jobs (programs/node_checks/collect.py), in slurmctld's pod, whether Slurm takes its notes. Thin."""

import json
import socket

from .text import Family

_ANSWER_S = 3


def notes(host: str, port: int) -> bool:
    """True if the collector answers and Slurm takes its notes."""
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_S) as connection:
            connection.sendall(b"status\n")
            return json.loads(connection.makefile().readline())["notes"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def family(is_noted: bool) -> Family:
    """The answer as a metric."""
    return Family("slipway_checks_noted", "Whether what checks beside jobs find is noted in Slurm: 1 or 0.", (), {(): int(is_noted)})
