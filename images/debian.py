"""What a build takes from the Debian machine it runs on: tools, the mirror, and apt's own settings (proxy, certificate and date checks)."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from images.steps import BuildError, run

TOOLS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "skopeo": "skopeo"}
"""Programs a build runs, and the Debian packages they come in."""

SUITE = "forky"

_CARRIED = re.compile(r"Acquire::(https?|Check-|Retries|ForceIPv|Max-FutureTime|Min-ValidTime)", re.IGNORECASE)


def missing_packages() -> list[str]:
    """The Debian packages of the tools that are not on the path."""
    return sorted(package for program, package in TOOLS.items() if shutil.which(program) is None)


def install(packages: list[str], log: Path) -> None:
    """Installs Debian packages. Raises BuildError where that cannot work."""
    if shutil.which("apt-get") is None:
        docker = "build with docker as the Dockerfile's first lines say"
        raise BuildError(f"this is not a Debian system: install {', '.join(packages)} and run this again, or {docker}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Finishes an install that was killed: apt refuses everything else until then. Where that fails, apt says why.
    subprocess.run(["dpkg", "--force-confold", "--configure", "-a"], stdin=subprocess.DEVNULL, capture_output=True, env=env, check=False)
    run(["apt-get", "update", "-qq"], log, env=env)
    run(["apt-get", "install", "-y", "-qq", "-o", "DPkg::Lock::Timeout=600", "--no-install-recommends", *packages], log, env=env)


def apt_settings(dump: str) -> list[str]:
    """Of `apt-config dump`, the lines that say how to reach a mirror; each is a line of an apt.conf."""
    return [line for line in dump.splitlines() if _CARRIED.match(line) and not line.endswith(' "";')]


def debian_mirror(index_targets: str) -> str:
    """The mirror of Debian's main archive, from lines of LABEL, COMPONENT and REPO_URI. Raises BuildError if there is none."""
    for line in index_targets.splitlines():
        label, component, uri = line.split(" ", 2)
        if (label, component) == ("Debian", "main"):
            return uri.rstrip("/")
    raise BuildError("apt on this machine has no Debian mirror: name one with --mirror, or build where a registry is reachable")


def read_mirror(log: Path) -> str:
    """Asks apt for the mirror; fetches its lists first where there are none."""
    query = ["apt-get", "indextargets", "--format", "$(LABEL) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"]
    targets = run(query, log)
    if not targets.strip():
        run(["apt-get", "update", "-qq"], log)
        targets = run(query, log)
    return debian_mirror(targets)


def read_settings(log: Path) -> list[str]:
    """The machine's apt settings that a build needs as well."""
    return apt_settings(run(["apt-config", "dump"], log)) if shutil.which("apt-config") else []


def bootstrap(target: Path, mirror: str, settings: list[str], log: Path) -> None:
    """Writes a minimal root file system as a tar archive, its packages checked against Debian's keys."""
    options = [f"--aptopt={setting}" for setting in settings]
    run(["mmdebstrap", "--variant=minbase", *options, SUITE, str(target), mirror], log)


def registry_has(image: str, policy: Path, environment: Mapping[str, str] | None = None) -> bool:
    """True when the image's registry answers within 20 s and has it."""
    command = ["skopeo", "--policy", str(policy), "--command-timeout", "20s", "inspect", "--raw", f"docker://{image}"]
    return subprocess.run(command, capture_output=True, env=environment, check=False).returncode == 0
