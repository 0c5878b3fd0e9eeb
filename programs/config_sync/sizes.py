"""The sizes of nodes in Slurm's files: which nodes get another one, and files in which some nodes keep theirs for now. Pure.

slurmctld takes another size of a node at once: with other CPUs or GPUs it aborts the node's jobs, and with more memory than the node's
present machine has it drains the node for good (26.05.5). So a node with jobs keeps the lines that slurmctld has of it, in slurm.conf and
in gres.conf, until no job can be on it. All other lines of the new files count at once.
"""

from collections.abc import Iterator, Mapping, Sequence

from slurm.conf import SIZE_KEYS, known, pairs_of, setting
from slurm.hostlists import HostlistError, expand, fold

SLURM_CONF, GRES_CONF = "slurm.conf", "gres.conf"
_NODES, _TYPES = "NodeName", "GresTypes"
_PER_NODE = ("NodeAddr", "NodeHostname", "BcastAddr", "Port")
"""Keys of a node line whose value may be a list with one item for each of its nodes."""
Pairs = Sequence[tuple[str, str]]


def find_resized(old: str, new: str) -> frozenset[str]:
    """The nodes of both files that get another size, by the texts of two slurm.conf."""
    before, after = _sizes(old), _sizes(new)
    return frozenset(name for name in before.keys() & after.keys() if before[name] != after[name])


def keep_sizes(old: Mapping[str, str], new: Mapping[str, str], nodes: frozenset[str]) -> dict[str, str]:
    """The files that differ from `new` so that `nodes` keep their lines from `old`, by name."""
    if not nodes:
        return {}
    kept = {name: _keep_lines(old.get(name, ""), new.get(name, ""), nodes) for name in (SLURM_CONF, GRES_CONF)}
    kept[SLURM_CONF] = _with_types(kept[SLURM_CONF], _kinds(old.get(SLURM_CONF, ""), nodes))
    return {name: text for name, text in kept.items() if text != new.get(name, "")}


def _sizes(text: str) -> dict[str, Mapping[str, str]]:
    """By node: what its line says of its size, and what the defaults above it say. Nodes of a line share one mapping."""
    found: dict[str, Mapping[str, str]] = {}
    for names, pairs in _node_lines(text):
        size = {key: value for given, value in pairs if (key := known(given, SIZE_KEYS))}
        found |= dict.fromkeys(names, size)
    return found


def _node_lines(text: str) -> Iterator[tuple[list[str], Pairs]]:
    """The nodes of each line that names some, and its pairs with those of the defaults that count for it.

    `NodeName=DEFAULT` gives values to the lines below it that do not give their own (slurm.conf(5)).
    """
    defaults: dict[str, tuple[str, str]] = {}
    for pairs in map(pairs_of, text.splitlines()):
        if not pairs:
            continue
        if _name(pairs).upper() == "DEFAULT":
            defaults |= {key.lower(): (key, value) for key, value in pairs if not known(key, (_NODES,))}
        elif names := _names(pairs):
            own = {key.lower() for key, _ in pairs}
            yield names, [*pairs, *(pair for key, pair in defaults.items() if key not in own)]


def _keep_lines(old: str, new: str, nodes: frozenset[str]) -> str:
    """The new text, with the lines of `nodes` as they are in the old one. They stand above all other lines of nodes: new defaults are not
    theirs."""
    kept = [line for names, pairs in _node_lines(old) for line in _lines(names, pairs, nodes)]
    lines: list[str] = []
    for line in new.splitlines():
        pairs = pairs_of(line) or []
        if _name(pairs):
            lines += kept
            kept = []
        names = _names(pairs)
        lines += [line] if nodes.isdisjoint(names) else _lines(names, pairs, frozenset(names) - nodes)
    return "".join(f"{line}\n" for line in [*lines, *kept])


def _with_types(text: str, kinds: frozenset[str]) -> str:
    """A slurm.conf that lists these kinds of GRES: slurmctld refuses a node line with one that is not listed."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        pairs = pairs_of(line) or []
        for key, value in pairs:
            if known(key, (_TYPES,)):
                if missing := kinds - {kind.strip().lower() for kind in value.split(",")}:
                    whole = ",".join([value, *sorted(missing)])
                    lines[at] = " ".join(setting(each, whole if each == key else other) for each, other in pairs)
                return "".join(f"{each}\n" for each in lines)
    return f"{setting(_TYPES, ','.join(sorted(kinds)))}\n{text}" if kinds else text


def _kinds(text: str, nodes: frozenset[str]) -> frozenset[str]:
    """The kinds of GRES that lines of `nodes` name, in lower case."""
    lists = [value for names, pairs in _node_lines(text) if not nodes.isdisjoint(names) for key, value in pairs if known(key, ("Gres",))]
    return frozenset(item.partition(":")[0].strip().lower() for each in lists for item in each.split(",") if item.strip())


def _name(pairs: Pairs) -> str:
    """What a line names as its nodes; empty for a line about something else."""
    return next((value for key, value in pairs if known(key, (_NODES,))), "")


def _names(pairs: Pairs) -> list[str]:
    """The nodes that a line is about: none for other lines, for DEFAULT, and for names that only Slurm can expand."""
    text = _name(pairs)
    try:
        return expand(text) if text.upper() != "DEFAULT" else []
    except HostlistError:
        return []


def _lines(names: Sequence[str], pairs: Pairs, chosen: frozenset[str]) -> list[str]:
    """The line for those of its nodes that are chosen; a line for each where it has an address or a port for each."""
    mine = [at for at, name in enumerate(names) if name in chosen]
    each = {key: values for key, value in pairs if known(key, _PER_NODE) and len(values := _values(value)) == len(names) > 1}
    groups = [[at] for at in mine] if each else [mine] if mine else []
    return [
        " ".join(
            setting(key, fold(names[at] for at in group) if known(key, (_NODES,)) else each[key][group[0]] if key in each else value)
            for key, value in pairs
        )
        for group in groups
    ]


def _values(text: str) -> list[str]:
    """What a list of addresses or ports stands for."""
    try:
        return expand(text)
    except HostlistError:
        return []
