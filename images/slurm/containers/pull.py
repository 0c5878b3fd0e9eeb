"""Brings an image into the user's cache on this node, and prints its id. Runs in a task of the job, with its user's rights only.

`/usr/lib/slipway/container` (images/slurm/root/container_main.c) starts it where the job has not used the image on this node yet, as an
imported module: those are compiled beforehand. skopeo fetches, umoci or unsquashfs unpacks. The file is one, as nothing else of Slipway is
in a job's root; the functions that act are the cache's and those named run_.

The cache of a user: images/ID/{rootfs,env,workdir,size,used}, images/ID.lock (exclusive while it is pulled or removed), images/ID.part
(unfinished), tags/ (what each tag was last), jobs/JOB/ (containers, each with the id of its image, which stays until root removes the job's
folder at its end).
"""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SKOPEO, UMOCI, UNSQUASHFS = "/usr/bin/skopeo", "/usr/bin/umoci", "/usr/bin/unsquashfs"
STALL_S = 60
"""A registry that sends nothing for so long has gone."""
RECORDS_LAST_S = 30 * 24 * 3600
_MIB = 1 << 20


class Refused(Exception):
    """Why there is no container, in one line for the job's stderr."""


class Outage(Refused):
    """The registry does not answer: a copy from before will do."""


class Reference(NamedTuple):
    """An image as a user names it."""

    kind: str
    """`registry`, `squashfs`, or the transport of skopeo for a file."""
    name: str
    """HOST/PATH without tag and digest, or a path."""
    tag: str = ""
    digest: str = ""

    @property
    def host(self) -> str:
        """The registry."""
        return self.name.partition("/")[0]

    @property
    def source(self) -> str:
        """What skopeo is given."""
        if self.kind != "registry":
            return f"{self.kind}:{self.name}" + (f":{self.tag}" if self.tag else "")
        return f"docker://{self.name}@{self.digest}" if self.digest else f"docker://{self.name}:{self.tag}"


def parse_reference(text: str, registry: str) -> Reference:
    """Reads [docker://][USER@][HOST#|HOST/]PATH[:TAG][@DIGEST], /path, or TRANSPORT:/path. `registry` stands for a missing HOST."""
    for transport in ("oci-archive", "docker-archive", "oci"):
        if text.startswith(f"{transport}:"):
            path, _, tag = text.removeprefix(f"{transport}:").partition(":")
            return Reference(transport, os.path.realpath(path), tag)
    if text.startswith(("/", "./", "../")):
        return Reference("file", os.path.realpath(text))
    rest = text.removeprefix("docker://").removeprefix("dockerd://")
    rest, _, digest = rest.partition("@sha256:")
    rest = rest.rpartition("@")[2]  # enroot's USER@: skopeo finds the login by the host
    host, hash_sign, path = rest.partition("#")
    if not hash_sign:
        host, slash, path = rest.partition("/")
        if not slash or not ("." in host or ":" in host or host == "localhost"):
            host, path = registry, rest
    if not host:
        raise Refused(
            f"{text}: name the registry as well, such as docker://registry.example.com/team/ubuntu:24.04; "
            "this cluster has no default (slurm.containers.registry)"
        )
    path, _, tag = path.partition(":")
    if not path or path.strip("/") != path or (digest and len(digest) != 64):
        raise Refused(f"{text}: no image's name; write docker://HOST/PATH:TAG")
    return Reference("registry", f"{host}/{path}", "" if digest else tag or "latest", f"sha256:{digest}" if digest else "")


def choose_manifest(raw: bytes, architecture: str) -> str:
    """The digest of the manifest that this node runs: of an index the one for its architecture. Raises Refused."""
    manifest = json.loads(raw)
    if "manifests" not in manifest:
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"
    offered = {each.get("platform", {}).get("architecture", "?"): each["digest"] for each in reversed(manifest["manifests"])}
    if architecture not in offered:
        named = ", ".join(sorted(name for name in offered if name not in ("unknown", "?"))) or "no architecture"
        raise Refused(f"it is for {named}, and this node is {architecture}")
    return offered[architecture]


def sum_layers(raw: bytes) -> int:
    """Bytes that may be needed on the disk: the layers as they are fetched, and what is in them."""
    layers = json.loads(raw).get("layers", [])
    packed = sum(layer.get("size", 0) for layer in layers)
    return packed + sum(layer.get("size", 0) * (2 if layer.get("mediaType", "").endswith("gzip") else 1) for layer in layers)


