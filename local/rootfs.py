"""Root filesystems of container images, unpacked once into the cache and shared by all nodes. Nothing here talks to containerd.

An image comes from a docker or OCI archive, or from a recipe of ours. Whiteouts are applied, so every image here has one layer.
"""

import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any

from local.commands import LocalError, run

PREFIX = "localhost/slipway"
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
COMPRESSION = {b"\x1f\x8b": "--gzip", b"\x28\xb5\x2f\xfd": "--zstd", b"BZ": "--bzip2", b"\xfd7": "--xz"}


@dataclass(frozen=True)
class Image:
    """What a node needs to know of an image: its names, its OCI configuration and the place of its files. `key` identifies all content."""

    references: tuple[str, ...]
    key: str
    config: Mapping[str, Any]
    rootfs: Path


@dataclass(frozen=True)
class Recipe:
    """An image of our own: programs by their path in it, links by path and target, and how it starts."""

    name: str
    content: str
    files: Mapping[str, Path]
    entrypoint: tuple[str, ...]
    links: Mapping[str, str]

    @property
    def key(self) -> str:
        """Changes with the image's content; `content` identifies that of the files."""
        links = sorted(self.links.items())
        return sha256(json.dumps([self.content, sorted(self.files), links, self.entrypoint]).encode()).hexdigest()

    @property
    def reference(self) -> str:
        """The image's full name."""
        return f"{PREFIX}/{self.name}:{self.key[:12]}"


def our_recipes(programs: Mapping[str, Path]) -> dict[str, Recipe]:
    """Our images, by name. A built program's cache folder already names its content; Debian's two are small and hashed."""
    catatonit, busybox = Path("/usr/bin/catatonit"), _first(Path("/usr/bin/busybox"), Path("/bin/busybox"))
    applets = {f"bin/{name}": "busybox" for name in run([str(busybox), "--list"]).split() if name != "busybox"}
    recipes = [
        # `catatonit -P` is what a pause container does: sleep, and reap.
        Recipe("pause", _digest(catatonit), {"pause": catatonit}, ("/pause", "-P"), {}),
        Recipe("busybox", _digest(busybox), {"bin/busybox": busybox}, ("/bin/sh",), applets),
        *(
            Recipe(name, programs[name].parent.name, {name: programs[name]}, (f"/{name}",), {})
            for name in ("coredns", "local-path-provisioner")
        ),
    ]
    return {recipe.name: recipe for recipe in recipes}


def make(recipe: Recipe, cache: Path) -> Image:
    """The recipe's image, its files laid out in the cache unless they are there."""
    rootfs = cache / "rootfs" / recipe.key[:32]
    if not rootfs.is_dir():
        partial = _begin(rootfs)
        for name in ("tmp", *recipe.files, *recipe.links):
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
        (partial / "tmp").mkdir()
        (partial / "tmp").chmod(0o1777)
        for name, source in recipe.files.items():
            shutil.copy(source, partial / name)
        for name, target in recipe.links.items():
            (partial / name).symlink_to(target)
        partial.rename(rootfs)
    config = {"Entrypoint": list(recipe.entrypoint), "Env": ["PATH=/bin:/usr/bin:/sbin:/usr/sbin"]}
    return Image((recipe.reference,), recipe.key, config, rootfs)


def unpack(archive: Path, cache: Path) -> Image:
    """The image in an archive, unpacked into the cache if it is new. Raises LocalError if the archive holds no image."""
    try:
        with tarfile.open(archive) as tar:
            references, config_bytes, layers = _describe(tar, archive)
            key = sha256(config_bytes).hexdigest()
            rootfs = cache / "rootfs" / key[:32]
            if not rootfs.is_dir():
                partial = _begin(rootfs)
                for number, layer in enumerate(layers):
                    if number:
                        _apply_whiteouts(tar, layer, partial)
                    _extract(tar, layer, partial)
                partial.rename(rootfs)
    except FileNotFoundError:
        raise LocalError(f"{archive}: no such file") from None
    except (tarfile.TarError, ValueError, KeyError) as error:
        raise LocalError(f"{archive}: not an image archive ({str(error).splitlines()[0]})") from None
    return Image(references, key, json.loads(config_bytes).get("config") or {}, rootfs)


def add_files(image: Image, files: Mapping[str, str]) -> bool:
    """Puts files, by their paths from the root, into the unpacked image. True if one is new or changed; then the image's own
    update-ca-certificates runs. Raises LocalError."""
    unfinished = image.rootfs.with_suffix(".unfinished")
    changed = unfinished.exists()  # a run that was killed here may have had no time to trust the certificates
    for name, text in files.items():
        file = image.rootfs / name
        if not file.resolve().is_relative_to(image.rootfs.resolve()):
            raise LocalError(f"{image.references[0]}: /{name} leads out of the image")
        if file.is_file() and file.read_text() == text:
            continue
        changed = True
        unfinished.touch()
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f".{file.name}.partial")
        partial.write_text(text)
        partial.chmod(0o644)
        partial.replace(file)
    if changed and any(name.endswith(".crt") for name in files):
        run(["chroot", str(image.rootfs), "/usr/sbin/update-ca-certificates"])
    unfinished.unlink(missing_ok=True)
    return changed


