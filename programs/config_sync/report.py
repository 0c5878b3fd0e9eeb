"""Serves what the sidecar knows of the files, as JSON over HTTP: GET /files. Also since when slurmctld has its keys.

It names files by their content (slurm/files.py). It has no secret: slurmctld's messages are about files that every node has.
"""

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from names import ports
from slurm import web
from slurm.listen import Bounds, InThread, Listener

from . import copies

_BOUNDS = Bounds(clients=128, per_address=8, answer_s=10)
WAITING = "waiting"
"""slurmctld may not take the files yet."""
REFUSED = "refused"
"""slurmctld runs with the files before, as it refuses these."""
SPREADING = "spreading"
"""slurmctld has taken the files; slurmds take them now."""
BEHIND = "slurmds-behind"
"""Some slurmds that answer should have had the files long ago."""
LIVE = "live"
"""slurmctld and each slurmd that answers have the files."""


def find_keys(claim: Path = copies.CLAIM) -> dict[str, float]:
    """Since when slurmctld has its keys, in seconds since 1970. programs/slurmctld leaves a file for each new one."""
    since: dict[str, float] = {}
    for name in ("munge", "jwt"):
        with contextlib.suppress(OSError):
            since[name] = (claim / f"conf.{name}-key").stat().st_mtime
    return since


@dataclass(frozen=True)
class Report:
    """How far files have come."""

    files: str = ""
    """The hash of their content; empty before the first look."""
    state: str = WAITING
    message: str = "the sidecar has just started"
    held: str = ""
    """Nodes that keep the size that slurmctld has of them until no job can be on them, as a hostlist."""


class Desk:
    """Holds the latest report, and serves it."""

    def __init__(self) -> None:
        self.report = Report()

    def serve(self, port: int = ports.CONFIG_SYNC) -> InThread:
        """In a thread that ends with the program. Raises OSError when the port is taken."""
        return InThread((self.listener(), port))

    def listener(self, bounds: Bounds = _BOUNDS) -> Listener:
        return web.gives({"/files": self._files}, bounds)

    def _files(self) -> web.Answer:
        return web.Answer(json.dumps({**asdict(self.report), "keys": find_keys()}).encode(), "application/json")
