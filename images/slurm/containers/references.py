"""What users may call an image."""

import os
from typing import NamedTuple

from .refusals import Refused


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
    """Reads [docker://][USER@][HOST#|HOST/]PATH[:TAG][@DIGEST], /path, or TRANSPORT:/path. `registry` replaces a missing HOST."""
    for transport in ("oci-archive", "docker-archive", "oci"):
        if text.startswith(f"{transport}:"):
            path, _, tag = text.removeprefix(f"{transport}:").partition(":")
            return Reference(transport, os.path.realpath(path), tag)
    if text.startswith(("/", "./", "../")):
        return Reference("file", os.path.realpath(text))
    name = text.removeprefix("docker://")
    name, _, digest = name.partition("@sha256:")
    name = name.rpartition("@")[2]  # enroot's USER@: skopeo finds the login by the host
    host, hash_sign, path = name.partition("#")
    if not hash_sign:
        host, slash, path = name.partition("/")
        if not slash or not ("." in host or ":" in host or host == "localhost"):
            host, path = registry, name
    if not host:
        raise Refused(
            f"{text}: name the registry as well, such as docker://registry.example.com/team/ubuntu:24.04; "
            "this cluster has no default (slurm.containers.registry)"
        )
    path, _, tag = path.partition(":")
    if not path or path.strip("/") != path or (digest and len(digest) != 64):
        raise Refused(f"{text}: no image's name; write docker://HOST/PATH:TAG")
    return Reference("registry", f"{host}/{path}", "" if digest else tag or "latest", f"sha256:{digest}" if digest else "")