def remove_unused(cache: Path, used: Iterable[Path]) -> None:
    """Removes root filesystems from the cache except those given, and what interrupted runs have left."""
    keep = set(used)
    for folder in (cache / "rootfs").glob("*"):
        if folder not in keep:
            shutil.rmtree(folder, ignore_errors=True)


def plan_whiteouts(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """From the names in a layer: the paths that it deletes from lower layers, and the folders whose lower content it hides."""
    deleted: list[str] = []
    emptied: list[str] = []
    for path in map(PurePosixPath, names):
        if path.name == OPAQUE:
            emptied.append(str(path.parent))
        elif path.name.startswith(WHITEOUT):
            deleted.append(str(path.parent / path.name.removeprefix(WHITEOUT)))
    return deleted, emptied


def _describe(tar: tarfile.TarFile, archive: Path) -> tuple[tuple[str, ...], bytes, list[str]]:
    """Names, configuration and the members that are layers, lowest first."""
    references: list[str]
    members = {str(PurePosixPath(name)) for name in tar.getnames()}
    if "manifest.json" in members:
        entries = json.loads(_read(tar, "manifest.json"))
        if len(entries) != 1:
            raise LocalError(f"{archive}: {len(entries)} images in one archive; save them one by one")
        references = [str(name) for name in entries[0].get("RepoTags") or ()]
        config, layers = entries[0]["Config"], entries[0]["Layers"]
    elif "index.json" in members:
        entries = json.loads(_read(tar, "index.json"))["manifests"]
        if len(entries) != 1:
            raise LocalError(f"{archive}: {len(entries)} images in one archive; save them one by one")
        notes = entries[0].get("annotations", {})
        references = [notes.get("io.containerd.image.name") or notes.get("org.opencontainers.image.ref.name") or ""]
        manifest = json.loads(_read(tar, _blob(entries[0]["digest"])))
        config, layers = _blob(manifest["config"]["digest"]), [_blob(layer["digest"]) for layer in manifest["layers"]]
    else:
        raise LocalError(f"{archive}: neither manifest.json nor index.json in it, so it holds no image")
    if not any(references):
        raise LocalError(f"{archive}: the image in it has no name. Save it with one, for example {PREFIX}/slurm:1.")
    return tuple(name for name in references if name), _read(tar, config), layers


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _open(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    for spelling in (name, f"./{name}"):
        try:
            file = tar.extractfile(spelling)
        except KeyError:
            continue
        if file:
            return file
    raise KeyError(f"{name} is named but not in it")


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    return _open(tar, name).read()


def _apply_whiteouts(tar: tarfile.TarFile, layer: str, root: Path) -> None:
    with tarfile.open(fileobj=_open(tar, layer), mode="r|*") as inner:
        deleted, emptied = plan_whiteouts(member.name for member in inner)
    for name in deleted:
        _remove(root / name)
    for name in emptied:
        for child in (root / name).iterdir() if (root / name).is_dir() else ():
            _remove(child)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _extract(tar: tarfile.TarFile, layer: str, root: Path) -> None:
    """GNU tar keeps owners, capabilities and device files; Python's tarfile does not."""
    head = _open(tar, layer).read(4)
    compression = [flag for magic, flag in COMPRESSION.items() if head.startswith(magic)]
    options = ("--numeric-owner", "--xattrs", "--xattrs-include=*", "--preserve-permissions", f"--exclude={WHITEOUT}*")
    process = subprocess.Popen(["tar", *compression, *options, "-xf", "-", "-C", str(root)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin
    assert process.stderr
    try:
        shutil.copyfileobj(_open(tar, layer), process.stdin, 1 << 20)
        process.stdin.close()
    except BrokenPipeError:
        pass  # tar has ended early and says why
    errors = process.stderr.read().decode(errors="replace")
    if process.wait():
        raise LocalError(f"unpacking {layer} failed:\n{errors}".rstrip())


def _begin(rootfs: Path) -> Path:
    """An empty folder to fill and rename, below a folder for root alone: images contain set-user-id programs."""
    rootfs.parent.mkdir(parents=True, exist_ok=True)
    rootfs.parent.chmod(0o700)
    partial = rootfs.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o755)
    return partial


def _digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def _first(*paths: Path) -> Path:
    return next((path for path in paths if path.exists()), paths[0])
