"""What the conditions and taints of a Kubernetes node say against the Slurm nodes on it, by the rules of a set. Pure.

node-problem-detector and agents of clouds set them, and take them back: a cause is there as long as its condition or taint. A condition
whose status is Unknown is none.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from controllers.nodeset.structs import MachineCauseRule
from controllers.nodeset.workers import MachineCause
from controllers.runtime.structs import NodeCondition, Taint
from slurm.causes import KUBERNETES_CONDITIONS


@lru_cache(maxsize=8192)
def find_machine_causes(
    rules: tuple[MachineCauseRule, ...], conditions: tuple[NodeCondition, ...], taints: tuple[Taint, ...]
) -> tuple[MachineCause, ...]:
    """The causes, by name. Each name is there once: a taint may have several effects."""
    found = {cause.name: cause for cause in (*_of_conditions(rules, conditions), *_of_taints(rules, taints))}
    return tuple(found[name] for name in sorted(found))


def _of_conditions(rules: tuple[MachineCauseRule, ...], conditions: Iterable[NodeCondition]) -> Iterable[MachineCause]:
    for condition in conditions:
        if condition.type in KUBERNETES_CONDITIONS:
            continue
        rule = next((rule for rule in rules if rule.condition and fnmatchcase(condition.type, rule.condition)), None)
        if rule is not None and condition.status == rule.status:
            words = ": ".join(filter(None, (condition.reason, condition.message)))
            evidence = f"{condition.type} is {condition.status}: {words}" if words else f"{condition.type} is {condition.status}"
            yield MachineCause(f"condition/{condition.type}", rule.kind, rule.wish, evidence, condition.last_transition_time or "")


def _of_taints(rules: tuple[MachineCauseRule, ...], taints: Iterable[Taint]) -> Iterable[MachineCause]:
    for taint in taints:
        rule = next((rule for rule in rules if rule.taint and fnmatchcase(taint.key, rule.taint)), None)
        if rule is not None:
            text = f"{taint.key}={taint.value}" if taint.value else taint.key
            yield MachineCause(f"taint/{taint.key}", rule.kind, rule.wish, f"taint {text}:{taint.effect}", taint.time_added or "")
