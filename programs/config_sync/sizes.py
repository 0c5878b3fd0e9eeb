"""The sizes of nodes in Slurm's files: which nodes get another one, and files in which some nodes keep theirs for now. Pure.

slurmctld takes another size of a node at once: with other CPUs or GPUs it aborts the node's jobs, and with more memory than the node's
present machine has it drains the node for good (26.05.5). So a node with jobs keeps the lines that slurmctld has of it, in slurm.conf and
in gres.conf, until no job can be on it. All other lines of the new files count at once.
"""

from collections.abc import Iterable, Mapping, Sequence

from slurm.conf import SIZE_KEYS, known, pairs_of, setting
from slurm.hostlists import HostlistError, expand, fold

SLURM_CONF, GRES_CONF = "slurm.conf", "gres.conf"
_TYPES = "GresTypes"
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
    """By node: what its line says of its size. Nodes of a line share one mapping."""
    found: dict[str, Mapping[str, str]] = {}
    for pairs in map(pairs_of, text.splitlines()):
        if pairs and (names := _names(pairs)):
            size = {key: value for given, value in pairs if (key := known(given, SIZE_KEYS))}
            found |= dict.fromkeys(names, size)
    return found


def _keep_lines(old: str, new: str, nodes: frozenset[str]) -> str:
    """The new text, with the lines of `nodes` as they are in the old one."""
    kept = [_line(own, pairs) for line in old.splitlines() if (pairs := pairs_of(line)) and (own := _among(pairs, nodes))]
    lines: list[str] = []
    for line in new.splitlines():
        pairs = pairs_of(line)
        if not pairs or not _among(pairs, nodes):
            lines.append(line)
            continue
        lines += kept
        kept = []
        if rest := [name for name in _names(pairs) if name not in nodes]:
            lines.append(_line(rest, pairs))
    lines += kept
    return "".join(f"{line}\n" for line in lines)


def _with_types(text: str, kinds: frozenset[str]) -> str:
    """A slurm.conf that lists these kinds of GRES: slurmctld refuses a node line with one that is not listed."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        for key, value in pairs_of(line) or ():
            if known(key, (_TYPES,)):
                missing = kinds - {kind.strip() for kind in value.split(",")}
                if missing:
                    lines[at] = setting(key, ",".join([value, *sorted(missing)]))
                return "".join(f"{each}\n" for each in lines)
    return f"{setting(_TYPES, ','.join(sorted(kinds)))}\n{text}" if kinds else text


def _kinds(text: str, nodes: frozenset[str]) -> frozenset[str]:
    """The kinds of GRES that lines of `nodes` name."""
    found: set[str] = set()
    for pairs in map(pairs_of, text.splitlines()):
        if pairs and _among(pairs, nodes):
            found |= {item.partition(":")[0] for key, value in pairs if known(key, ("Gres",)) for item in value.split(",") if item}
    return frozenset(found)


def _names(pairs: Pairs) -> list[str]:
    """The nodes that a line is about: none for other lines, for DEFAULT, and for names that only Slurm can expand."""
    text = next((value for key, value in pairs if known(key, ("NodeName",))), "")
    try:
        return expand(text) if text and text.upper() != "DEFAULT" else []
    except HostlistError:
        return []


def _among(pairs: Pairs, nodes: frozenset[str]) -> list[str]:
    return [name for name in _names(pairs) if name in nodes]


def _line(names: Iterable[str], pairs: Pairs) -> str:
    """The line for some of its nodes."""
    return " ".join(setting(key, fold(names) if known(key, ("NodeName",)) else value) for key, value in pairs)
