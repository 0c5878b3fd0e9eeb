"""Writes messages for webhooks and mails. Pure: programs/mail has the words about jobs.

Job names, paths and reasons come from users. In Slack's format they must not become links or mentions: &, < and > are escaped. A
zero-width space follows each @ and ://, as Mattermost and others read mentions without brackets.
"""

import json
import re
from collections.abc import Mapping, Sequence

from programs.mail.message import describe, one_line
from slurm.hostlists import fold
from slurm.records import record

from .plan import Affected, Item, News

LONGEST = 3000
"""Most characters of a message. Slack cuts texts after 4,000."""
_VALUE = 200
_REASON, _NODES = 60, 40
"""Most characters of a reason and of a list of nodes in a title."""
_LISTED = 10
"""Most jobs of a user, and causes, in a message."""
_NOTHING = "\u200b"
_WORDS = {"OUT_OF_MEMORY": "out of memory", "NODE_FAIL": "failed with their node", "TIMEOUT": "reached the time limit"}
_STATES = {"drained": "takes no jobs", "draining": "takes no new jobs; its jobs run on for now", "down": "is down"}


@record
class Message:
    """The text of one message."""

    event: str
    title: str
    facts: tuple[tuple[str, str], ...]
    advice: str = ""

    @property
    def text(self) -> str:
        """The message as plain lines."""
        lines = [f"{label + ':':<15}{value}" for label, value in self.facts]
        return "\n".join([f"{self.title}.", "", *lines, *(["", self.advice] if self.advice else [])])


def write(news: News, cluster: str) -> Message:
    """The message of some news."""
    if news.item is not None:
        return _of_item(news.event, news.item)
    if news.affected is not None:
        return _of_affected(news.event, news.affected, cluster)
    if news.more_users:
        users = f"jobs of {news.more_users} more {'users' if news.more_users > 1 else 'user'}"
        return Message(news.event, f"And {users} run on nodes that were drained", (("Cluster", cluster),))
    if news.more is not None:
        total = sum(news.more.values())
        return Message(news.event, f"And {total} more {'jobs' if total > 1 else 'job'}: {_counted(news.more)}", (("Cluster", cluster),))
    return _of_nodes(news, cluster)


def slack(message: Message, cluster: str) -> str:
    """The body of a post in Slack's format. The facts omit Job and Name, which the title has."""
    facts = [f"{label}: {escaped(_cut(value))}" for label, value in message.facts if label not in ("Job", "Name")]
    lines = [f"*{escaped(_cut(f'[{cluster}] {message.title}'))}*", *facts]
    if message.advice:
        lines.append(message.advice)
    return json.dumps({"text": "\n".join(lines)[:LONGEST]})


def plain_json(message: Message, cluster: str) -> str:
    """The body of a post with the facts as fields."""
    facts = {_key(label): _cut(value) for label, value in message.facts}
    body = {"event": message.event, "cluster": cluster, "title": message.title, "facts": facts, "advice": message.advice}
    return json.dumps(body)


def escaped(text: str) -> str:
    """The text without links and mentions. Source: Slack's "Formatting text for app surfaces"."""
    safe = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"@|://", lambda match: f"{match[0]}{_NOTHING}", safe)


def _of_item(event: str, item: Item) -> Message:
    told = describe(item.example.job)
    if not item.example.array:
        return Message(event, f"Job {told.number} ({told.name}) {told.kind}", told.facts, told.advice)
    title = f"Array job {item.example.array} ({told.name}): {_counted(item.states)}{', and tasks are left' if item.is_left else ''}"
    return Message(event, title, (("One of them", f"{told.number} {told.kind}"), *told.facts), told.advice)


def _of_nodes(news: News, cluster: str) -> Message:
    names, count = fold(news.nodes), len(news.nodes)
    nodes = f"Node {names}" if count == 1 else f"{count} nodes ({names})"
    where = (("Cluster", cluster),)
    if news.event == "nodeResume":
        was = (("Was", one_line(news.fault.reason)),) if news.fault is not None and news.fault.reason else ()
        return Message(news.event, f"{nodes} {'is' if count == 1 else 'are'} back in service", (*where, *was))
    if news.fault is None:
        return Message(news.event, f"{nodes} more went out of service", where)
    fault = news.fault
    condition = _STATES.get(fault.state, "is in a state that is not known") if count == 1 else "are out of service"
    facts = [("Cause", fault.reason or "Slurm names none"), ("Set by", fault.by), ("Evidence", "; ".join(fault.evidence))]
    advice = "`kubectl get slurmnodes` has all causes, and what happens next."
    return Message(news.event, f"{nodes} {condition}", (*where, *((label, one_line(value)) for label, value in facts if value)), advice)


def _of_affected(event: str, affected: Affected, cluster: str) -> Message:
    nodes, jobs = len(affected.faults), len(affected.jobs)
    which = f"Node {fold(affected.faults)}" if nodes == 1 else f"{nodes} nodes ({_cut(fold(affected.faults), _NODES)})"
    runs = f"job {affected.jobs[0]} runs" if jobs == 1 else f"{jobs} jobs run"
    then = "the job goes on for now" if jobs == 1 else "the jobs go on for now"
    if affected.is_silent:
        then = "it does not answer" if nodes == 1 else "not all of them answer"
    facts = [("User", affected.user), ("Cluster", cluster)]
    facts.append(("Job" if jobs == 1 else "Jobs", _listed(affected.jobs, ", ")))
    causes: dict[str, list[str]] = {}
    for name, fault in affected.faults.items():
        causes.setdefault(one_line(fault.reason), []).append(name)
    reason = "; ".join(cause for cause in causes if cause)
    if len(causes) > 1 or len(reason) > _REASON:
        cause_lines = [f"{_cut(fold(names), _NODES)}: {cause or 'Slurm names none'}" for cause, names in causes.items()]
        facts.append(("Cause", _listed(cause_lines, "; ")))
    why = f": {_cut(reason, _REASON)}" if reason else ""
    return Message(event, f"{which}, on which your {runs}, {'was' if nodes == 1 else 'were'} drained{why}; {then}", tuple(facts))


def _listed(values: Sequence[str], between: str) -> str:
    unlisted = len(values) - _LISTED
    return between.join([*values[:_LISTED], *([f"and {unlisted} more"] if unlisted > 0 else [])])


def _counted(states: Mapping[str, int]) -> str:
    """`9980 completed, 20 failed`."""
    return ", ".join(f"{count} {_WORDS.get(state, state.lower().replace('_', ' '))}" for state, count in sorted(states.items()))


def _cut(value: str, most: int = _VALUE) -> str:
    return value if len(value) <= most else f"{value[: most - 1]}…"


def _key(label: str) -> str:
    """`Exit code` as `exitCode`."""
    first, *more = label.split()
    return first.lower() + "".join(word.capitalize() for word in more)
