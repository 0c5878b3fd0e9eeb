"""Container images made FROM scratch, written as docker archives without any builder; and what an archive says about itself.

Four images are ours: pause, a shell for local-path-provisioner's helper pods, CoreDNS and local-path-provisioner. Equal inputs give
equal bytes: no times, no owners.
"""

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from local.commands import LocalError, run

PREFIX = "localhost/slipway"


@dataclass(frozen=True)
class Recipe:
    """An image: programs by their path in it, links by path and target, and how it starts. `key` stands for all content."""

    name: str
    key: str
    files: Mapping[str, Path]
    entrypoint: tuple[str, ...]
    links: Mapping[str, str]
    on_workers: bool

    @property
    def reference(self) -> str:
        """The image's full name; its tag changes with its content."""
        return f"{PREFIX}/{self.name}:{self.key}"


def recipe(name: str, files: Mapping[str, Path], content: str, *, links: Mapping[str, str] | None = None, on_workers: bool) -> Recipe:
    """A recipe whose first file is what it starts. `content` identifies the files' content."""
    links = links or {}
    key = sha256(json.dumps([content, sorted(files), sorted(links.items())]).encode()).hexdigest()[:12]
    return Recipe(name, key, files, ("/" + next(iter(files)),), links, on_workers)


def our_recipes(programs: Mapping[str, Path]) -> dict[str, Recipe]:
    """The four images, by name. The cache folder of a built program names its content already; Debian's two are small and hashed."""
    catatonit, busybox = Path("/usr/bin/catatonit"), _first(Path("/usr/bin/busybox"), Path("/bin/busybox"))
    applets = {f"bin/{name}": "busybox" for name in run([str(busybox), "--list"]).split() if name != "busybox"}
    pause = recipe("pause", {"pause": catatonit}, sha256(catatonit.read_bytes()).hexdigest(), on_workers=True)
    recipes = (
        # `catatonit -P` is what pause does: sleep, and reap.
        Recipe(pause.name, pause.key, pause.files, ("/pause", "-P"), pause.links, on_workers=True),
        recipe("busybox", {"bin/busybox": busybox}, sha256(busybox.read_bytes()).hexdigest(), links=applets, on_workers=True),
        *(
            recipe(name, {name: programs[name]}, programs[name].parent.name, on_workers=False)
            for name in ("coredns", "local-path-provisioner")
        ),
    )
    return {each.name: each for each in recipes}


def write(recipe: Recipe, folder: Path) -> Path:
    """The recipe's archive, made unless it is there. An interrupted one is never taken for finished."""
    archive = folder / f"{recipe.name}-{recipe.key}.tar"
    if archive.exists():
        return archive
    folder.mkdir(parents=True, exist_ok=True)
    layer = _layer(recipe)
    diff = sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": _architecture(),
            "os": "linux",
            "config": {"Entrypoint": recipe.entrypoint, "Env": ["PATH=/bin:/usr/bin:/sbin:/usr/sbin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]},
        }
    ).encode()
    config_name, layer_name = f"{sha256(config).hexdigest()}.json", f"{diff}/layer.tar"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [recipe.reference], "Layers": [layer_name]}]).encode()
    partial = archive.with_suffix(".partial")
    with tarfile.open(partial, "w") as tar:
        for name, content in (("manifest.json", manifest), (config_name, config), (layer_name, layer)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    partial.rename(archive)
    return archive


def references(archive: Path) -> list[str]:
    """The image names in a docker archive or an OCI layout in a tar. Raises LocalError when it is neither, or names none."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name in ("manifest.json", "./manifest.json"):
                    content = tar.extractfile(member)
                    names = [name for image in json.load(content or io.BytesIO()) for name in image.get("RepoTags") or []]
                    break
                if member.name in ("index.json", "./index.json"):
                    content = tar.extractfile(member)
                    annotations = [image.get("annotations", {}) for image in json.load(content or io.BytesIO())["manifests"]]
                    names = [a.get("io.containerd.image.name") or a.get("org.opencontainers.image.ref.name", "") for a in annotations]
                    break
            else:
                raise LocalError(f"{archive}: neither manifest.json nor index.json in it, so it holds no image")
    except FileNotFoundError:
        raise LocalError(f"{archive}: no such file") from None
    except (tarfile.TarError, ValueError, KeyError) as error:
        raise LocalError(f"{archive}: not an image archive ({error})") from None
    names = [name for name in names if name]
    if not names:
        raise LocalError(f"{archive}: the image in it has no name. Save it with one, for example {PREFIX}/slurm:1.")
    return names


def _layer(recipe: Recipe) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        folders = {"tmp", *(str(Path(name).parent) for name in [*recipe.files, *recipe.links])} - {"."}
        for folder in sorted(folders):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        for name, source in sorted(recipe.files.items()):
            content = source.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
        for name, target in sorted(recipe.links.items()):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return buffer.getvalue()


def _architecture() -> str:
    machine = run(["uname", "-m"]).strip()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _first(*paths: Path) -> Path:
    return next((path for path in paths if path.exists()), paths[0])
