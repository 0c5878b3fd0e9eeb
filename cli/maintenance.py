"""Which running jobs a maintenance window affects, and what happens to each. Changes nothing.

Jobs and reservations come from the program beside slurmrestd, and the rules for warnings and requeues from the cluster's slurmctld pod.
Times are UTC, as in Slurm's pods.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.api import Api, RefusedError
from engine.faults import SlipwayError, UnreachableError
from engine.queue import SilentError, ask
from engine.render import Sort
from names import labels
from slurm.hostlists import HostlistError, expand, fold
from slurm.maintenance import Fate, Job, Policy, Window, fate, jobs_of, read_policy, read_windows
from slurm.squeue import ReadingError

_SELECTOR = f"{labels.PART_OF}=slipway,{labels.COMPONENT}=slurmctld"
_CONTAINER = "maintenance"
_HEAD = ("JOB", "USER", "ACCOUNT", "NODES", "ENDS BY", "WHAT BECOMES OF IT")
_FATES: tuple[Fate, ...] = ("requeued", "runs on", "ends before")
_LONGEST_MIN = 366 * 24 * 60


@dataclass(frozen=True)
class Wish:
    """The options of the command."""

    reservation: str | None = None
    nodes: str | None = None
    start: str | None = None
    minutes: int = 60


def check(wish: Wish, now: float) -> None:
    """Raises SlipwayError with all mistakes in the options."""
    faults: list[str] = []
    if wish.reservation is not None:
        faults += [f"--{name} and --reservation: give one of them." for name in ("nodes", "start") if getattr(wish, name) is not None]
    else:
        if wish.nodes is None:
            faults.append("--nodes is missing: give the nodes, such as gpu-[0-3], or --reservation.")
        elif not _names(wish.nodes):
            faults.append(f"--nodes: {wish.nodes!r} is not a list of nodes. Write gpu-[0-3] or gpu-0,gpu-2.")
        if wish.start is None:
            faults.append("--start is missing: give the time, such as 2026-12-01T10:00, or --reservation.")
        elif (start := _time(wish.start)) is None:
            faults.append(
                f"--start: {wish.start!r} is not a valid time. Write 2026-12-01T10:00, in UTC, or with an offset: 2026-12-01T10:00+01:00."
            )
        elif start <= now:
            faults.append(f"--start: {wish.start} has passed; it is {_shown(now)}.")
        if not 0 < wish.minutes <= _LONGEST_MIN:
            faults.append(f"--duration: {wish.minutes} is not between 1 and {_LONGEST_MIN} minutes.")
    if faults:
        raise SlipwayError("\n".join(faults))


@dataclass(frozen=True)
class Preview:
    """A window, and the running jobs that it affects: those that lose most come first."""

    wish: Wish
    window: Window
    policy: Policy | None
    """None if no job is warned or requeued."""
    jobs: tuple[tuple[Job, Fate], ...]


def preview(api: Api, namespace: str, wish: Wish) -> Preview:
    """Raises SlipwayError if Slurm does not answer, or has no such reservation or nodes."""
    try:
        policy = read_live_policy(api.list(Sort("apps", "StatefulSet"), namespace, labelSelector=_SELECTOR))
        prefix = policy.reservation_prefix if policy else ""
        jobs = ask(api, namespace, "running", lambda answer: jobs_of(_rows(answer)))
        if wish.reservation is None:
            window = Window("", int(_time(wish.start or "") or 0), 0, frozenset(_names(wish.nodes or "")))
            known = ask(api, namespace, "nodes", _node_names)
            if unknown := window.nodes - known:
                raise SlipwayError(f"--nodes: Slurm has no node {fold(unknown)}. It has {fold(known) or 'none'}.")
        else:
            windows = ask(api, namespace, "reservations", lambda answer: read_windows(_text(answer), prefix))
            window = _named(windows, wish.reservation)
    except (SilentError, RefusedError, UnreachableError) as error:
        raise SlipwayError(f"The running jobs cannot be read: {error}") from None
    return judge(jobs, window, policy, wish)


def read_live_policy(stateful_sets: Sequence[dict[str, Any]]) -> Policy | None:
    """How the cluster's slurmctld pod warns and requeues jobs; None if it does not."""
    for stateful_set in stateful_sets:
        for container in stateful_set["spec"]["template"]["spec"]["containers"]:
            if container["name"] == _CONTAINER:
                try:
                    return read_policy(container["command"][-1])
                except (KeyError, IndexError, TypeError, ValueError) as error:
                    raise SlipwayError(f"The container {_CONTAINER} of slurmctld is of another release: {error}") from None
    return None