_LOGIN = r"unauthorized|authentication required|access to the resource is denied|denied: |invalid username|no basic auth"
_MISSING = r"manifest unknown|name unknown|not found|status(?: code)?:? 404"
_UNTRUSTED = r"x509|certificate|server gave http response to https"
_SILENT = (
    r"connection refused|no such host|server misbehaving|timeout|deadline exceeded|unreachable|connection reset|\beof\b|temporary failure|"
    r"status(?: code)?:? 50\d"
)


def explain(said: str, image: str, host: str) -> Refused:
    """One line for what skopeo, umoci or unsquashfs said."""
    low = said.lower()
    if "no space left" in low or "disk quota" in low:
        return Refused(f"{image} does not fit on this node's disk for containers")
    if re.search(_LOGIN, low):
        login = f"skopeo login --authfile ~/.config/containers/auth.json {host}"
        return Refused(f"{image} needs a login, or does not exist: run {login}, or check the name")
    if re.search(_UNTRUSTED, low):
        return Refused(f"{host} cannot be trusted ({last_line(said)}): see /etc/containers/certs.d and registries.conf")
    if re.search(_SILENT, low):
        return Outage(f"the registry {host} does not answer ({last_line(said)})")
    if re.search(_MISSING, low):
        return Refused(f"there is no image {image}: check its name and tag")
    return Refused(f"{image}: {last_line(said)}")


def last_line(said: str) -> str:
    """The end of what a program said, without its log's decoration."""
    lines = [line for line in said.strip().splitlines() if line.strip()]
    line = lines[-1] if lines else "it said nothing"
    _, found, message = line.partition('msg="')
    return (message.rstrip('"') if found else line)[-300:]


def plan_evictions(images: Mapping[str, tuple[float, int]], needed: int, bound: int) -> list[str]:
    """Images to remove so that `needed` more MiB fit, those first that were used longest ago. `images`: id to (last use, MiB)."""
    total = sum(size for _, size in images.values()) + needed
    gone: list[str] = []
    for name, (_, size) in sorted(images.items(), key=lambda each: each[1][0]):
        if total <= bound:
            break
        gone.append(name)
        total -= size
    return gone


def read_environment(config: Mapping[str, Any]) -> tuple[bytes, str]:
    """An image's variables, each ended by a zero byte, and its folder."""
    inner: Mapping[str, Any] = config.get("config") or {}
    given: list[Any] = inner.get("Env") or []
    variables = [word for word in given if isinstance(word, str) and "=" in word and "\0" not in word]
    folder = inner.get("WorkingDir") or ""
    return "".join(f"{word}\0" for word in variables).encode(), folder if folder.startswith("/") and "\n" not in folder else ""


def read_squashed(environment: str, start: str) -> tuple[bytes, str]:
    """The same of an image in enroot's format: /etc/environment and the `cd` of /etc/rc."""
    words = [line.strip() for line in environment.splitlines() if "=" in line and not line.lstrip().startswith("#")]
    folder = ""
    for line in start.splitlines():
        if line.startswith("cd "):
            folder = line[3:].split("&&")[0].split(";")[0].strip().strip("\"'")
    plain = [
        f"{name}={value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in chr(34) + chr(39) else value}\0"
        for name, _, value in (word.partition("=") for word in words)
    ]
    return "".join(plain).encode(), folder if folder.startswith("/") else ""


def needs_tools(kind: str) -> list[str]:
    """Programs that an image takes."""
    return [UNSQUASHFS] if kind == "squashfs" else [SKOPEO, UMOCI]


