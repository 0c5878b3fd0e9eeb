"""The cache of finished archives: `~/.cache/slipway/images/<name>-<tag>.tar`, outside the checkout, so that equal inputs are built once."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from configs.images import content_tag, folders

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
KEPT = 4
"""Archives of one image that stay when a new one is built; Slurm's are some 340 MB each."""


def names() -> list[str]:
    """The images that can be built: each folder here with a Dockerfile."""
    return sorted(dockerfile.parent.name for dockerfile in FOLDER.glob("*/Dockerfile"))


def cache() -> Path:
    """The cache folder, as the XDG rules have it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway" / "images"


def archive(name: str) -> Path:
    """Where the archive of the image's present content is, or will be."""
    return cache() / f"{name}-{content_tag(*folders(name, ROOT))}.tar"


def base_archive(made_from: Sequence[str]) -> Path:
    """The path of the last bootstrapped root file system, by the mirror and the settings that it was made with."""
    return cache() / f"base-{hashlib.sha256(chr(0).join(made_from).encode()).hexdigest()[:12]}.tar"


@contextmanager
def locked() -> Generator[None]:
    """One build at a time: a second waits here, and then finds the archive."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def prune(name: str) -> None:
    """Removes all but the newest archives of an image, and their logs."""
    archives = sorted(cache().glob(f"{name}-*.tar"), key=lambda file: file.stat().st_mtime, reverse=True)
    for old in archives[KEPT:]:
        old.unlink(missing_ok=True)
        old.with_suffix(".log").unlink(missing_ok=True)


def copy(source: Path, target: Path) -> None:
    """Gives the archive a second name, by link if possible. The target is whole or absent at any time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        os.link(source, partial)
    except OSError:
        shutil.copyfile(source, partial)
    partial.replace(target)
