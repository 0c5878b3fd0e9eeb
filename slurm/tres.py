"""The table of trackable resources (TRES) that Slurm knows, by name. Pure; knows of no cluster.

Source: slurm.conf(5), AccountingStorageTRES, and slurmdb_tres of 26.05. Names are case-insensitive in slurm.conf.
"""

import re

PLAIN = ("billing", "cpu", "energy", "mem", "node", "pages", "vmem")
"""Resources without a name of their own."""
NAMED = ("bb", "fs", "gres", "ic", "license")
"""Kinds whose resources have a name behind a slash: `gres/gpu`, `license/matlab`, `fs/disk`."""
ALWAYS = (*PLAIN, "fs/disk")
"""What is tracked without being asked for."""
GPU = ("gpu", "gpumem", "gpuutil")
"""Generic resources that come with GPUs. Source: slurm.conf(5): gres/gpu also sets gres/gpumem and gres/gpuutil."""

_NAME = re.compile(rf"(?:{'|'.join(PLAIN)})|(?:{'|'.join(NAMED)})/[a-z0-9_.@-]+(?::[a-z0-9_.-]+)?", re.ASCII | re.IGNORECASE)
_GPUS = re.compile(r"\bgpu(?::([^:,()]+))?:(\d+)")
_GRES = re.compile(r"gres/([^:]+)(?::(.+))?", re.ASCII | re.IGNORECASE)


def is_tres(name: str) -> bool:
    """True for a name that a TRES can have: `cpu`, `gres/gpu:h100`, `license/matlab`."""
    return _NAME.fullmatch(name) is not None


def gres_of(name: str) -> tuple[str, str] | None:
    """The name and the model, maybe empty, of a generic resource: `gres/gpu:h100` is ("gpu", "h100"). None for other TRES."""
    match = _GRES.fullmatch(name)
    return None if match is None else (match[1].lower(), match[2] or "")


def count_gpus(gres: str) -> dict[str, int]:
    """GPUs by type in a node's Gres or GresUsed: `gpu:h100:4(S:0-1)`, `gpu:2`. The type may be empty."""
    counts: dict[str, int] = {}
    for kind, count in _GPUS.findall(gres):
        counts[kind] = counts.get(kind, 0) + int(count)
    return counts


def count_tres(text: str, name: str) -> int:
    """The amount of a resource without a unit in a list such as `cpu=4,mem=2G,gres/gpu=2,gres/gpu:h100=2`."""
    start = f"{name}="
    count = next((part.removeprefix(start) for part in text.split(",") if part.startswith(start)), "0")
    return int(count) if count.isdecimal() else 0
