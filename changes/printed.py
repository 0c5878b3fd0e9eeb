"""A story as text, as Markdown for a comment on a change, and as JSON for programs. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from changes.configuration import Item
from changes.jobs import Affected, Stranded
from changes.parameters import Need
from changes.story import Level, Story
from slurm.hostlists import fold

_MOST = 10
"""Lines of a kind in text and Markdown; JSON has all."""
_LEAVE = {"removed": "leave for good", "scaled in": "leave", "rolled": "get new pods", "resized": "get another size"}


def text(story: Story) -> list[str]:
    """The lines that `preview` prints below the objects."""
    lines: list[str] = []
    if story.items:
        lines += ["", "What changes in Slurm, and what each change needs:"]
        lines += [f"  {line}" for line in _item_lines(story.items)]
    if story.consequences:
        lines += ["", "What happens to running pods and jobs:", *(f"  {line}" for line in story.consequences)]
    if story.not_applied:
        lines += ["", "Not applied, and stays as it is:", *(f"  {line}" for line in story.not_applied)]
    if fate := _fate_lines(story):
        lines += ["", "The jobs that are there now:", *(f"  {line}" for line in fate)]
    if story.dangers:
        lines += ["", "Dangerous:", *(f"  {line}" for line in story.dangers)]
    return lines


def markdown(story: Story, title: str, counts: str) -> str:
    """A comment for a change: verdict, counts, and a section for each part of the story that is not empty."""
    verdict = {Level.NOTHING: "nothing changes", Level.CHANGES: "changes", Level.DANGEROUS: "**dangerous**"}[story.level]
    lines = [f"### {title}: {verdict}", "", counts]
    if story.dangers:
        lines += ["", "**Dangerous**", "", *(f"- {_escaped(line)}" for line in story.dangers)]
    if story.items:
        lines += ["", "**What changes in Slurm**", "", "| | What | Change | Needs |", "|---|---|---|---|"]
        rows = [(item.topic, f"`{item.subject}`", item.change, _needs(item).removeprefix("needs ")) for item in story.items[:_MOST]]
        lines += ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows]
        lines += ["", *_rest(story.items)] if len(story.items) > _MOST else []
    if story.consequences:
        lines += ["", "**What happens to running pods and jobs**", "", *(f"- {_escaped(line)}" for line in story.consequences)]
    if story.not_applied:
        lines += ["", "**Not applied, and stays as it is**", "", *(f"- {_escaped(line)}" for line in story.not_applied)]
    if fate := _fate_lines(story):
        lines += ["", "**The jobs that are there now**", "", *(f"- {_escaped(line)}" for line in fate)]
    return "\n".join(lines) + "\n"


def as_json(story: Story) -> dict[str, Any]:
    """The story for programs: plain values, times in seconds since 1970, nodes as hostlists."""
    return {
        "level": story.level.name.lower(),
        "dangers": list(story.dangers),
        "losses": list(story.losses),
        "slurm": [
            {
                "topic": item.topic,
                "subject": item.subject,
                "change": item.change,
                "needs": item.parameter.need.value,
                "effect": item.parameter.effect,
                "source": item.parameter.source,
                "nodes": fold(item.nodes),
            }
            for item in story.items
        ],
        "consequences": list(story.consequences),
        "notApplied": list(story.not_applied),
        "jobs": {
            "unknown": story.queue.unknown,
            "affected": [
                {
                    "why": affected.why,
                    "nodes": fold(affected.nodes),
                    "most": affected.most,
                    "policy": affected.policy,
                    "running": affected.jobs,
                    "users": dict(affected.users),
                    "lastEnd": affected.last_end,
                }
                for affected in story.affected
            ],
            "stranded": [{"job": job.number, "user": job.user, "reason": job.reason} for job in story.stranded],
        },
    }


def _item_lines(items: Sequence[Item]) -> list[str]:
    shown = items[:_MOST]
    widths = [max(len(cell) for cell in column) for column in zip(*((item.topic, item.subject) for item in shown), strict=True)]
    lines = [f"{item.topic:<{widths[0]}}  {item.subject:<{widths[1]}}  {item.change}: {_needs(item)}" for item in shown]
    return [*lines, *_rest(items)]


def _needs(item: Item) -> str:
    effect = f"; {item.parameter.effect}" if item.parameter.effect else ""
    need = item.parameter.need
    return f"needs {need.value}{effect}" if need is not Need.NOTHING else f"needs nothing{effect}"


def _fate_lines(story: Story) -> list[str]:
    if not story.concerns_jobs:
        return []
    if story.queue.unknown:
        return [f"unknown: {story.queue.unknown}"]
    lines = [_affected_line(affected) for affected in story.affected]
    lines += [_stranded_line(job) for job in story.stranded[:_MOST]]
    if not story.stranded:
        lines.append("all pending jobs that could run can still run after this change, judging by slurm.conf")
    return [*lines, *_rest(story.stranded)]


def _affected_line(affected: Affected) -> str:
    some = f"{affected.most} of " if affected.most else ""
    where = f"{some}{fold(affected.nodes)} {_LEAVE[affected.why]}"
    if not affected.jobs:
        return f"{where}: no job runs there"
    users = ", ".join(f"{user} {count}" for user, count in affected.users[:_MOST])
    more = f" and {len(affected.users) - _MOST} more users" if len(affected.users) > _MOST else ""
    end = "at least one has no time limit" if affected.has_endless else f"the last ends by {_time(affected.last_end)}"
    return f"{where}: {affected.jobs} running job{'' if affected.jobs == 1 else 's'} ({users}{more}); {end}; {affected.policy}"


def _stranded_line(job: Stranded) -> str:
    return f"job {job.number} of {job.user} waits, and could never run: {job.reason}"


def _rest(items: Sequence[object]) -> list[str]:
    return [f"and {len(items) - _MOST} more"] if len(items) > _MOST else []


def _time(seconds: int | None) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC") if seconds is not None else "now"


def _escaped(line: str) -> str:
    return line.replace("|", "\\|")
