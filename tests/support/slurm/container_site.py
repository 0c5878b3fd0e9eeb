"""Images and registries for the tests of containers: images are built here from a few files, and Debian's docker-registry serves them."""

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.patience import patience
from tests.support.slurm.image_pods import Machine, PodError, wait_for

HOST = "registry.example.com"
PUBLIC, PRIVATE = f"{HOST}:5000", f"{HOST}:5443"
USER, PASSWORD = "reader", "s3cret-pass"


def entry(
    name: str, content: bytes | None = None, mode: int = 0o644, kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a layer."""
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, link
    if kind == tarfile.CHRTYPE:
        info.devmajor, info.devminor = 1, 8
    info.size = len(content or b"")
    return info, content or b""


def folder(name: str, mode: int = 0o755) -> tuple[tarfile.TarInfo, bytes]:
    """A folder in a layer."""
    return entry(name, mode=mode, kind=tarfile.DIRTYPE)


def layer(entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A layer, not compressed."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def base_layer(word: str) -> bytes:
    """A root with busybox, and a word in /etc/word."""
    busybox = Path(shutil.which("busybox") or "/bin/busybox").read_bytes()
    tools = "sh cat echo ls id env touch grep sleep readlink pwd test chown mkdir head true chroot mknod dd seq"
    return layer(
        [
            *(folder(name) for name in ("bin", "etc", "etc/apt", "etc/apt/apt.conf.d", "work")),
            entry("bin/busybox", busybox, 0o755),
            *(entry(f"bin/{tool}", kind=tarfile.SYMTYPE, link="busybox") for tool in tools.split()),
            entry("etc/word", f"{word}\n".encode()),
            entry("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n"),
            entry("etc/group", b"root:x:0:\n"),
        ]
    )


def write_image(
    layout: Path,
    layers: Sequence[bytes],
    env: Sequence[str] = (),
    workdir: str = "",
    architecture: str = "amd64",
    is_index: bool = False,
) -> Path:
    """Writes an OCI layout with one image, `latest`; as an index of one architecture where asked."""
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)

    def put(content: bytes, media: str, **more: Any) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{media}", "digest": f"sha256:{digest}", "size": len(content), **more}

    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": ["PATH=/bin", *env], "WorkingDir": workdir, "Entrypoint": ["/bin/false"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]},
        "history": [{"created_by": "test"} for _ in layers],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": put(json.dumps(config).encode(), "config.v1+json"),
        "layers": [put(gzip.compress(each, 1, mtime=0), "layer.v1.tar+gzip") for each in layers],
    }
    found = put(json.dumps(manifest).encode(), "manifest.v1+json")
    if is_index:
        inner = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{**found, "platform": {"architecture": architecture, "os": "linux"}}],
        }
        found = put(json.dumps(inner).encode(), "index.v1+json")
    named = {**found, "annotations": {"org.opencontainers.image.ref.name": "latest"}}
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return layout


@dataclass
class Registry:
    """A docker-registry on the pods' network; TLS and a login where `is_private`."""

    machine: Machine
    folder: Path
    is_private: bool = False
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def port(self) -> int:
        """Where it listens."""
        return 5443 if self.is_private else 5000

    @property
    def name(self) -> str:
        """Its host, as users write it."""
        return f"{HOST}:{self.port}"

    def start(self) -> None:
        """Begins to serve what its folder has."""
        self.folder.mkdir(exist_ok=True)
        address = self.machine.addresses["hub"]
        config: dict[str, Any] = {
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(self.folder / "data")}},
            "http": {"addr": f"{address}:{self.port}"},
        }
        if self.is_private:
            make_certificate(self.folder)
            config["http"]["tls"] = {"certificate": str(self.folder / "tls.crt"), "key": str(self.folder / "tls.key")}
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(self.folder / "htpasswd")}}
            hashed = subprocess.run(
                ["perl", "-e", 'print crypt($ARGV[0], q($2y$05$) . "abcdefghijklmnopqrstuv")', PASSWORD],
                capture_output=True,
                text=True,
                check=True,
            )
            (self.folder / "htpasswd").write_text(f"{USER}:{hashed.stdout}\n")
        (self.folder / "config.yml").write_text(json.dumps(config))  # JSON is YAML
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.inside, "docker-registry", "serve", str(self.folder / "config.yml")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        probe = [*self.inside, "bash", "-c", f"exec 3<>/dev/tcp/{address}/{self.port}"]
        wait_for("a registry", lambda: subprocess.run(probe, capture_output=True, check=False).returncode == 0)

    @property
    def inside(self) -> list[str]:
        """Start of a command on the pods' network."""
        return ["nsenter", f"--net=/run/netns/{self.machine.prefix}hub"]

    def stop(self) -> None:
        """Ends it, in the midst of what it sends."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30 * patience())
            self.process = None

    def push(self, layout: Path, name: str) -> str:
        """Brings an image to the registry; gives its digest."""
        login = ["--dest-creds", f"{USER}:{PASSWORD}"] if self.is_private else []
        target = f"docker://{self.machine.addresses['hub']}:{self.port}/{name}"
        command = [
            *self.inside, "skopeo", "--insecure-policy", "copy", "--all", "--quiet", "--dest-tls-verify=false", *login,
            "--digestfile", str(self.folder / "digest"), f"oci:{layout}:latest", target,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", "HOME": "/root"})
        if done.returncode:
            raise PodError(f"push of {name}: {done.stderr}")
        return (self.folder / "digest").read_text().strip()


def make_certificate(folder: Path) -> None:
    """A certificate that signs itself, for the registry's name."""
    if (folder / "tls.crt").exists():
        return
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(folder / "tls.key")]
    names = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    command = ["openssl", "req", "-x509", "-days", "3", *key, *names, "-out", str(folder / "tls.crt")]
    subprocess.run(command, check=True, capture_output=True)


def user_files(private: Path) -> Mapping[str, str]:
    """What a user's ~/.config/containers has: the public registry speaks HTTP, and the private one has a certificate of its own."""
    return {
        "registries.conf": f'[[registry]]\nlocation = "{PUBLIC}"\ninsecure = true\n',
        f"certs.d/{PRIVATE}/ca.crt": (private / "tls.crt").read_text(),
    }
