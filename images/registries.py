"""Brings finished archives to a registry with skopeo. A tag is made from content, so what a registry has under it is not sent again."""

import hashlib
import json
import re
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console

from configs.images import REPOSITORY
from images.steps import BuildError, run, step

_TRUST = {"default": [{"type": "insecureAcceptAnything"}]}  # the archive was made here
_REGISTRY = re.compile(r"[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")


def check(registry: str) -> None:
    """Raises BuildError for what cannot be a registry with its path."""
    if not _REGISTRY.fullmatch(registry):
        raise BuildError(f"{registry!r} is not a registry. Give host[:port][/path], such as registry.example/team, without https:// or tag")


def pushed_reference(local: str, registry: str) -> str:
    """The name of a local image in a registry: `localhost/slipway/slurm:0123` becomes `registry.example/team/slipway/slurm:0123`."""
    return f"{registry}/{REPOSITORY.partition('/')[2]}{local.removeprefix(REPOSITORY)}"


def push_command(archive: Path, target: str, policy: Path, plain_http: bool) -> list[str]:
    """skopeo's command line. Level 1 of gzip: sending is seldom slower than compressing."""
    options = ["--dest-compress-format=gzip", "--dest-compress-level=1", *(["--dest-tls-verify=false"] if plain_http else [])]
    return ["skopeo", "--policy", str(policy), "copy", "--quiet", *options, f"docker-archive:{archive}", f"docker://{target}"]


def push(archive: Path, target: str, console: Console, plain_http: bool) -> str:
    """Pushes an archive unless the registry has the tag. Gives the digest in the registry. Raises BuildError."""
    with step(console, f"push {target}") as notes, tempfile.TemporaryDirectory(prefix="slipway-push-") as scratch:
        policy = Path(scratch) / "policy.json"
        policy.write_text(json.dumps(_TRUST))
        if digest := _digest(target, policy, plain_http):
            notes.append("is there already")
            return digest
        run(push_command(archive, target, policy, plain_http), Path(scratch) / "log")
        if digest := _digest(target, policy, plain_http):
            return digest
        raise BuildError(f"{target} was pushed, and the registry does not give it back. Run this again.")


def _digest(target: str, policy: Path, plain_http: bool) -> str | None:
    """The digest of a manifest, which is the hash of its bytes; None if the registry does not return it."""
    insecure = ["--tls-verify=false"] if plain_http else []
    command = ["skopeo", "--policy", str(policy), "--command-timeout", "20s", "inspect", "--raw", *insecure, f"docker://{target}"]
    try:
        inspected = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise BuildError("skopeo is not installed: apt-get install skopeo") from None
    return None if inspected.returncode else f"sha256:{hashlib.sha256(inspected.stdout).hexdigest()}"
