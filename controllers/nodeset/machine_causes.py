"""What the conditions and taints of a Kubernetes node say against the Slurm nodes on it, by the rules of a set. Pure.

A cause lasts as long as its condition or taint. A condition whose status is Unknown is not a cause.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from controllers.nodeset.structs import MachineCauseRule
from controllers.nodeset.workers import MachineCause
from controllers.runtime.structs import NodeCondition, Taint
from slurm.causes import KUBERNETES_CONDITIONS
from slurm.times import read_time


@lru_cache(maxsize=32_768)
def find_machine_causes(
    rules: tuple[MachineCauseRule, ...], conditions: tuple[NodeCondition, ...], taints: tuple[Taint, ...]
) -> tuple[MachineCause, ...]:
    """The causes, by name. Each name is listed once: a taint may have several effects."""
    causes = {cause.name: cause for cause in (*_of_conditions(rules, conditions), *_of_taints(rules, taints))}
    return tuple(causes[name] for name in sorted(causes))


def read_begin(text: str) -> float | None:
    """When announced maintenance begins, in seconds since 1970; None for a text that is not a time. Without an offset it is UTC."""
    return read_time(text, is_utc=True)


def announced_cause(annotation: str, text: str) -> MachineCause:
    """The cause for an annotation of a Kubernetes node. It drains nothing: who announces a failure sets a condition or a taint as well."""
    if read_begin(text) is None:
        evidence = f"{annotation} is {text[:80]!r}, which is no time such as 2030-01-15T10:00:00Z: no job is warned"
    else:
        evidence = (
            f"maintenance begins at {text} ({annotation}): jobs that may still run then are warned before, and none starts from then on"
        )
    return MachineCause(f"annotation/{annotation.rpartition('/')[2]}", "maintenance", "none", evidence, "")


def _of_conditions(rules: tuple[MachineCauseRule, ...], conditions: Iterable[NodeCondition]) -> Iterable[MachineCause]:
    for condition in conditions:
        if condition.type in KUBERNETES_CONDITIONS:
            continue
        rule = next((rule for rule in rules if rule.condition and fnmatchcase(condition.type, rule.condition)), None)
        if rule is not None and condition.status == rule.status:
            details = ": ".join(filter(None, (condition.reason, condition.message)))
            evidence = f"{condition.type} is {condition.status}: {details}" if details else f"{condition.type} is {condition.status}"
            yield MachineCause(f"condition/{condition.type}", rule.kind, rule.wish, evidence, condition.last_transition_time or "")


def _of_taints(rules: tuple[MachineCauseRule, ...], taints: Iterable[Taint]) -> Iterable[MachineCause]:
    for taint in taints:
        rule = next((rule for rule in rules if rule.taint and fnmatchcase(taint.key, rule.taint)), None)
        if rule is not None:
            text = f"{taint.key}={taint.value}" if taint.value else taint.key
            yield MachineCause(f"taint/{taint.key}", rule.kind, rule.wish, f"taint {text}:{taint.effect}", taint.time_added or "")
