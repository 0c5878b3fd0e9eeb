"""Builds an image with buildah into a docker archive, from the same Dockerfile that `docker build` takes.

The base is Debian's official image if its registry answers, else one that mmdebstrap makes. The archive appears whole or not at all. Layers
are squashed and uncompressed, so that nodes import them at the speed of the disk.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from configs.images import folders, reference
from images import debian, python, store
from images.steps import BuildError, run, step

VERSIONS = "usr/share/slipway/versions"
"""File of the image that lists what was installed, as name=version lines."""

_BASE_LASTS_S = 24 * 3600
"""For so long a bootstrapped base is used again, by other images and after a change; its packages are then fetched again."""
_TRUST = {"default": [{"type": "insecureAcceptAnything"}]}  # as Docker does; Debian's packages are signed one by one


@dataclass(frozen=True)
class Builder:
    """buildah with a store of its own in the scratch folder, so that nothing of it outlives a build."""

    scratch: Path
    log: Path

    @property
    def policy(self) -> Path:
        """A trust policy for the image tools, which a bare machine lacks."""
        return self.scratch / "policy.json"

    def command(self, verb: str, *arguments: str) -> list[str]:
        """The full command line of one buildah verb."""
        policy = [f"--signature-policy={self.policy}"] if verb in {"build", "from", "commit"} else []
        return ["buildah", f"--root={self.scratch / 'root'}", f"--runroot={self.scratch / 'run'}", verb, *policy, *arguments]

    def buildah(self, verb: str, *arguments: str) -> str:
        """Runs one verb; gives its output without the last line feed."""
        return run(self.command(verb, *arguments), self.log).strip()


def default_base(dockerfile: str) -> str:
    """The image that a Dockerfile's `ARG BASE=` names."""
    match = re.search(r"^ARG BASE=(\S+)$", dockerfile, re.MULTILINE)
    if match is None:
        raise BuildError("the Dockerfile has no line `ARG BASE=<image>`")
    return match[1]


def labels(name: str, versions: str, base: str) -> dict[str, str]:
    """The labels that record an image's contents, from its list of versions. Its own version is that of the entry with its name."""
    entries = dict(line.split("=", 1) for line in versions.split())
    return {
        **({"org.opencontainers.image.version": entries[name]} if name in entries else {}),
        "org.opencontainers.image.base.name": base,
        **{f"dev.slipway.version.{name}": version for name, version in entries.items()},
    }


def build(name: str, console: Console, mirror: str | None = None) -> Path:
    """Gives the archive of the image's current content; makes it only if the cache lacks it. Raises BuildError."""
    target = store.archive(name)
    if target.exists():
        with step(console, f"image {name}") as notes:
            notes.append("unchanged, nothing to build")
        return target
    with store.locked():
        if target.exists():
            return target
        if os.geteuid() != 0:
            raise BuildError("building an image needs root (a file system with foreign owners is made): run this with sudo")
        log = target.with_suffix(".log")
        log.unlink(missing_ok=True)
        missing = debian.missing_packages()
        if missing:
            with step(console, f"Debian packages {', '.join(missing)}"):
                debian.install(missing, log)
        with scratch_folder(store.cache()) as scratch:
            _build(name, target, Builder(scratch, log), console, mirror)
        store.prune(name)
    return target


def _build(name: str, target: Path, builder: Builder, console: Console, mirror: str | None) -> None:
    folder, *sources = folders(name, store.ROOT)
    builder.policy.write_text(json.dumps(_TRUST))
    settings = debian.read_settings(builder.log)
    base = _base(default_base((folder / "Dockerfile").read_text()), builder, settings, console, mirror)

    with step(console, f"image {name}: packages") as notes:
        carried = builder.scratch / "apt.conf"
        carried.write_text("".join(f"{line}\n" for line in settings))
        volumes = [f"--volume={carried}:/etc/apt/apt.conf.d/00build:ro"]
        contexts = [f"--build-context={source.name}={source}" for source in sources]
        secrets = [f"--secret=id={key},src={file}" for key, file in python.write_settings(builder.scratch, builder.log).items()]
        options = ["--isolation=chroot", "--layers=false", f"--build-arg=BASE={base}", *volumes, "--tag", "localhost/built"]
        builder.buildah("build", *options, *contexts, *secrets, str(folder))
        container = builder.buildah("from", "--pull-never", "localhost/built")
        versions = (Path(builder.buildah("mount", container)) / VERSIONS).read_text()
        builder.buildah("umount", container)
        notes.append(", ".join(line.replace("=", " ") for line in versions.split()))

    with step(console, f"image {name}: archive") as notes:
        marks = [f"--label={key}={value}" for key, value in labels(name, versions, base).items()]
        builder.buildah("config", *marks, container)
        partial = builder.scratch / "image.tar"
        builder.buildah("commit", "--squash", "--quiet", container, f"docker-archive:{partial}:{reference(name, store.ROOT)}")
        if store.archive(name) != target:
            raise BuildError(f"what {name} is made from changed while it was built; run this again")
        partial.replace(target)
        notes.append(f"{target.stat().st_size / 1e6:.0f} MB")


def _base(official: str, builder: Builder, settings: list[str], console: Console, mirror: str | None) -> str:
    with step(console, "base image") as notes:
        if mirror is None and debian.registry_has(official, builder.policy):
            notes.append(official)
            return f"docker://{official}"  # buildah takes a short name only if its settings name a registry to search
        source = mirror or debian.read_mirror(builder.log)
        root = store.base_archive([source, *settings])
        if not root.exists() or time.time() - root.stat().st_mtime > _BASE_LASTS_S:
            fresh = builder.scratch / "base.tar"
            debian.bootstrap(fresh, source, settings, builder.log)
            fresh.replace(root)
        container = builder.buildah("from", "scratch")
        builder.buildah("add", "--quiet", container, str(root), "/")
        name = f"localhost/slipway/base:{debian.SUITE}"
        builder.buildah("commit", "--quiet", "--rm", container, name)
        notes.append(f"Debian {debian.SUITE} by mmdebstrap, no registry" if mirror is None else f"Debian {debian.SUITE} by mmdebstrap")
        return name


@contextmanager
def scratch_folder(parent: Path) -> Generator[Path]:
    """A folder that is removed afterwards, with all mounts below it. First removes what a killed build left."""
    for left in parent.glob(".build-*"):
        _remove(left)
    folder = Path(tempfile.mkdtemp(prefix=".build-", dir=parent))
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    mounted = [line.split(" ")[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in sorted((point for point in mounted if point.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", point], check=False)
    shutil.rmtree(folder)
