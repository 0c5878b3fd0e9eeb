"""Nodes that keep their size, and the sidecar that delivers their files."""

import itertools
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from programs.config_sync import run, slurm
from programs.config_sync.report import Desk
from programs.config_sync.slurmds import Slurmd
from slurm.commands import SlurmError
from slurm.hostlists import expand
from slurm.states import node_state

CONF = "ClusterName=t\nNodeName=a-[0-2] CPUs={}\nPartitionName=b Nodes=ALL\n"
IDLE, BUSY, DRAINING = "IDLE+CLOUD", "MIXED+CLOUD", "MIXED+CLOUD+DRAIN"
DRAINED, OFF = "IDLE+CLOUD+DRAIN", "IDLE+CLOUD+POWERED_DOWN"


def _expand(hostlists: Iterable[str]) -> frozenset[str]:
    return frozenset(name for text in hostlists for name in expand(text))


class Site:
    """A slurmctld that takes all files, and the sidecar beside it."""

    def __init__(self, claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.claim, self.states = claim, {f"a-{ordinal}": IDLE for ordinal in range(3)}
        self.outcome: SlurmError | None = None
        self.clock = 1000.0
        self._starts = itertools.count(1)
        (claim / "conf.start/slurm.conf").write_text(CONF.format(1))
        self.offer(2)
        monkeypatch.setattr(slurm, "read", self._read)
        monkeypatch.setattr(slurm, "read_slurmds", self._read_slurmds)
        monkeypatch.setattr(slurm, "reconfigure", self._reconfigure)
        monkeypatch.setattr(slurm, "expand", _expand)
        monkeypatch.setattr(time, "monotonic", lambda: self.clock)
        self.start()

    def start(self) -> None:
        """A sidecar that knows nothing of earlier ones."""
        self.desk = Desk()
        self.sync = run.Sync(self.desk)

    def offer(self, cpus: int, more: str = "") -> None:
        (self.claim / "new/slurm.conf").write_text(CONF.format(cpus) + more)

    def attempt(self) -> None:
        self.sync.attempt(self.claim / "new")

    def look(self, seconds: float = 10.0) -> float | None:
        """What the main loop does between two attempts, after so many seconds: the slurmds have taken the files by then."""
        self.clock += seconds
        first = self.sync.look()
        return self.sync.look() if first is None else first

    def cpus(self) -> dict[str, str]:
        """By node, as slurmctld has read it."""
        lines = [line.split() for line in (self.claim / "conf/slurm.conf").read_text().splitlines() if line.startswith("NodeName")]
        return {name: line[1].partition("=")[2] for line in lines for name in expand(line[0].partition("=")[2])}

    def _reconfigure(self) -> None:
        if self.outcome:
            raise self.outcome

    def _read(self) -> slurm.Reading:
        nodes = {name: node_state(state.split("+")) for name, state in self.states.items()}
        return slurm.Reading(nodes, {"b": "UP"}, (), self.clock, dict.fromkeys(self.states, next(self._starts)))

    def _read_slurmds(self) -> dict[str, Slurmd]:
        if self.outcome:
            raise self.outcome
        started = next(self._starts)
        return {name: Slurmd(node_state(state.split("+")), None if "DOWN" in state else started) for name, state in self.states.items()}


@pytest.fixture
def site(claim: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(claim, monkeypatch)
