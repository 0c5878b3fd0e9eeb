"""Names of the images that Slipway builds. A tag is a hash of the image's inputs. The wheel of a release names the images pushed for it."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = "localhost/slipway"
"""Where images built on this machine live; a registry's prefix replaces it when they are pushed."""

PUBLISHED = "images.json"
"""File of a release's wheel, beside its packages: the release's images by name, each with its registry, tag and digest."""

SOURCES: Mapping[str, tuple[str, ...]] = {
    "controllers": ("controllers", "names", "slurm"),
    "root": ("images/slurm", "examples", "docs/use"),
}
"""Folders of the project that an image is made from beside `images/<name>`. A build names each as a build context."""


def folders(name: str, root: Path) -> list[Path]:
    """The folders that an image is made from: its own with the Dockerfile, then its further sources."""
    return [root / "images" / name, *(root / source for source in SOURCES.get(name, ()))]


def content_tag(folder: Path, *sources: Path) -> str:
    """12 hex digits over the names and bytes of the folders' files. Raises FileNotFoundError for a folder without files.

    Order, times, mode bits (they depend on the umask), caches, editors' leftovers and hidden files do not count.
    """
    files = _files(folder, "") + [file for source in sources for file in _files(source, f"/{source.name}/")]
    digest = hashlib.sha256()
    for name, file in files:
        content = file.read_bytes()
        digest.update(f"{len(name.encode())}:{name}{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def reference(name: str, root: Path) -> str:
    """Full reference of a local image, such as `localhost/slipway/slurm:0123456789ab`. `root` is the project's folder."""
    return f"{REPOSITORY}/{name}:{content_tag(*folders(name, root))}"


def default_reference(name: str, root: Path) -> str:
    """The image that pods run if the stack file names none: the release's where `root` is that of its wheel, else the local one."""
    published = root / PUBLISHED
    return str(json.loads(published.read_text())[name]) if published.exists() else reference(name, root)


def _files(folder: Path, prefix: str) -> list[tuple[str, Path]]:
    """Files by name, sorted. A prefix starts with a slash, so it cannot collide with a name in the folder."""
    named_files = ((file.relative_to(folder), file) for file in folder.rglob("*") if file.is_file())
    files = sorted((prefix + path.as_posix(), file) for path, file in named_files if _counts(path))
    if not files:
        raise FileNotFoundError(f"{folder} holds no files to make an image from")
    return files


def _counts(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    return not hidden and path.suffix not in {".pyc", ".swp", ".orig", ".rej"} and not path.name.endswith("~")