class Cache:
    """The user's folder on this node. The only part that acts, with the functions named run."""

    def __init__(self, base: Path, node: str, bound_mib: int) -> None:
        self.base, self.node, self.bound_mib = base, node, bound_mib
        self.images = base / "images"
        self.tags = base / "tags"
        for folder in (self.images, self.tags):
            folder.mkdir(mode=0o700, exist_ok=True)

    def say(self, text: str) -> None:
        """A line in the job's stderr."""
        print(f"slipway: {self.node}: {text}", file=sys.stderr, flush=True)

    def lock(self, image: str, image_name: str, waits: bool = True) -> int | None:
        """The image's lock, to pull or remove it; None where another has it, and `waits` is off."""
        file = os.open(self.images / f"{image}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not waits:
                os.close(file)
                return None
            self.say(f"another job of yours is pulling {image_name} on this node: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def has(self, image: str) -> bool:
        """True where the image is there, whole."""
        return (self.images / image / "rootfs").is_dir()

    def sweep(self) -> None:
        """Removes what pulls left that were killed."""
        for part in self.images.glob("*.part"):
            if (file := self.lock(part.stem, "", waits=False)) is not None:
                run_removal(part)
                os.close(file)

    def make_room(self, image_name: str, needed_mib: int) -> None:
        """Removes images that no step uses until so much more fits. Raises Refused."""
        listed = {each.name: (run_used(each), run_size(each)) for each in self.images.iterdir() if each.suffix == "" and each.is_dir()}
        if self.bound_mib:
            for name in plan_evictions(listed, needed_mib, self.bound_mib):
                if self.evict(name):
                    listed.pop(name)
            left = sum(size for _, size in listed.values())
            if left + needed_mib > self.bound_mib:
                raise Refused(
                    f"{image_name} needs about {needed_mib} MiB, and this node's cache of images is full: "
                    f"{left} of {self.bound_mib} MiB are in use by your running steps (slurm.containers.cacheMiB)"
                )
        for name, _ in sorted(listed.items(), key=lambda each: each[1]):
            if run_free(self.base) >= needed_mib:
                return
            self.evict(name)
        if (free := run_free(self.base)) < needed_mib:
            raise Refused(f"{image_name} needs about {needed_mib} MiB, and this node's disk for containers has {free} MiB free")

    def evict(self, image: str) -> bool:
        """Removes an image that no step uses."""
        file = self.lock(image, "", waits=False)
        if file is None:
            return False
        if any(run_text(each).strip() == image for each in self.base.glob("jobs/*/*/image")):
            os.close(file)
            return False
        gone = self.images / f"{image}.part"
        run_removal(gone)
        (self.images / image).rename(gone)
        run_removal(gone)
        os.close(file)
        return True


def run_removal(folder: Path) -> None:
    """Removes a tree, in which folders may be closed to their owner. Neither program follows a link on its way."""
    if not folder.is_symlink() and not folder.exists():
        return
    if subprocess.run(["/bin/rm", "-rf", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
        subprocess.run(["/bin/chmod", "-R", "u+rwX", str(folder)], capture_output=True, check=False)
        subprocess.run(["/bin/rm", "-rf", str(folder)], capture_output=True, check=False)


def run_used(image: Path) -> float:
    """When a step last began with the image."""
    with suppress(OSError):
        return (image / "used").stat().st_mtime
    return 0.0


def run_size(image: Path) -> int:
    """MiB of an image."""
    with suppress(OSError, ValueError):
        return int((image / "size").read_text())
    return 0


def run_text(file: Path) -> str:
    """A small file of the cache; empty where it is not there."""
    with suppress(OSError):
        return file.read_text(errors="replace")
    return ""


def run_free(folder: Path) -> int:
    """MiB that are free on the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize // _MIB


def run_policy() -> list[str]:
    """skopeo's option where nobody has said which signatures images need: without a file about it skopeo refuses all images."""
    policies = (Path("/etc/containers/policy.json"), Path("~/.config/containers/policy.json").expanduser())
    return [] if any(policy.exists() for policy in policies) else ["--insecure-policy"]


def run_skopeo(arguments: Sequence[str], reference: Reference, image_name: str, authfile: str | None = None) -> bytes:
    """What skopeo prints. Raises Refused in words for a person."""
    any_policy = run_policy()
    more = ["--authfile", authfile] if authfile else []
    done = subprocess.run(
        [SKOPEO, "--command-timeout", "60s", *any_policy, *arguments[:1], *more, *arguments[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise explain(done.stderr.decode(errors="replace"), image_name, reference.host)
    return done.stdout


def run_copy(source: str, layout: Path, reference: Reference, image_name: str, authfile: str | None) -> None:
    """Fetches an image into an OCI layout; gives up when nothing has come for a minute."""
    any_policy = run_policy()
    more = ["--src-authfile", authfile] if authfile else []
    command = [SKOPEO, *any_policy, "copy", "--quiet", *more, source, f"oci:{layout}:image"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        before, since = -1, time.monotonic()
        said = b""
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02 if before < 0 else 0.2)
            said += process.stderr.read() or b""
            if process.returncode is not None:
                break
            if (now := run_bytes(layout)) != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > STALL_S:
                process.kill()
                raise Outage(f"the registry {reference.host} has sent nothing for {STALL_S} s")
    if process.returncode:
        raise explain(said.decode(errors="replace"), image_name, reference.host)


def run_bytes(layout: Path) -> int:
    """Bytes that have come so far."""
    total = 0
    for folder, _, files in os.walk(layout):
        for name in files:
            with suppress(OSError):
                total += (Path(folder) / name).lstat().st_size
    return total


def run_tool(command: Sequence[str], reference: Reference, image_name: str, allowed: Sequence[int] = (0,)) -> None:
    """Runs what unpacks."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    said = (done.stderr + done.stdout).decode(errors="replace")
    if done.returncode not in allowed or "no space left" in said.lower():
        raise explain(said, image_name, reference.host)


def run_enroot_login(reference: Reference, folder: Path) -> str | None:
    """A file for skopeo with the login that the user has for enroot, where there is none for skopeo; None without it."""
    home = Path.home()
    credentials = home / ".config/enroot/.credentials"
    named = [os.environ.get("REGISTRY_AUTH_FILE"), home / ".config/containers/auth.json", home / ".docker/config.json"]
    for each in named:
        with suppress(OSError, ValueError):
            if each and reference.host in json.loads(Path(each).read_text()).get("auths", {}):
                return None
    if not credentials.is_file():
        return None
    import base64
    import netrc

    try:
        login = netrc.netrc(str(credentials)).authenticators(reference.host)
    except (OSError, netrc.NetrcParseError) as error:
        raise Refused(f"~/.config/enroot/.credentials: {error}") from None
    if login is None:
        return None
    word = base64.b64encode(f"{login[0]}:{os.path.expandvars(login[2] or '')}".encode()).decode()
    file = folder / f"auth.{os.getpid()}.json"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as stream:
        json.dump({"auths": {reference.host: {"auth": word}}}, stream)
    return str(file)


def run_agreement(reference: Reference, record: Path, resolve: Any) -> str:
    """The digest that all nodes of the job take a tag for: the first to ask writes it into the user's home, where it is seen by all."""
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
    """Pulls from a registry unless the image is there; gives its id. Where the registry does not answer, the node's last copy will do."""
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
            raise Refused(f"{image_name}: {error}") from None
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
        cache.make_room(image_name, needed // _MIB + 1)
        run_copy(reference.source, part / "oci", reference, image_name, authfile)
        run_tool([UMOCI, "raw", "unpack", "--rootless", "--image", f"{part / 'oci'}:image", str(part / "rootfs")], reference, image_name)
        run_removal(part / "oci")
        run_finish(part, cache.images / image, *read_environment(config))
    finally:
        run_removal(cache.images / f"{image}.part")
        if file is not None:
            os.close(file)


def run_file(cache: Cache, reference: Reference, image_name: str) -> str:
    """Unpacks a squashfs file or an archive unless that is there; gives its id, which changes with the file."""
    try:
        with Path(reference.name).open("rb") as stream:
            start = stream.read(4)
            found = os.fstat(stream.fileno())
    except IsADirectoryError:
        start, found = b"", Path(reference.name).stat()
    except OSError as error:
        raise Refused(f"{image_name}: {error.strerror}") from None
    if reference.kind == "file":
        kind = "squashfs" if start == b"hsqs" else run_archive_kind(reference.name, image_name)
        reference = reference._replace(kind=kind)
    about = [reference.source, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns]
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
            cache.make_room(image_name, 2 * found.st_size // _MIB + 1)
            # 2: something was left out, such as a device node, which only root makes.
            run_tool([UNSQUASHFS, "-no-progress", "-no-xattrs", "-d", str(part / "rootfs"), reference.name], reference, image_name, (0, 2))
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


def main(base: str, record: str, image_name: str, registry: str, bound_mib: str, node: str) -> int:
    """Prints the image's id, or one line on stderr."""
    cache = Cache(Path(base), node, int(bound_mib))
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
    print(image)
    return 0
