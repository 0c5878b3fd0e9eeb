"""Formats an overview for a terminal. Every problem has a colour and a text."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.status.overview import Overview
from cli.status.readings import Reading, Readings

_MOST_AWAY = 20
"""Rows of nodes that are out of service; the others are counted."""
_MOST_WHY = 3
_OLD_S = 15.0
"""Seconds after which a reading's age is a warning."""
_ALWAYS = {"idle": "IDLE", "allocated": "BUSY"}
_WHERE_SOME = {
    "draining": "DRAINING",
    "drained": "DRAINED",
    "down": "DOWN",
    "powered_down": "OFF",
    "powering_up": "WAKING",
    "unknown": "UNKNOWN",
}
"""Columns of node states (slurm.states.category) that are shown only if there is such a node."""
_COLOURS = {"draining": "yellow", "drained": "yellow", "down": "red", "Ready": "green", "Degraded": "red", "SlurmSilent": "red"}


def render(title: str, overview: Overview, readings: Readings, now: float) -> RenderableType:
    """The whole page."""
    parts: list[RenderableType] = [Text(title, style="bold"), _sets(overview), *_words(overview)]
    if overview.away is not None:
        parts += [Text(), *_away(overview, now)]
    if overview.queue is not None:
        parts += [Text(), *_queue(overview, now)]
    parts += [Text(), *_checks(overview, now), *_programs(overview, now), Text(), _ages(readings, now)]
    return Group(*parts)


def span(seconds: float) -> str:
    """A duration in a suitable unit: `45 s`, `12 min`, `3 h`, `5 days`."""
    for unit, size, least in (("days", 86_400, 172_800), ("h", 3_600, 7_200), ("min", 60, 120)):
        if seconds >= least:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _sets(overview: Overview) -> Table:
    shown = _ALWAYS | {key: heading for key, heading in _WHERE_SOME.items() if any(row.counts.get(key) for row in overview.sets)}
    table = _table("SET", "WANTED", "READY", *shown.values(), "PHASE")
    for row in overview.sets:
        cells = [Text(str(row.counts.get(key, 0)) if row.counts else "?", style=_style(row.counts, key)) for key in shown]
        table.add_row(row.name, str(row.wanted), str(row.ready), *cells, Text(row.phase, style=_COLOURS.get(row.phase, "yellow")))
    return table


def _style(counts: Mapping[str, int], key: str) -> str:
    return _COLOURS.get(key, "") if counts.get(key) else "dim"


def _words(overview: Overview) -> Iterable[Text]:
    """Why sets are not ready, and how much is in use."""
    for row in overview.sets:
        if row.phase != "Ready":
            yield Text(f"{row.name}: {row.why}", style=_COLOURS.get(row.phase, "yellow"))
    if overview.cpus is not None and overview.gpus is not None:
        yield Text(f"In use: {_of(*overview.cpus)} CPUs" + (f", {_of(*overview.gpus)} GPUs" if overview.gpus[1] else ""), style="dim")


def _of(used: int, total: int) -> str:
    return f"{used} of {total}"


def _away(overview: Overview, now: float) -> Iterable[RenderableType]:
    away = overview.away or ()
    if not away:
        yield Text("No node is out of service.", style="green")
        return
    yield Text(f"OUT OF SERVICE: {len(away)} node{'s' * (len(away) > 1)}", style="bold")
    table = _table("NODE", "STATE", "FOR", "BY", "MACHINE", "CAUSES", "REASON")
    for node in away[:_MOST_AWAY]:
        state = Text(node.state, style="red" if "DOWN" in node.state else "yellow")
        for_ = span(now - node.since) if node.since else ""
        reason = f"{node.reason or 'no reason is set'}{' (may still run jobs)' if node.is_busy else ''}"
        table.add_row(node.name, state, for_, node.by, node.machine, ", ".join(node.causes), reason)
    yield table
    if len(away) > _MOST_AWAY:
        yield Text(f"... and {len(away) - _MOST_AWAY} more; --json has them all", style="dim")


def _queue(overview: Overview, now: float) -> Iterable[RenderableType]:
    if not overview.queue:
        yield Text("No job runs or waits.", style="dim")
        return
    table = _table("PARTITION", "RUNNING", "WAITING", "LONGEST", "WHY")
    for row in overview.queue:
        why = ", ".join(f"{count} {reason}" for reason, count in row.why[:_MOST_WHY])
        table.add_row(row.partition, str(row.running), str(row.waiting), span(now - row.oldest) if row.oldest else "", why)
    yield table


def _checks(overview: Overview, now: float) -> Iterable[RenderableType]:
    if not overview.checks:
        return
    table = _table("CHECK", "LAST RUN", "PASSED", "FAILED", "UNKNOWN", "OLDEST RESULT")
    for row in overview.checks:
        run = "suspended" if row.is_suspended else _ago(row.last_run, now) if row.has_schedule else "beside jobs"
        failed, unknown = row.results.get("failed", 0), row.results.get("unknown", 0)
        bad = (Text(str(failed), "red" if failed else ""), Text(str(unknown), "yellow" if unknown else ""))
        table.add_row(row.name, run, str(row.results.get("passed", 0)), *bad, _ago(row.oldest, now))
    yield table
    yield Text()


def _ago(at: float | None, now: float) -> str:
    return "never" if at is None else f"{span(now - at)} ago"


def _programs(overview: Overview, now: float) -> Iterable[Text]:
    """One line each: programs that are not ready, the last backup, Slurm's files."""
    late = [row for row in overview.programs if row.ready < row.wanted]
    yield from (Text(f"{row.name}: {_of(row.ready, row.wanted)} ready", style="red") for row in late)
    if not late:
        yield Text(f"All {len(overview.programs)} programs are ready.", style="green")
    if overview.has_backups:
        yield Text(f"Last backup: {_ago(overview.backup, now)}", style="" if overview.backup else "red")
    if overview.files:
        yield Text(f"Slurm's files: {overview.files}")


def _ages(readings: Readings, now: float) -> Text:
    listed: Sequence[tuple[str, Reading[object]]] = (
        ("Kubernetes", Reading(readings.objects.value, readings.objects.at, readings.objects.fault)),
        ("nodes", Reading(readings.nodes.value, readings.nodes.at, readings.nodes.fault)),
        ("queue", Reading(readings.queue.value, readings.queue.at, readings.queue.fault)),
    )
    text = Text("Read: ", style="dim")
    for at, (name, reading) in enumerate(listed):
        age = "never" if reading.at is None else f"{max(0.0, now - reading.at):.0f} s ago"
        is_old = reading.at is None or now - reading.at > _OLD_S
        text.append(f"{', ' * bool(at)}{name} {age}", style="yellow" if is_old else "dim")
        if reading.fault:
            text.append(f" ({reading.fault})", style="red")
    return text
