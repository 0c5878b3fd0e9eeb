"""Parses `scontrol show` of nodes and partitions. Pure.

One node is read as JSON, where a reason is a field (20 ms, as much as text). All nodes are read from `--oneliner`: 1,000 take 0.07 s and
0.5 MB. As JSON they take 1.1 s and 2.6 MB, and 0.2 s to parse (measured on 26.05).
"""

import json
import re

from slurm.records import record
from slurm.states import NodeState, node_state
from slurm.tres import count_gpus, count_tres

TYPE_CHECKING = False
if TYPE_CHECKING:  # each worker pays for what is imported here
    from typing import Any

_STATE = r"(?:NodeName|PartitionName)=(\S+) (?:.*? )??State=(\S+)"
"""The first State= of a line is the state; comments and reasons, which come after it, may contain others."""
_START = r"NodeName=(\S+) .*? SlurmdStartTime=(\S+)"
_REASON = r"NodeName=(\S+) .*? Reason=(.*?) \[[^\]\s]*@"
_PLACE = r"NodeName=(\S+) .*? Topology=(\S+)"
_NAME = re.compile(r"NodeName=(\S+) ")
_CPUS = re.compile(r" CPUAlloc=(\d+) (?:CPUEfctv=(\d+) )?CPUTot=(\d+) ")
_GRES = re.compile(r" Gres=(\S+) (?:GresDrain=\S* )?(?:GresUsed=(\S*) )?")
_TRES = re.compile(r" CfgTRES=(\S*) AllocTRES=(\S*)")
_NONE = ("No nodes in the system", "No partitions in the system")


class AnswerError(ValueError):
    """The text is not a known form of answer."""


@record
class Node:
    """A node as slurmctld has it."""

    name: str
    state: NodeState
    reason: str = ""
    """Why it is drained or down; empty otherwise."""
    reason_user: str = ""
    """Who gave the reason."""
    partitions: tuple[str, ...] = ()
    extra: str = ""
    """Slurm's free field of the node."""
    comment: str = ""
    """Its other one, which `scontrol show node` shows as Comment."""
    instance: str = ""
    """Which machine it is on (slurm.instances), as its slurmd has said; empty where it has not."""


@record
class Resources:
    """What a node has, and how much of it jobs have."""

    cpus: int = 0
    """Those that jobs may have."""
    cpus_used: int = 0
    gpus: int = 0
    gpus_used: int = 0


def read_resources(text: str) -> "dict[str, Resources]":
    """CPUs and GPUs of each node in `scontrol --oneliner show nodes`; lines without them are left out.

    AllocTRES counts GPUs only if AccountingStorageTRES names them; GresUsed is shown only with `--details`.
    """
    resources: dict[str, Resources] = {}
    for line in text.splitlines():
        name, cpus, gres, tres = (pattern.search(line) for pattern in (_NAME, _CPUS, _GRES, _TRES))
        if name is None or cpus is None:
            continue
        shown = sum(count_gpus(gres[2]).values()) if gres and gres[2] else 0
        resources[name[1]] = Resources(
            cpus=int(cpus[2] or cpus[3]),
            cpus_used=int(cpus[1]),
            gpus=sum(count_gpus(gres[1]).values()) if gres else 0,
            gpus_used=max(shown, count_tres(tres[2], "gres/gpu") if tres else 0),
        )
    return resources


def read_nodes(text: str) -> dict[str, Node]:
    """The nodes of `scontrol show node [NAME] --json` by name. A node unknown to slurmctld is missing, although scontrol succeeds.

    Raises AnswerError for an answer with errors, and for any other text.
    """
    try:
        answer = json.loads(text)
        errors = [fault.get("description") or fault.get("error") or "" for fault in answer.get("errors") or ()]
        if errors:
            raise AnswerError("; ".join(errors))
        return {entry["name"]: _node(entry) for entry in answer["nodes"]}
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise AnswerError(f"scontrol's answer is not what 26.05 gives: {text[:80]!r} ({error})") from None


