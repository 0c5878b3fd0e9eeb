"""Lines of slurm.conf: how Slurm reads a line, and how a value is written so that Slurm reads it back. Pure."""

import re
from collections.abc import Iterable

_NUMBER = re.compile(r"\+?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]{0,39})", re.ASCII)
_PAIR = re.compile(r"\s*([A-Za-z0-9_.]+)\s*[-+*/]?=\s*(?:\"([^\"]*)\"|(\S+))(?=\s|$)", re.ASCII)

SIZE_KEYS = (
    *("CPUs", "Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore", "RealMemory", "TmpDisk", "Gres"),
    *("CoreSpecCount", "CpuSpecList", "MemSpecLimit"),
)
"""Keys of a node line that say what jobs can get of the node: its size. slurmctld's sidecar changes them only where no job can be."""

CHECKS_PARTITION = "slipway-checks"
"""The hidden partition of the jobs of health checks, below every user's priority."""


def pairs_of(line: str) -> list[tuple[str, str]] | None:
    """The `Key=value` pairs of one line as Slurm reads it: empty for a comment or a blank line. None if Slurm could not read all of it, or
    would read more than this line. A backslash at the end continues the line; elsewhere it hides the # after it.

    Source: Slurm's src/common/parse_config.c: a # starts a comment, in quotes too; a value with a space needs double quotes.
    tests/slurm/test_parser.py has Slurm's own parser read the same lines.
    """
    text = line.split("#", 1)[0].strip(" \t")
    if "\\" in text:
        return None
    pairs: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            return None
        quoted: str | None = match[2]
        pairs.append((match[1], quoted if quoted is not None else match[3]))
        at = match.end()
    return pairs


def setting(key: str, value: str) -> str:
    """`Key=value`. An empty value, or one with a space, is in double quotes. Slurm would read the next word as a key or value otherwise."""
    return f'{key}="{value}"' if " " in value or "\t" in value or not value else f"{key}={value}"


def known(key: str, keys: Iterable[str]) -> str | None:
    """The key as Slurm spells it, in whatever case it is written; None for an unknown key."""
    return {spelling.lower(): spelling for spelling in keys}.get(key.lower())


def number_of(value: str) -> int | None:
    """A whole number as Slurm reads it, as C does: 8, 010 and 0x8 are the same. None for anything else."""
    if _NUMBER.fullmatch(value) is None:
        return None
    digits = value.lstrip("+")
    return int(digits, 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10)
