"""The whole story of a change: Slurm's configuration, pods, data, the fate of jobs, and how dangerous it is. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from changes.configuration import EMPTY, Configuration, Item, compare, parse
from changes.data import losses
from changes.jobs import Affected, Job, Stranded, affected, stranded
from changes.parameters import Need
from changes.settled import settled
from changes.steps import Step
from changes.workloads import CONFIGURATION, DrainPolicy, NodesTouched, consequences, drain_policies, nodes_touched
from slurm.hostlists import fold

_FILES_READ_ALIKE = "changed"


class Level(IntEnum):
    """How dangerous a change is. The value is the exit code of a preview that is asked for one."""

    NOTHING = 0
    CHANGES = 2
    DANGEROUS = 3


@dataclass(frozen=True)
class Queue:
    """The jobs of the cluster, or why they are unknown."""

    jobs: tuple[Job, ...] = ()
    unknown: str = ""
    """Why the jobs are unknown; empty if `jobs` are slurmctld's."""


@dataclass(frozen=True)
class Story:
    """The report for people and CI."""

    items: tuple[Item, ...]
    consequences: tuple[str, ...]
    losses: tuple[str, ...]
    """Data that is deleted."""
    affected: tuple[Affected, ...]
    stranded: tuple[Stranded, ...]
    queue: Queue
    concerns_jobs: bool
    """True if the change may affect jobs that exist."""
    dangers: tuple[str, ...]
    level: Level
    not_applied: tuple[str, ...] = ()
    """Changes of the stack file that no deployment applies, each with its remedy."""
    harms: tuple[str, ...] = ()
    """The dangers that are side effects on running jobs, which nobody asked for in the stack file."""


def tell(steps: Sequence[Step], queue: Queue) -> Story:
    """The story of all changes of a stack."""
    old, new = configurations(steps)
    # A whole cluster that is created or deleted is shown by its objects.
    items = [*(compare(old, new) if old != EMPTY and new != EMPTY else ()), *_other_files(steps)]
    touched = _touched(steps, items)
    fates = () if queue.unknown else tuple(_affected(touch, queue.jobs) for touch in touched)
    lost = () if queue.unknown or new == EMPTY else tuple(stranded(queue.jobs, old, new))
    may_strand = any(item.is_removal or (item.topic == "partitions" and not item.is_addition) for item in items)
    concerns = bool(touched) or may_strand or any(item.parameter.harms for item in items)
    gone = tuple(losses(steps))
    harms = tuple(_harms(items, queue))
    dangers = (*gone, *_dangers(touched, queue), *harms, *_unknown(queue, may_strand), *_stranding(lost))
    quiet = all(step.op == "same" for step in steps)
    level = Level.DANGEROUS if dangers else Level.NOTHING if quiet else Level.CHANGES
    effects = tuple(consequences(steps))
    return Story(tuple(items), effects, gone, fates, lost, queue, concerns, dangers, level, tuple(settled(steps)), harms)


def configurations(steps: Iterable[Step]) -> tuple[Configuration, Configuration]:
    """Slurm's configuration before and after; EMPTY if there is none. Both are the same if no step has one."""
    for step in steps:
        old, new = _files(step.old), _files(step.new)
        if step.kind == "ConfigMap" and (CONFIGURATION in old or CONFIGURATION in new):
            before, after = old.get(CONFIGURATION, ""), "" if step.op == "delete" else new.get(CONFIGURATION, "")
            return parse(before), parse(after)
    return EMPTY, EMPTY


def _files(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    return manifest.get("data") or {}


def _other_files(steps: Iterable[Step]) -> list[Item]:
    """Slurm's files beside slurm.conf. The same reconfigure reads them."""
    items: list[Item] = []
    for step in steps:
        old, new = _files(step.old), _files(step.new)
        if step.kind == "ConfigMap" and step.op == "update" and CONFIGURATION in old and CONFIGURATION in new:
            for name in sorted(old.keys() | new.keys()):
                if name != CONFIGURATION and old.get(name) != new.get(name):
                    change = "added" if name not in old else "removed" if name not in new else _FILES_READ_ALIKE
                    items.append(Item("files", name, change))
    return items


def _touched(steps: Sequence[Step], items: Sequence[Item]) -> list[NodesTouched]:
    """The nodes that leave service: those of node sets, and those that slurm.conf alone removes or resizes."""
    touched = nodes_touched(steps)
    policies = drain_policies(steps)
    for item in items:
        why = {Need.END: "removed", Need.DRAIN: "resized"}.get(item.parameter.need)
        if why is None or not item.nodes:
            continue
        for name, nodes in _by_set(item.nodes).items():
            same = "removed" if why == "removed" else "rolled"
            if any(touch.node_set == name and touch.why in (same, why) and nodes <= touch.nodes for touch in touched):
                continue
            # slurm.conf names the nodes that go; a NodeSet says only how many.
            touched = [touch for touch in touched if not (touch.node_set == name and touch.why == "scaled in" and why == "removed")]
            touched.append(
                NodesTouched(name, "removed" if why == "removed" else "resized", nodes, policy=policies.get(name, DrainPolicy()))
            )
    return touched


def _by_set(nodes: Iterable[str]) -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = {}
    for node in nodes:
        groups.setdefault(node.rpartition("-")[0] or node, set()).add(node)
    return {name: frozenset(group) for name, group in sorted(groups.items())}


def _affected(touched: NodesTouched, jobs: Iterable[Job]) -> Affected:
    return affected(touched.why, touched.nodes, touched.most, str(touched.policy), jobs)


def _dangers(touched: Sequence[NodesTouched], queue: Queue) -> list[str]:
    """The jobs that would not get their time. Unknown jobs count as present."""
    running = [job for job in queue.jobs if not job.is_waiting]
    dangers: list[str] = []
    for touch in touched:
        jobs = [job for job in running if job.nodes & touch.nodes]
        if touch.policy.ends_jobs and (jobs or queue.unknown):
            dangers.append(f"{fold(touch.nodes)}: {_so_many(jobs, queue)} on nodes that are {touch.why}; {touch.policy}")
    return dangers


def _harms(items: Sequence[Item], queue: Queue) -> list[str]:
    """What the change of the files does to running jobs. Unknown jobs count as present."""
    running = [job for job in queue.jobs if not job.is_waiting]
    harms: list[str] = []
    for item in items:
        jobs = [job for job in running if not item.nodes or job.nodes & item.nodes]
        if item.parameter.harms and (jobs or queue.unknown):
            harms.append(f"{item.subject}: {item.change}: {item.parameter.effect} ({_so_many(jobs, queue)} now)")
    return harms


def _unknown(queue: Queue, may_strand: bool) -> list[str]:
    if not (queue.unknown and may_strand):
        return []
    return ["whether waiting jobs could still run is unknown: the jobs of the cluster could not be asked for"]


def _so_many(jobs: Sequence[Job], queue: Queue) -> str:
    if queue.unknown:
        return "an unknown number of running jobs"
    return f"{len(jobs)} running job{'' if len(jobs) == 1 else 's'}"


def _stranding(lost: Sequence[Stranded]) -> list[str]:
    if not lost:
        return []
    return [f"{len(lost)} waiting job{'' if len(lost) == 1 else 's'} could never run any more"]