def read_states(text: str) -> dict[str, NodeState]:
    """Name and state of each node in `scontrol --oneliner show nodes`. Raises AnswerError for a line without them, and for no line."""
    if text.strip() in _NONE:
        return {}
    return {name: node_state(state.split("+")) for name, state in _pairs(text).items()}


def read_extras(text: str) -> "dict[str, str]":
    """The JSON `Extra` of each node that has one, from `scontrol --oneliner show nodes`. Raises AnswerError for a line without a node."""
    if text.strip() in _NONE:
        return {}
    extras: dict[str, str] = {}
    for line in text.splitlines():
        match = re.match(r"NodeName=(\S+) ", line)
        if match is None:
            raise AnswerError(f"scontrol's answer is not what 26.05 gives: {line[:80]!r}")
        start = line.find(" Extra={") + 7
        if start > 6:
            try:
                extras[match[1]] = line[start : json.JSONDecoder().raw_decode(line, start)[1]]
            except ValueError:
                continue  # somebody else's text
    return extras


def read_brief_nodes(text: str) -> dict[str, Node]:
    """Name, state, reason and JSON `Extra` of each node in `scontrol --oneliner show nodes`. Raises AnswerError as `read_states` does.

    A comment may contain line breaks: what follows one is left out.
    """
    text = "\n".join(line for line in text.splitlines() if line.startswith("NodeName="))
    states, extras = read_states(text), read_extras(text)
    lines = [line for line in text.splitlines() if " Reason=" in line]
    reasons = {match[1]: match[2] for line in lines if (match := re.match(_REASON, line))}
    return {name: Node(name, state, reasons.get(name, ""), extra=extras.get(name, "")) for name, state in states.items()}


def read_starts(text: str) -> "dict[str, int]":
    """When each node's slurmd started, in seconds since 1970; a node whose slurmd has not registered is missing.

    From `scontrol --oneliner show nodes` with SLURM_TIME_FORMAT=%s. Raises AnswerError for times in another format.
    """
    matches = [re.match(_START, line) for line in text.splitlines()]
    times = {match[1]: match[2] for match in matches if match and match[2] not in ("None", "N/A", "Unknown")}
    if strange := next((start for start in times.values() if not start.isdecimal()), ""):
        raise AnswerError(f"scontrol's times are not in seconds: {strange!r}")
    return {name: int(start) for name, start in times.items()}


def read_places(text: str) -> "dict[str, str]":
    """Nodes' places in the topologies (slurm.topology), from `scontrol --oneliner show nodes`; nodes that were never placed are missing."""
    return {match[1]: match[2] for line in text.splitlines() if (match := re.match(_PLACE, line))}


def read_partitions(text: str) -> dict[str, str]:
    """Name and state (UP, DOWN, DRAIN, INACTIVE) of each partition in `scontrol --oneliner show partitions`. Raises AnswerError too."""
    if text.strip() in _NONE:
        return {}
    return _pairs(text)


def _node(entry: "dict[str, Any]") -> Node:
    return Node(
        name=entry["name"],
        state=node_state(entry["state"]),
        reason=entry["reason"],
        reason_user=entry.get("reason_set_by_user") or "",
        partitions=tuple(entry["partitions"]),
        extra=entry.get("extra") or "",
        comment=entry.get("comment") or "",
        instance=entry.get("instance_id") or "",
    )


def _pairs(text: str) -> dict[str, str]:
    # A line that starts otherwise belongs to the free text of the line before it.
    lines = [line for line in text.splitlines() if line.startswith(("NodeName=", "PartitionName="))]
    matches = [re.match(_STATE, line) for line in lines]
    if not lines or None in matches:
        raise AnswerError(
            "scontrol's answer is " + (f"strange: {text[:80]!r}" if not lines else f"cut: {lines[matches.index(None)][:80]!r}")
        )
    return {match[1]: match[2] for match in matches if match}
