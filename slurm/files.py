"""A name for the content of Slurm's files. Pure."""

import hashlib
from collections.abc import Mapping


def content_hash(files: Mapping[str, bytes]) -> str:
    """Twelve hexadecimal digits, by name and content of each file."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]
