"""Closes the partitions and nodes that changed files remove, so that no job starts there, and reopens them if slurmctld does not take the
files. Thin: plan decides what to close.
"""

from collections.abc import Callable
from pathlib import Path

from slurm.reasons import SCALE_IN

from . import slurm
from .judgement import Waiting, read_declared, read_going
from .plan import plan_closing, plan_drains, some
from .slurm import Reading, SlurmError


class Closing:
    """The partitions and nodes that are closed for files that slurmctld has not taken yet."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._partitions: set[str] = set()
        self._nodes: list[str] = []

    def note_taken(self) -> None:
        """slurmctld has taken the files: what was closed for them no longer exists."""
        self._partitions.clear()
        self._nodes.clear()

    def close(self, version: Path) -> Reading:
        """Closes what the files remove. Returns the reading by which slurmctld may take them. Raises Waiting."""
        declared = read_declared(version)
        reading, going, obstacles = read_going(declared)
        if not going.nodes and not going.partitions:
            return reading
        try:
            for name in plan_closing(going):
                reading.check_age()
                self._partitions.add(name)
                slurm.close_partition(name)
            reading, going, obstacles = read_going(declared)
            if obstacles:
                raise Waiting(some(obstacles))
            if idle := plan_drains(going):
                reading.check_age()
                self._nodes = idle
                slurm.drain(idle, SCALE_IN)
            reading, _, obstacles = read_going(declared)
            if obstacles:
                raise Waiting(some(obstacles))
        except SlurmError as error:
            self._open_nodes()
            raise Waiting(f"an answer of slurmctld ({error})") from None
        except Waiting:
            self._open_nodes()
            raise
        return reading

    def reopen(self) -> str:
        """Opens what was closed. Returns the partitions that are still closed, as the end of a sentence; "" if there are none."""
        self._open_nodes()
        for name in sorted(self._partitions):
            try:
                slurm.open_partition(name)
                self._partitions.discard(name)
            except SlurmError:
                continue
        return f"; partitions still closed: {some(sorted(self._partitions))}" if self._partitions else ""

    def _open_nodes(self) -> None:
        if self._nodes:
            try:
                slurm.undrain(self._nodes)
                self._nodes = []
            except SlurmError as error:
                self._tell(f"the drain of {some(self._nodes)} is not lifted yet: {error}")
