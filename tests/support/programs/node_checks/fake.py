"""A Slurm in memory with the few operations that health checks use, which can be killed at any of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from programs.node_checks.measured import Measured
from programs.node_checks.pairs import Pair, pair
from programs.node_checks.plan import BUSY, ENDED, Outcome, Reservation
from programs.node_checks.slurm import Slurm
from programs.node_checks.updates import Update
from slurm.check_results import FAILED
from slurm.commands import SlurmError
from slurm.scontrol import Node
from slurm.states import node_state


class Killed(BaseException):
    """The process ended here; like a real kill, no `except Exception` stops it."""


@dataclass
class FakeSlurm(Slurm):
    """Nodes and reservations as Slurm would show them, and what each node's check finds."""

    known: dict[str, Node]
    found: Mapping[str, Outcome]
    held: dict[str, Reservation] = field(default_factory=dict[str, Reservation])
    kill_at: int = -1
    """Number of the operation before which the process is killed; negative: never."""
    end_at: int = -1
    """Number of the operation before which SIGTERM comes; negative: never."""
    on_job: Callable[[str], None] = lambda _: None
    """Called while a check runs on a node: what others do meanwhile."""
    log: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    checked: set[str] = field(default_factory=set[str])
    """Nodes that have a job of another check, and no other job."""
    slow_links: set[Pair] = field(default_factory=set[Pair])
    used_s: float = 0
    """Node seconds of the check in accounting."""
    remarks: dict[str, str] = field(default_factory=dict[str, str])
    """The comments of jobs."""
    gpus: set[int] = field(default_factory=set[int])
    """How many GPUs of each node jobs over several asked for."""
    refuses: set[str] = field(default_factory=set[str])
    """Nodes of which it takes no update that comes with others."""
    refuses_comments: int = 0
    """So many comments are refused first: those on a job whose script has ended, while Slurm takes the job back."""

    def nodes(self, name: str = "") -> dict[str, Node]:
        return {each: node for each, node in self.known.items() if not name or each in name.split(",")}

    def all_briefly(self) -> dict[str, Node]:
        return dict(self.known)

    def reservations(self) -> dict[str, Reservation]:
        return dict(self.held)

    def reserve(self, held: Reservation) -> bool:
        self._operate("reserve", held.node)
        if any(other.name == held.name for other in self.held.values()):
            return False
        self.held[held.node] = held
        for node in (held.node, *held.partners):
            self._flags(node, add={"RESERVED", "MAINTENANCE"})
        return True

    def release(self, held: Reservation) -> None:
        self._operate("release", held.node)
        del self.held[held.node]
        if held.node in self.known:
            for node in (held.node, *held.partners):
                self._flags(node, remove={"RESERVED", "MAINTENANCE"})

    def resume(self, node: str) -> None:
        self._operate("resume", node)
        self.known[node] = changed(self.known[node], reason="", reason_user="")
        self._flags(node, remove={"DRAIN"})

    def drain(self, node: str, reason: str) -> None:
        for name in node.split(","):
            self._operate("drain", name)
            self.known[name] = changed(self.known[name], reason=reason, reason_user="slurm")
            self._flags(name, add={"DRAIN"})

    def comment(self, job: str, text: str) -> None:
        self._operate("comment", job)
        if self.refuses_comments:
            self.refuses_comments -= 1
            raise SlurmError("Job has already finished for job 12")
        self.remarks[job] = text

    def notify(self, texts: Mapping[str, str]) -> None:
        for job in texts:
            self._operate("notify", job)

    def write(self, updates: Sequence[Update]) -> dict[str, SlurmError]:
        refused = {name: SlurmError("Invalid node name specified") for update in updates for name in update.nodes if name in self.refuses}
        for update in updates:
            names = [name for name in update.nodes if name not in refused]
            if update.extra is not None:
                self.record(names, update.extra)
            if update.drain is not None:
                self.drain(",".join(names), update.drain)
        return refused

    def run(
        self, check: str, node: Node, program: Path, settings: dict[str, Any], timeout_s: int, gpus: int, held: Reservation | None
    ) -> Outcome:
        self._operate("run", node.name)
        assert not self.known[node.name].state.flags & {"DRAIN", "ALLOCATED", "DOWN"}, "Slurm starts no job there"
        assert self.held.get(node.name) == held, "Slurm starts only jobs of its reservation there"
        self.on_job(node.name)
        return ENDED if self.is_ending else self.found[node.name]

    def run_together(
        self,
        check: str,
        nodes: Sequence[Node],
        program: Path,
        settings: dict[str, Any],
        timeout_s: int,
        gpus: int,
        held: Reservation | None,
    ) -> Measured | Outcome:
        names = [node.name for node in nodes]
        self.gpus.add(gpus)
        self._operate("run", "+".join(names))
        if any(self.known[name].state.flags & {"DRAIN", "ALLOCATED", "COMPLETING", "DOWN"} for name in names):
            return BUSY
        assert {held.node, *held.partners} >= {*names} if held else not any("RESERVED" in self.known[name].state.flags for name in names)
        self.on_job(names[0])
        if self.is_ending:
            return ENDED
        is_slow = any(self.is_failing(name) for name in names) or pair(names[0], names[1]) in self.slow_links
        return Measured(1.0 if is_slow else 1000.0, 30.0)

    def node_seconds(self, check: str, within_s: int) -> float:
        return self.used_s

    def record(self, nodes: Iterable[str], extra: str) -> None:
        for name in nodes:
            self._operate("record", name)
            self.known[name] = changed(self.known[name], extra=extra)

    def is_held_by_checks(self, node: str) -> bool:
        return node in self.checked

    def end_other_check(self, name: str) -> None:
        """The job of another check ends."""
        self.checked.discard(name)
        self._flags(name, add={"IDLE"}, remove={"ALLOCATED"})

    def is_open_to_users(self, name: str) -> bool:
        return name not in self.held and "DRAIN" not in self.known[name].state.flags

    def is_failing(self, name: str) -> bool:
        return self.found[name].result == FAILED

    def _operate(self, operation: str, node: str) -> None:
        if len(self.log) == self.kill_at:
            raise Killed
        self.is_ending = self.is_ending or len(self.log) == self.end_at
        self.log.append((operation, node))

    def _flags(self, name: str, add: set[str] = frozenset(), remove: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        node = self.known[name]
        self.known[name] = changed(node, state=node_state((node.state.flags | add) - remove))


def changed(node: Node, **more: Any) -> Node:
    return Node(**{**vars(node), **more})
