"""Two slurm.conf files side by side: nodes, partitions and settings that come, go or change, and what each change needs. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from changes.parameters import LIMITS, NODES, PARTITIONS, PLAIN, SETTINGS, Need, Parameter, find
from slurm.conf import known, pairs_of
from slurm.hostlists import HostlistError, expand, fold

Topic = Literal["nodes", "partitions", "limits", "settings", "files"]

_GOES = Parameter(Need.END, "slurmctld keeps its old files until then")


@dataclass(frozen=True)
class Configuration:
    """The declarations of a slurm.conf."""

    settings: Mapping[str, str]
    """Keys as they are written."""
    nodes: Mapping[str, Mapping[str, str]]
    """By node: the pairs of its line, without its name. Nodes of a line share one mapping."""
    partitions: Mapping[str, Mapping[str, str]]
    others: tuple[str, ...]
    """Lines of other kinds: NodeSet, DownNodes."""

    def nodes_of(self, partition: str) -> frozenset[str]:
        """The nodes of a partition: all nodes for `ALL`, none for an unknown partition."""
        text = _value(self.partitions.get(partition, {}), "Nodes")
        if text.upper() == "ALL":
            return frozenset(self.nodes)
        return frozenset(_expanded(text)) & self.nodes.keys()


EMPTY = Configuration({}, {}, {}, ())


@dataclass(frozen=True)
class Item:
    """One change in Slurm's own terms."""

    topic: Topic
    subject: str
    """What changes: nodes as a hostlist, a partition, a key, a file."""
    change: str
    parameter: Parameter = PLAIN
    nodes: frozenset[str] = frozenset()
    """The nodes that change, if nodes do."""

    @property
    def is_removal(self) -> bool:
        """True when nodes or a partition go."""
        return self.parameter.need is Need.END

    @property
    def is_addition(self) -> bool:
        """True when nodes, a partition or a line are new, which takes nothing from any job."""
        return self.change.startswith("added")


def parse(text: str) -> Configuration:
    """The declarations of a slurm.conf. Skips a line that Slurm could not read: the models refuse it before it is rendered."""
    settings: dict[str, str] = {}
    nodes: dict[str, Mapping[str, str]] = {}
    partitions: dict[str, Mapping[str, str]] = {}
    other_lines: list[str] = []
    for line in text.splitlines():
        pairs = pairs_of(line)
        if not pairs:
            continue
        (key, value), attributes = pairs[0], dict(pairs[1:])
        first = known(key, ("NodeName", "PartitionName", "NodeSet", "DownNodes", "PowerAction"))
        if first == "NodeName":
            nodes |= dict.fromkeys(_expanded(value), attributes)
        elif first == "PartitionName":
            partitions[value] = attributes
        elif first:
            other_lines.append(line.strip())
        else:
            settings |= dict(pairs)
    return Configuration(settings, nodes, partitions, tuple(other_lines))


def compare(old: Configuration, new: Configuration) -> list[Item]:
    """Every change between two files, nodes first. A key that only moves, or only changes its case, does not count."""
    return [*_nodes(old, new), *_partitions(old, new), *_settings(old, new), *_others(old, new)]


def _nodes(old: Configuration, new: Configuration) -> Iterable[Item]:
    for name in _alike(name for name in new.nodes if name not in old.nodes):
        yield Item("nodes", fold(name), f"added{_size(new.nodes[name[0]])}", nodes=frozenset(name))
    for name in _alike(name for name in old.nodes if name not in new.nodes):
        yield Item("nodes", fold(name), "removed", _GOES, frozenset(name))
    changed: dict[tuple[str, str, str], list[str]] = {}
    for name in old.nodes.keys() & new.nodes.keys():
        if old.nodes[name] != new.nodes[name]:
            for key, before, after in _pairs(old.nodes[name], new.nodes[name]):
                changed.setdefault((key, before, after), []).append(name)
    for (key, before, after), names in sorted(changed.items()):
        yield Item("nodes", fold(names), _from_to(key, before, after), find(key, NODES), frozenset(names))


def _partitions(old: Configuration, new: Configuration) -> Iterable[Item]:
    for name in sorted(old.partitions.keys() | new.partitions.keys()):
        subject = f"partition {name}"
        if name not in old.partitions:
            yield Item("partitions", subject, f"added, with {_counted(new.nodes_of(name))}")
        elif name not in new.partitions:
            yield Item("partitions", subject, "removed", _GOES)
        else:
            for key, before, after in _pairs(old.partitions[name], new.partitions[name]):
                # Nodes that vanish altogether are changes of nodes; here it is said which of them the partition loses and gets.
                change = _membership(old.nodes_of(name), new.nodes_of(name)) if key == "Nodes" else _from_to(key, before, after)
                if change:
                    yield Item("partitions", subject, change, find(key, PARTITIONS))


def _settings(old: Configuration, new: Configuration) -> Iterable[Item]:
    for key, before, after in _pairs(old.settings, new.settings):
        topic: Topic = "limits" if known(key, LIMITS) else "settings"
        yield Item(topic, key, _from_to("", before, after), find(key, SETTINGS))


def _others(old: Configuration, new: Configuration) -> Iterable[Item]:
    for line in old.others:
        if line not in new.others:
            yield Item("settings", line, "removed")
    for line in new.others:
        if line not in old.others:
            yield Item("settings", line, "added")


def _pairs(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Key, old and new value of each difference, by key; "" for a missing key. Slurm's keys are case-insensitive."""
    before = {key.lower(): (key, value) for key, value in old.items()}
    after = {key.lower(): (key, value) for key, value in new.items()}
    changes: list[tuple[str, str, str]] = []
    for lower in sorted(before.keys() | after.keys()):
        key = (after.get(lower) or before[lower])[0]
        values = before.get(lower, ("", ""))[1], after.get(lower, ("", ""))[1]
        if values[0] != values[1]:
            changes.append((key, *values))
    return changes


def _from_to(key: str, before: str, after: str) -> str:
    change = f"{before} → {after}" if before and after else f"{after}, was not set" if after else f"not set any more, was {before}"
    return f"{key} {change}".strip()


def _membership(old: frozenset[str], new: frozenset[str]) -> str:
    losses = [f"loses {fold(old - new)}"] if old - new else []
    return " and ".join([*losses, *([f"gets {fold(new - old)}"] if new - old else [])])


def _alike(names: Iterable[str]) -> list[list[str]]:
    """Groups names by prefix: the nodes of a set together."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rstrip("0123456789"), []).append(name)
    return [group for _, group in sorted(groups.items())]


def _size(line: Mapping[str, str]) -> str:
    memory = _value(line, "RealMemory")
    parts = [f"{_value(line, 'CPUs')} CPUs" if _value(line, "CPUs") else "", f"{memory} MiB" if memory else "", _value(line, "Gres")]
    sizes = ", ".join(part for part in parts if part)
    return f": {sizes} each" if sizes else ""


def _counted(nodes: frozenset[str]) -> str:
    return fold(nodes) if nodes else "no nodes"


def _value(pairs: Mapping[str, str], key: str) -> str:
    return next((value for name, value in pairs.items() if name.lower() == key.lower()), "")


def _expanded(text: str) -> list[str]:
    """The names of a hostlist. A raw line may name nodes in a way that only Slurm reads: then the text is one name."""
    try:
        return expand(text) if text and text.upper() != "DEFAULT" else []
    except HostlistError:
        return [text]
