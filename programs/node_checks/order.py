"""Decides which nodes a run of a check leaves out, and which come first: `after`, and the budget of node minutes. Pure."""

from collections.abc import Iterable, Mapping
from threading import Lock

from slurm.check_results import PASSED, SKIPPED, read_results
from slurm.scontrol import Node

from .plan import Done, Outcome, Reserve, Run, Step

DAY_S = 24 * 3600


def in_order(check: str, after: Iterable[str], steps: Mapping[str, Step], nodes: Mapping[str, Node]) -> dict[str, Step]:
    """The steps of a run, longest waiting first. Nodes that have not passed the checks in `after` are left out.

    What an earlier run has begun is finished in any case.
    """
    results = {name: (read_results(nodes[name].extra) or {}) if name in nodes else {} for name in steps}

    def last_at(name: str) -> str:
        earlier = results[name].get(check)
        return earlier.at if earlier else ""

    held_back: dict[str, Step] = {}
    for name in sorted(steps, key=last_at):
        missing = [required for required in after if required not in results[name] or results[name][required].result != PASSED]
        is_begun = not isinstance(steps[name], Run | Reserve)
        why = f"comes after the check {missing[0]}, which has not passed here" if missing else ""
        held_back[name] = steps[name] if is_begun or not missing else Done(Outcome(SKIPPED, why))
    return held_back


class Budget:
    """Node seconds that the jobs of a check may use in 24 hours. Jobs that are running when they are used up may end."""

    def __init__(self, node_minutes: int | None, used_s: float) -> None:
        self._node_minutes, self._used_s = node_minutes, used_s
        self._lock = Lock()

    def spend(self, node_seconds: float) -> None:
        with self._lock:
            self._used_s += node_seconds

    def refusal(self) -> Outcome | None:
        """Why no further job is begun; None when one may be."""
        if self._node_minutes is None or self._used_s < self._node_minutes * 60:
            return None
        return Outcome(SKIPPED, f"the {self._node_minutes} node minutes of 24 hours are used up")
