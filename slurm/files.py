"""A name for the content of Slurm's files, and where slurmctld's pod says how far files of that name are. Pure."""

import hashlib
from collections.abc import Mapping

CONDITION = "slipway.dev/FilesLive"
"""Condition of slurmctld's pod: whether slurmctld and its slurmds run with the files."""
FILES_HASH = "slipway.dev/files-hash"
"""Annotation of slurmctld's pod: the content of the files that the condition speaks of."""


def content_hash(files: Mapping[str, bytes]) -> str:
    """Twelve hexadecimal digits, by name and content of each file."""
    whole = hashlib.sha256()
    for name, content in sorted(files.items()):
        whole.update(f"{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()[:12]
