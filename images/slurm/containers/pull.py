"""Brings an image into the user's cache on this node and prints its id. Runs in a task of the job, with the user's rights only.

images/slurm/root/container_pull.c starts it. It imports only this package: nothing else of Slipway is in a job's root. Functions that act
belong to the cache or are named run_.
"""

import hashlib
import json
import os
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from .cache import MIB, Cache, run_removal
from .metadata import choose_manifest, read_environment, read_squashed, sum_layers
from .programs import UMOCI, UNSQUASHFS, needs_tools, run_copy, run_enroot_login, run_skopeo, run_tool
from .references import Reference, parse_reference
from .refusals import Outage, Refused

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
UNSQUASH = [UNSQUASHFS, "-no-progress", "-no-xattrs", "-da", "16", "-fr", "16"]
"""Its queues of data and fragments have so many MiB of the job's memory; by default each may take 256."""
RECORDS_LAST_S = 30 * 24 * 3600


def run_agreement(reference: Reference, record: Path, resolve: Any) -> str:
    """The digest that all nodes of the job use for a tag. The first node writes it into the user's home, which all nodes see."""
    if reference.digest:
        return reference.digest
    job = f"{os.environ.get('SLURM_CLUSTER_NAME', 'slurm')}-{record.parent.name}-{os.environ.get('SLURM_RESTART_COUNT', '0')}"
    folder = Path.home() / ".cache/slipway/jobs"
    file = folder / job / record.name
    with suppress(OSError):
        if time.time() - file.stat().st_mtime < RECORDS_LAST_S:
            return file.read_text().strip()
    digest = resolve()
    with suppress(OSError):
        for old in folder.iterdir() if folder.is_dir() else ():
            if time.time() - old.stat().st_mtime > RECORDS_LAST_S:
                run_removal(old)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mine = file.with_name(f"{file.name}.{os.uname().nodename}.{os.getpid()}")
        mine.write_text(f"{digest}\n")
        try:
            os.link(mine, file)
        except FileExistsError:
            digest = file.read_text().strip()
        finally:
            mine.unlink()
    return digest


def run_record(file: Path, *lines: str) -> None:
    """Writes a small file whole."""
    part = file.with_name(f"{file.name}.{os.getpid()}.new")
    part.write_text("".join(f"{line}\n" for line in lines))
    part.replace(file)


def run_finish(part: Path, final: Path, variables: bytes, folder: str) -> None:
    """Makes an unpacked image one of the cache, in one step."""
    rootfs = part / "rootfs"
    if folder:
        (part / "workdir").write_text(f"{folder}\n")
    (part / "env").write_bytes(variables)
    du = subprocess.run(["du", "-sm", str(rootfs)], capture_output=True, text=True, check=False).stdout.split()
    (part / "size").write_text(f"{du[0] if du else 0}\n")
    rootfs.chmod(rootfs.stat().st_mode | 0o700)
    part.rename(final)


def run_registry(cache: Cache, reference: Reference, image_name: str, record: Path) -> str:
    """Pulls from a registry unless the image is there; gives its id. If the registry does not answer, the node's last copy is used."""
    authfile = run_enroot_login(reference, cache.base)
    tag = cache.tags / record.name
    raws: dict[str, bytes] = {}

    def inspect(source: Reference) -> str:
        raw = run_skopeo(["inspect", "--raw", source.source], reference, image_name, authfile)
        digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
        raws[digest] = raw
        return digest

    try:
        digest = run_agreement(reference, record, lambda: inspect(reference))
        known = digest.removeprefix("sha256:")
        if cache.has(known):
            return known
        pinned = reference._replace(tag="", digest=digest)
        if digest not in raws:
            inspect(pinned)
        if digest not in raws:
            raise Refused(f"the registry gave another image than {pinned.source}")
        try:
            chosen = choose_manifest(raws[digest], ARCHITECTURES.get(os.uname().machine, os.uname().machine))
        except Refused as error:
            raise Refused(f"{image_name} {error}") from None
        image = chosen.removeprefix("sha256:")
        if not cache.has(image):
            run_pull(cache, pinned._replace(digest=chosen), image, image_name, raws.get(chosen), authfile)
    except Outage as error:
        with suppress(OSError, ValueError):
            name, image, when = tag.read_text().split("\n")[:3]
            if name == image_name and cache.has(image):
                cache.say(f"{error}: running the copy of {image_name} that this node has since {when} (sha256:{image[:12]})")
                return image
        raise Refused(f"{error}, and this node has no copy of {image_name}") from None
    finally:
        if authfile:
            Path(authfile).unlink()
    run_record(tag, image_name, image, time.strftime("%Y-%m-%d %H:%M"))
    return image


