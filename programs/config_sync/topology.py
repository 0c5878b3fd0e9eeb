"""Finds nodes that are placed where topology.yaml has nothing: slurmctld refuses such files, and does not start with them (26.05)."""

from collections.abc import Mapping
from pathlib import Path

from slurm.topology import FILE, fits, units_of


def find_misplaced(folder: Path, places: Mapping[str, str]) -> list[str]:
    """The nodes whose places do not fit the topologies of a folder's files. Raises OSError."""
    file = folder / FILE
    units = units_of(file.read_text(errors="replace")) if file.exists() else {}
    return sorted(name for name, text in places.items() if not fits(text, units))