def judge(jobs: Iterable[Job], window: Window, policy: Policy | None, wish: Wish) -> Preview:
    """What happens to each job."""
    order: dict[Fate, int] = {"runs on": 0, "requeued": 1, "ends before": 2}
    rules = policy or Policy(requeue="Never")
    affected: list[tuple[Job, Fate]] = [(job, fate(job, window, rules)) for job in jobs if job.nodes & window.nodes]
    affected.sort(key=lambda pair: (order[pair[1]], pair[0].id))
    return Preview(wish, window, policy, tuple(affected))


def as_json(result: Preview) -> dict[str, Any]:
    """The preview as JSON. Times are seconds since 1970. null: no reservation yet, or a job without a limit."""
    window = result.window
    jobs = [
        {
            "id": job.id,
            "user": job.user,
            "account": job.account,
            "nodes": sorted(job.nodes & window.nodes),
            "endsAt": job.ends_at,
            "fate": fate,
        }
        for job, fate in result.jobs
    ]
    header = {"reservation": window.name or None, "nodes": sorted(window.nodes), "start": window.start}
    return {**header, "warns": result.policy is not None, "jobs": jobs}


def lines(result: Preview, now: float) -> list[str]:
    """The preview in words."""
    wish, window, policy, affected = result.wish, result.window, result.policy, result.jobs
    rows = [_HEAD, *(_row(job, outcome, window, policy) for job, outcome in affected)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    table = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    text = [f"{_title(window, wish)}, in {_hours(window.start - now)}: {_count(affected)}"]
    if affected:
        text += ["", *table]
    if policy is None:
        text += ["", "maintenance.enabled is false in this cluster: no job is warned or requeued."]
    if wish.reservation is None:
        command = (
            f"scontrol create reservation ReservationName=maintenance Nodes={fold(window.nodes)} Users=root "
            f"StartTime={_shown(window.start, 'T', '')} Duration={wish.minutes} Flags=MAINT,IGNORE_JOBS"
        )
        text += ["", "Nothing was changed. As an administrator, this reserves the nodes:", f"    {command}"]
    return text


def _row(job: Job, outcome: Fate, window: Window, policy: Policy | None) -> tuple[str, ...]:
    ends = "no limit" if job.ends_at is None else _shown(job.ends_at)
    words: dict[Fate, str] = {
        "ends before": "ends before",
        "requeued": f"warned, requeued at {_shown(window.start - (policy.requeue_before_s if policy else 0))}",
        "runs on": "warned, left alone: may still run then" if policy else "may still run then",
    }
    return job.id, job.user, job.account or "-", fold(job.nodes & window.nodes), ends, words[outcome]


def _count(affected: Sequence[tuple[Job, Fate]]) -> str:
    if not affected:
        return "no job runs on these nodes."
    counts: list[tuple[int, Fate]] = [(sum(1 for _, job_fate in affected if job_fate == outcome), outcome) for outcome in _FATES]
    words: dict[Fate, str] = {"requeued": "requeued", "runs on": "left alone", "ends before": "end before"}
    listed = ", ".join(f"{count} {words[outcome]}" for count, outcome in counts if count)
    return f"{len(affected)} job{'s' * (len(affected) != 1)}: {listed}."


def _title(window: Window, wish: Wish) -> str:
    name = f"Reservation {window.name} of" if wish.reservation else "Maintenance of"
    return f"{name} {fold(window.nodes)} at {_shown(window.start)}"


def _named(windows: Iterable[Window], name: str) -> Window:
    by_name = {window.name: window for window in windows}
    if name not in by_name:
        names = ", ".join(sorted(by_name)) or "none"
        raise SlipwayError(f"--reservation: Slurm has no reservation {name!r} for maintenance (flag MAINT, with nodes). It has: {names}.")
    return by_name[name]


def _text(answer: object) -> str:
    try:
        return "\n".join(answer["lines"])  # type: ignore[index]
    except (KeyError, TypeError) as error:
        raise ReadingError(f"no lines: {error}") from None


def _rows(answer: object) -> list[dict[str, str]]:
    try:
        return [{str(field): str(value) for field, value in row.items()} for row in answer["rows"]]  # type: ignore[index]
    except (AttributeError, KeyError, TypeError) as error:
        raise ReadingError(f"no jobs: {error}") from None


def _node_names(answer: object) -> frozenset[str]:
    try:
        return frozenset(str(node["NodeList"]) for node in answer["nodes"])  # type: ignore[index]
    except (KeyError, TypeError) as error:
        raise ReadingError(f"no nodes: {error}") from None


def _names(text: str) -> list[str]:
    try:
        return expand(text)
    except HostlistError:
        return []


def _time(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _shown(at: float, between: str = " ", zone: str = " UTC") -> str:
    return time.strftime(f"%Y-%m-%d{between}%H:%M:%S", time.gmtime(at)) + zone


def _hours(seconds: float) -> str:
    minutes = max(0, round(seconds / 60))
    return f"{minutes // 1440} d {minutes % 1440 // 60} h" if minutes >= 1440 else f"{minutes // 60} h {minutes % 60} min"