def run_pull(cache: Cache, reference: Reference, image: str, image_name: str, raw: bytes | None, authfile: str | None) -> None:
    """Fetches and unpacks one image; other jobs of the user that want it wait meanwhile."""
    file = cache.lock(image, image_name)
    try:
        if cache.has(image):
            return
        cache.sweep()
        part = cache.images / f"{image}.part"
        run_removal(part)
        part.mkdir(mode=0o700)
        raw = raw or run_skopeo(["inspect", "--raw", reference.source], reference, image_name, authfile)
        config = json.loads(run_skopeo(["inspect", "--config", "--raw", reference.source], reference, image_name, authfile))
        mine = ARCHITECTURES.get(os.uname().machine, os.uname().machine)
        if config.get("architecture") not in (None, "", mine):
            raise Refused(f"{image_name} is for {config['architecture']}, and this node is {mine}")
        needed = sum_layers(raw)
        cache.make_room(image_name, needed // MIB + 1)
        run_copy(reference.source, part / "oci", reference, image_name, authfile)
        run_tool([UMOCI, "raw", "unpack", "--rootless", "--image", f"{part / 'oci'}:image", str(part / "rootfs")], reference, image_name)
        run_removal(part / "oci")
        run_finish(part, cache.images / image, *read_environment(config))
    finally:
        run_removal(cache.images / f"{image}.part")
        if file is not None:
            os.close(file)


def run_file(cache: Cache, reference: Reference, image_name: str) -> str:
    """Unpacks a squashfs file or an archive unless it is there; gives its id, which changes with the file."""
    try:
        with Path(reference.name).open("rb") as stream:
            start = stream.read(4)
            status = os.fstat(stream.fileno())
    except IsADirectoryError:
        start, status = b"", Path(reference.name).stat()
    except OSError as error:
        raise Refused(f"{image_name}: {error.strerror}") from None
    if reference.kind == "file":
        kind = "squashfs" if start == b"hsqs" else run_archive_kind(reference.name, image_name)
        reference = reference._replace(kind=kind)
    about = [reference.source, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
    image = hashlib.sha256(json.dumps(about).encode()).hexdigest()
    if cache.has(image):
        return image
    if missing := [tool for tool in needs_tools(reference.kind) if not Path(tool).exists()]:
        raise Refused(f"the job's root has no {missing[0]}: an administrator adds it to the root's image")
    if reference.kind != "squashfs":
        run_pull(cache, reference, image, image_name, None, None)
        return image
    file = cache.lock(image, image_name)
    part = cache.images / f"{image}.part"
    try:
        if not cache.has(image):
            cache.sweep()
            run_removal(part)
            part.mkdir(mode=0o700)
            cache.make_room(image_name, 2 * status.st_size // MIB + 1)
            # 2: something was left out, such as a device node, which only root makes.
            run_tool([*UNSQUASH, "-d", str(part / "rootfs"), reference.name], reference, image_name, (0, 2))
            texts: list[str] = []
            for name in ("environment", "rc"):
                path = part / "rootfs/etc" / name
                texts.append(path.read_text(errors="replace") if path.is_file() and not path.is_symlink() else "")
            run_finish(part, cache.images / image, *read_squashed(*texts))
    finally:
        run_removal(part)
        if file is not None:
            os.close(file)
    return image


def run_archive_kind(path: str, image_name: str) -> str:
    """The transport for a tar or a folder: an OCI layout, or what `docker save` writes."""
    import tarfile

    if Path(path).is_dir():
        return "oci"
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.removeprefix("./") == "oci-layout":
                    return "oci-archive"
                if member.name.removeprefix("./") == "manifest.json":
                    return "docker-archive"
    except (tarfile.TarError, OSError) as error:
        raise Refused(f"{image_name} is neither a squashfs file nor an archive of an image ({error})") from None
    raise Refused(f"{image_name} is neither a squashfs file nor an archive of an image")


def main(base: str, record: str, image_name: str, registry: str, node: str, room: str) -> int:
    """Prints the image's id, or one line on stderr. `room` is the descriptor of the step's slurmstepd, which makes room if it can."""
    cache = Cache(Path(base), node, socket.socket(fileno=int(room)) if room else None)
    os.umask(0o022)
    try:
        reference = parse_reference(image_name, registry)
        if reference.kind != "registry":
            image = run_file(cache, reference, image_name)
        else:
            if missing := [tool for tool in needs_tools(reference.kind) if not Path(tool).exists()]:
                raise Refused(f"the job's root has no {missing[0]}: an administrator adds it to the root's image")
            image = run_registry(cache, reference, image_name, Path(record))
        run_record(Path(record), image_name, image)
    except Refused as error:
        cache.say(" ".join(str(error).split()))
        return 1
    except OSError as error:
        cache.say(" ".join(f"{image_name}: {error}".split()))
        return 1
    finally:
        cache.give_back()
    print(image)
    return 0
