"""Metrics of nodes, their processors and GPUs, and health checks, from one `scontrol --oneliner show nodes`. Pure.

scontrol takes a third of a second for 5,000 nodes. sinfo takes as long, and lists a node once per partition.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from slurm.check_results import LAUNCH, UNKNOWN, read_results
from slurm.retelling import UNKNOWN_AFTER_S
from slurm.scontrol import Resources, read_extras, read_resources, read_starts, read_states
from slurm.states import NodeState, is_registered, word
from slurm.times import read_time

from .settings import Checks
from .text import OTHER, Family, Values

COMMAND = ("scontrol", "--oneliner", "--all", "show", "nodes")
DETAILED = ("scontrol", "--oneliner", "--all", "--details", "show", "nodes")
"""Without accounting, TRES do not count GPUs: only GresUsed has the number of allocated GPUs."""
_WORKING = frozenset({"idle", "allocated", "mixed"})
_OFF = frozenset({"powered_down", "powering_down"})
_SILENT_IN_ORDER = _OFF | {"powering_up"}
"""States in which no check is expected to run on a node."""
_SHARES = ("allocated", "idle", "unavailable", "powered_down")
_INTERVAL = "interval"


def node_set_of(node: str) -> str:
    """The node set in a worker's name; `other` for a node that is not ours."""
    name, _, ordinal = node.rpartition("-")
    return name if name and ordinal.isdecimal() else OTHER


def node_metrics(text: str, checks: Checks, now: float, unknown_after_s: float = UNKNOWN_AFTER_S) -> list[Family]:
    """All families of nodes. Times are in seconds since 1970. Raises AnswerError, a ValueError, for other text."""
    # A comment may have line breaks; the text after a break is not a line of a node.
    text = "\n".join(line for line in text.splitlines() if line.startswith("NodeName=")) or text
    states, resources = read_states(text), read_resources(text)
    by_state: Counter[Values] = Counter()
    cpus: Counter[Values] = Counter()
    gpus: Counter[Values] = Counter()
    node_states: dict[Values, float] = {}
    for name, state in states.items():
        node_set = node_set_of(name)
        node_states[name, node_set, word(state)] = 1
        by_state[node_set, word(state)] += 1
        has = resources.get(name, Resources())
        _share(cpus, node_set, state, has.cpus_used, has.cpus)
        if has.gpus:
            _share(gpus, node_set, state, has.gpus_used, has.gpus)
    return [
        Family("slipway_node_state", "1 for the state that a Slurm node is in.", ("node", "nodeset", "state"), node_states),
        Family("slipway_nodes", "Slurm nodes by state.", ("nodeset", "state"), by_state),
        Family("slipway_cpus", "Processors of nodes by what they do.", ("nodeset", "state"), cpus),
        Family("slipway_gpus", "GPUs of nodes by what they do.", ("nodeset", "state"), gpus),
        *_check_metrics(text, states, checks, now, unknown_after_s),
    ]


def _share(counts: Counter[Values], node_set: str, state: NodeState, used: int, total: int) -> None:
    """Counts resources of jobs as allocated, also on a draining node. The others are idle only if a job could start now."""
    state_word = word(state)
    free = "idle" if state_word in _WORKING and is_registered(state) else "powered_down" if state_word in _OFF else "unavailable"
    for share in _SHARES:
        counts[node_set, share] += 0
    counts[node_set, "allocated"] += min(used, total)
    counts[node_set, free] += max(0, total - used)


def _check_metrics(text: str, states: Mapping[str, NodeState], checks: Checks, now: float, unknown_after_s: float) -> list[Family]:
    """Leaves out results of checks that are no longer declared. A check at an interval is unknown on a node where it has not reported for
    `unknown_after_s`, or never."""
    extras, starts = read_extras(text), read_starts(text)
    failed: dict[Values, float] = {}
    results: Counter[Values] = Counter()
    oldest: dict[Values, float] = {}
    for name, state in states.items():
        node_set = node_set_of(name)
        last_results = _results(extras.get(name, ""))
        is_up = word(state) not in _SILENT_IN_ORDER
        for check, context in {LAUNCH: "", **checks.get(node_set, {})}.items():
            result, at, kind = last_results.get(check, ("", None, ""))
            told_at = max(at or 0, starts.get(name, now if at is None else 0))
            if is_up and context == _INTERVAL and now - told_at >= unknown_after_s:
                result = UNKNOWN
            if result:
                results[check, result] += 1
            if kind:
                failed[name, node_set, check, kind] = 1
            if at is not None and is_up and context:
                oldest[check, context] = max(now - at, oldest.get((check, context), 0.0))
    return [
        Family("slipway_node_check", "1 for each failure of a health check on a node.", ("node", "nodeset", "check", "kind"), failed),
        Family(
            "slipway_check_nodes", "Nodes by the last result of a health check; unknown where it is silent.", ("check", "result"), results
        ),
        Family(
            "slipway_check_age_seconds",
            "Age of the oldest last result of a health check that runs as a job or at an interval.",
            ("check", "context"),
            oldest,
        ),
    ]


@lru_cache(maxsize=8192)
def _results(extra: str) -> Mapping[str, tuple[str, float | None, str]]:
    """Check to its last result, the time of it, and the kind of an open failure, if any.

    Cached, as it rarely changes between two readings: this saves half the time of a reading of 5,000 nodes.
    """
    results = read_results(extra) or {}
    return {name: (result.result, read_time(result.at), result.failure.kind if result.failure else "") for name, result in results.items()}
