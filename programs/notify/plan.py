"""Decides which receiver gets which news. Pure.

A job is one message. An array is one message once none of its tasks is left, and one per hour until then. In a round, a receiver gets at
most `MOST` messages about jobs, failures first, and one that sums up the others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from slurm.records import record

from .nodes import Changes, Fault
from .runs import QUIET, REQUEUED, Run
from .settings import Receiver

MOST = 10
ARRAY_S = 3600
"""Seconds between two messages about an array with tasks left."""
MOST_ARRAYS = 1000
"""Arrays that wait for their last task. Further arrays are reported at once."""


@record
class Item:
    """A run, or the ended tasks of an array."""

    example: Run
    """The run; of an array, the first task that failed, else the first task."""
    states: Mapping[str, int]
    """Tasks by state."""
    since: float
    """When the first task was read, in seconds since 1970."""
    is_left: bool = False
    """True for an array with tasks that wait or run."""


@record
class Affected:
    """A user's running jobs on nodes that were drained."""

    user: str
    jobs: tuple[str, ...]
    faults: Mapping[str, Fault]
    """By the names of the nodes."""
    is_silent: bool = False
    """True if a node does not answer, so that it is unknown whether its jobs run on."""


@record
class News:
    """The content of one message: an item, some nodes, a user's jobs on them, or counts of what has no message of its own."""

    event: str
    item: Item | None = None
    more: Mapping[str, int] | None = None
    """Summed up: tasks by state."""
    nodes: tuple[str, ...] = ()
    fault: Fault | None = None
    affected: Affected | None = None
    more_users: int = 0


def new_runs(runs: Iterable[Run], seen: Iterable[tuple[str, str, int]]) -> list[Run]:
    """Runs that are not in `seen`, each once, the oldest first."""
    known = set(seen)
    new_by_key = {run.key: run for run in runs if run.key not in known}
    return sorted(new_by_key.values(), key=lambda run: (run.end, run.number))


def gather(arrays: Mapping[str, Item], runs: Sequence[Run], live: frozenset[str], now: float) -> tuple[list[Item], dict[str, Item]]:
    """The items to report now, and the arrays that wait. `live`: arrays with tasks left."""
    due = [Item(run, {run.state: run.tasks}, now) for run in runs if not run.array]
    waiting = dict(arrays)
    fresh: set[str] = set()
    for run in runs:
        if run.array:
            waiting[run.array] = _with_task(waiting.get(run.array), run, now)
            fresh.add(run.array)
    for array in sorted(waiting, key=lambda array: waiting[array].since):
        item = waiting[array]
        is_live = array in live
        # The last rows of an array may come one round later.
        is_over = not is_live and array not in fresh
        if is_over or now - item.since >= ARRAY_S or len(waiting) > MOST_ARRAYS:
            del waiting[array]
            due.append(Item(item.example, item.states, item.since, is_left=is_live))
    return due, waiting


def plan_jobs(receiver: Receiver, items: Iterable[Item]) -> list[News]:
    """A receiver's news of these items."""
    wanted = [part for item in items if (part := _kept(receiver, item)) is not None]
    wanted.sort(key=lambda item: (has_failed(item.states), item.example.end), reverse=True)
    shown, summed_up = wanted[:MOST], wanted[MOST:]
    news = [News(_event(item), item) for item in sorted(shown, key=lambda item: item.example.end)]
    if summed_up:
        total = Counter[str]()
        for item in summed_up:
            total.update(item.states)
        news.append(News("jobEnd", more=total))
    return news


def plan_nodes(receiver: Receiver, changes: Changes, partitions: Mapping[str, frozenset[str]]) -> list[News]:
    """A receiver's news of nodes: one message for all nodes with the same cause."""
    chosen = {name for name, its in partitions.items() if not receiver.partitions or receiver.partitions & its}
    out: dict[Fault, list[str]] = {}
    back: dict[str, list[str]] = {}
    for name, fault in changes.out.items() if "nodeDrain" in receiver.events else ():
        if name in chosen:
            out.setdefault(fault, []).append(name)
    for name, reason in changes.back.items() if "nodeResume" in receiver.events else ():
        if name in chosen:
            back.setdefault(reason, []).append(name)
    messages = [News("nodeDrain", nodes=tuple(names), fault=fault) for fault, names in out.items()]
    messages += [News("nodeResume", nodes=tuple(names), fault=Fault(reason, "", "")) for reason, names in back.items()]
    if len(messages) <= MOST:
        return messages
    summed_up: dict[str, list[str]] = {}
    for news in messages[MOST:]:
        summed_up.setdefault(news.event, []).extend(news.nodes)
    return [*messages[:MOST], *(News(event, nodes=tuple(names)) for event, names in summed_up.items())]


def is_chosen(receiver: Receiver, account: str, user: str, partition: str) -> bool:
    """True if a job matches all filters of the receiver."""
    chosen = (receiver.accounts, account), (receiver.users, user), (receiver.partitions, partition)
    return all(not wanted or value in wanted for wanted, value in chosen)


def has_failed(states: Mapping[str, int]) -> bool:
    """True if a state is a failure."""
    return any(state not in QUIET for state in states)


def _with_task(item: Item | None, run: Run, now: float) -> Item:
    if item is None:
        return Item(run, {run.state: run.tasks}, now)
    is_worse = run.state not in QUIET and item.example.state in QUIET
    counted = {**item.states, run.state: item.states.get(run.state, 0) + run.tasks}
    return Item(run if is_worse else item.example, counted, item.since)


def _kept(receiver: Receiver, item: Item) -> Item | None:
    """The part of an item that the receiver wants; None if there is none."""
    run = item.example
    if receiver.only_asked and receiver.name not in run.asked:
        return None
    if not is_chosen(receiver, run.account, run.user, run.partition):
        return None
    states = {state: count for state, count in item.states.items() if _is_wanted(receiver.events, state)}
    return Item(run, states, item.since, item.is_left) if states else None


def _is_wanted(events: frozenset[str], state: str) -> bool:
    if state == REQUEUED:
        return "jobRequeue" in events
    return "jobEnd" in events or ("jobFail" in events and state not in QUIET)


def _event(item: Item) -> str:
    if has_failed(item.states):
        return "jobFail"
    return "jobRequeue" if set(item.states) == {REQUEUED} else "jobEnd"
