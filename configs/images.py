"""Names of the images that Slipway builds. A tag is a hash of the image's folder, so equal inputs are one image and a change is a new name.

Reads the folder only; building is the trade of `images/`.
"""

import hashlib
from pathlib import Path

REPOSITORY = "localhost/slipway"
"""Where images built on this machine live; a registry's prefix replaces it when they are pushed."""


def content_tag(folder: Path) -> str:
    """12 hex digits over the names and bytes of the folder's files.

    Order, times and mode bits do not count (a checkout's umask must not name another image), nor do caches, editors' leftovers and hidden
    files.
    Raises FileNotFoundError for a folder without files.
    """
    files = sorted(
        (each.relative_to(folder).as_posix(), each) for each in folder.rglob("*") if each.is_file() and _counts(each.relative_to(folder))
    )
    if not files:
        raise FileNotFoundError(f"{folder} holds no files to make an image from")
    digest = hashlib.sha256()
    for name, file in files:
        content = file.read_bytes()
        digest.update(f"{len(name.encode())}:{name}{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def reference(name: str, folder: Path) -> str:
    """Full reference of a local image, such as `localhost/slipway/slurm:0123456789ab`."""
    return f"{REPOSITORY}/{name}:{content_tag(folder)}"


def _counts(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    return not hidden and path.suffix not in {".pyc", ".swp", ".orig", ".rej"} and not path.name.endswith("~")
