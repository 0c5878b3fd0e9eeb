"""Metrics of nodes, their processors and GPUs, and the health checks, from one `scontrol --oneliner show nodes`. Pure.

5,000 nodes cost scontrol a third of a second as text; sinfo needs as long and lists a node once for each of its partitions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from slurm.check_results import read_results
from slurm.scontrol import Resources, read_extras, read_resources, read_states
from slurm.states import NodeState, is_registered, word

from .text import OTHER, Family, Values

COMMAND = ("scontrol", "--oneliner", "--all", "show", "nodes")
DETAILED = ("scontrol", "--oneliner", "--all", "--details", "show", "nodes")
"""Where TRES do not count GPUs, as without accounting, only GresUsed says how many have a job."""
_WORKING = frozenset({"idle", "allocated", "mixed"})
_OFF = frozenset({"powered_down", "powering_down"})
_SHARES = ("allocated", "idle", "unavailable", "powered_down")

Checks = Mapping[str, Sequence[str]]
"""Names of the declared health checks by node set."""


def node_set_of(node: str) -> str:
    """The node set in a worker's name; `other` for a node that is no worker of ours."""
    name, _, ordinal = node.rpartition("-")
    return name if name and ordinal.isdecimal() else OTHER


def node_metrics(text: str, checks: Checks, now: float) -> list[Family]:
    """All families of nodes. Raises AnswerError, a ValueError, for text that is no answer."""
    # A comment may have line breaks, whose rest is no line of a node.
    text = "\n".join(line for line in text.splitlines() if line.startswith("NodeName=")) or text
    states, resources = read_states(text), read_resources(text)
    by_state: Counter[Values] = Counter()
    cpus: Counter[Values] = Counter()
    gpus: Counter[Values] = Counter()
    each: dict[Values, float] = {}
    for name, state in states.items():
        node_set = node_set_of(name)
        each[name, node_set, word(state)] = 1
        by_state[node_set, word(state)] += 1
        has = resources.get(name, Resources())
        _share(cpus, node_set, state, has.cpus_used, has.cpus)
        if has.gpus:
            _share(gpus, node_set, state, has.gpus_used, has.gpus)
    return [
        Family("slipway_node_state", "1 for the state that a Slurm node is in.", ("node", "nodeset", "state"), each),
        Family("slipway_nodes", "Slurm nodes by state.", ("nodeset", "state"), by_state),
        Family("slipway_cpus", "Processors of nodes by what they do.", ("nodeset", "state"), cpus),
        Family("slipway_gpus", "GPUs of nodes by what they do.", ("nodeset", "state"), gpus),
        *_check_metrics(text, checks, now),
    ]


def _share(counts: Counter[Values], node_set: str, state: NodeState, used: int, total: int) -> None:
    """What has a job is allocated, also on a node that drains; the rest is idle only where a job could start now."""
    rest = word(state)
    free = "idle" if rest in _WORKING and is_registered(state) else "powered_down" if rest in _OFF else "unavailable"
    for share in _SHARES:
        counts[node_set, share] += 0
    counts[node_set, "allocated"] += min(used, total)
    counts[node_set, free] += max(0, total - used)


def _check_metrics(text: str, checks: Checks, now: float) -> list[Family]:
    """What a check that is no longer declared has found says nothing of its node, and is left out."""
    failed: dict[Values, float] = {}
    results: Counter[Values] = Counter()
    oldest: dict[Values, float] = {}
    for name, extra in read_extras(text).items():
        node_set = node_set_of(name)
        declared = checks.get(node_set, ())
        for check, result, at, kind in _results(extra):
            if check not in declared:
                continue
            results[check, result] += 1
            if kind:
                failed[name, node_set, check, kind] = 1
            if at is not None:
                oldest[(check,)] = max(now - at, oldest.get((check,), 0.0))
    return [
        Family("slipway_node_check", "1 for each failure of a health check on a node.", ("node", "nodeset", "check", "kind"), failed),
        Family("slipway_check_nodes", "Nodes by the last result of a health check.", ("check", "result"), results),
        Family("slipway_check_age_seconds", "Age of a health check's oldest last result.", ("check",), oldest),
    ]


@lru_cache(maxsize=8192)
def _results(extra: str) -> tuple[tuple[str, str, float | None, str], ...]:
    """Of each check its name, its last result, when that was, and the kind of the failure that has not been seen mended, if there is one.

    Remembered, as most nodes have the same from one reading to the next: half of the time of a reading of 5,000 nodes.
    """
    found = read_results(extra) or {}
    return tuple((name, each.result, _time(each.at), each.failure.kind if each.failure else "") for name, each in found.items())


def _time(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
