"""Nodes whose size changes in Slurm's files, and files in which some nodes keep their size for now. Pure.

slurmctld takes another size at once: it aborts the node's jobs, or drains the node for good (26.05.5). So a node with jobs keeps its lines
in slurm.conf and gres.conf. All other lines of the new files count at once.
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
    """The nodes of both slurm.conf whose size differs."""
    before, after = _sizes(old), _sizes(new)
    return frozenset(name for name in before.keys() & after.keys() if before[name] != after[name])


def keep_sizes(old: Mapping[str, str], new: Mapping[str, str], nodes: frozenset[str]) -> dict[str, str]:
    """The files that differ from `new` so that `nodes` keep their lines from `old`, by name."""
    if not nodes:
        return {}
    texts = {name: _keep_lines(old.get(name, ""), new.get(name, ""), nodes) for name in (SLURM_CONF, GRES_CONF)}
    texts[SLURM_CONF] = _with_types(texts[SLURM_CONF], _kinds(old.get(SLURM_CONF, ""), nodes))
    return {name: text for name, text in texts.items() if text != new.get(name, "")}


def _sizes(text: str) -> dict[str, Mapping[str, str]]:
    """The settings of size by node, those of the defaults above its line included. Nodes of a line share one mapping."""
    sizes: dict[str, Mapping[str, str]] = {}
    for names, pairs in _node_lines(text):
        size = {key: value for spelling, value in pairs if (key := known(spelling, SIZE_KEYS))}
        sizes |= dict.fromkeys(names, size)
    return sizes


def _node_lines(text: str) -> Iterator[tuple[list[str], Pairs]]:
    """The nodes of each line that names some, and its pairs with those of the defaults that apply.

    `NodeName=DEFAULT` gives values to the lines below it that do not give their own (slurm.conf(5)).
    """
    defaults: dict[str, tuple[str, str]] = {}
    for pairs in map(pairs_of, text.splitlines()):
        if not pairs:
            continue
        if _name(pairs).upper() == "DEFAULT":
            defaults |= {key.lower(): (key, value) for key, value in pairs if not known(key, (_NODES,))}
        elif names := _names(pairs):
            own_keys = {key.lower() for key, _ in pairs}
            yield names, [*pairs, *(pair for key, pair in defaults.items() if key not in own_keys)]


def _keep_lines(old: str, new: str, nodes: frozenset[str]) -> str:
    """The new text with the old lines of `nodes`. They come before all other lines of nodes, so new defaults do not apply to them."""
    kept_lines = [line for names, pairs in _node_lines(old) for line in _lines(names, pairs, nodes)]
    lines: list[str] = []
    for line in new.splitlines():
        pairs = pairs_of(line) or []
        if _name(pairs):
            lines += kept_lines
            kept_lines = []
        names = _names(pairs)
        lines += [line] if nodes.isdisjoint(names) else _lines(names, pairs, frozenset(names) - nodes)
    return "".join(f"{line}\n" for line in [*lines, *kept_lines])


def _with_types(text: str, kinds: frozenset[str]) -> str:
    """A slurm.conf that lists these kinds of GRES: slurmctld refuses a node line with one that is not listed."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        pairs = pairs_of(line) or []
        for key, value in pairs:
            if known(key, (_TYPES,)):
                if missing := kinds - {kind.strip().lower() for kind in value.split(",")}:
                    all_types = ",".join([value, *sorted(missing)])
                    lines[at] = " ".join(setting(pair_key, all_types if pair_key == key else pair_value) for pair_key, pair_value in pairs)
                return "".join(f"{line}\n" for line in lines)
    return f"{setting(_TYPES, ','.join(sorted(kinds)))}\n{text}" if kinds else text


def _kinds(text: str, nodes: frozenset[str]) -> frozenset[str]:
    """The kinds of GRES that lines of `nodes` name, in lower case."""
    lists = [value for names, pairs in _node_lines(text) if not nodes.isdisjoint(names) for key, value in pairs if known(key, ("Gres",))]
    return frozenset(item.partition(":")[0].strip().lower() for gres in lists for item in gres.split(",") if item.strip())


def _name(pairs: Pairs) -> str:
    """The NodeName of a line; empty for other lines."""
    return next((value for key, value in pairs if known(key, (_NODES,))), "")


def _names(pairs: Pairs) -> list[str]:
    """The nodes of a line: none for other lines, for DEFAULT, and for names that only Slurm can expand."""
    text = _name(pairs)
    try:
        return expand(text) if text.upper() != "DEFAULT" else []
    except HostlistError:
        return []


def _lines(names: Sequence[str], pairs: Pairs, chosen: frozenset[str]) -> list[str]:
    """The line for its chosen nodes; a line for each if it has an address or a port for each."""
    mine = [at for at, name in enumerate(names) if name in chosen]
    lists = {key: values for key, value in pairs if known(key, _PER_NODE) and len(values := _values(value)) == len(names) > 1}
    groups = [[at] for at in mine] if lists else [mine] if mine else []
    return [
        " ".join(
            setting(key, fold(names[at] for at in group) if known(key, (_NODES,)) else lists[key][group[0]] if key in lists else value)
            for key, value in pairs
        )
        for group in groups
    ]


def _values(text: str) -> list[str]:
    try:
        return expand(text)
    except HostlistError:
        return []
