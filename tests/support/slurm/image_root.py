"""The root file system of the Slurm image as it is in the checkout, unpacked into a folder."""

import json
import subprocess
import tarfile
from pathlib import Path

from rich.console import Console

from images.build import build


def unpack(folder: Path) -> Path:
    """Builds the image unless the cache has it, and unpacks its layers. Raises CalledProcessError."""
    with tarfile.open(build("slurm", Console(stderr=True))) as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        for name in json.load(manifest)[0]["Layers"]:
            layer = archive.extractfile(name)
            assert layer is not None
            subprocess.run(["tar", "-x", "--numeric-owner", "-C", str(folder)], input=layer.read(), check=True)
    return folder


def inside(root: Path, *command: str) -> list[str]:
    """The command line that runs a command in an unpacked image, with a /tmp of its own and no bytecode: others read that image."""
    script = 'mount -t tmpfs tmpfs "$1/tmp" && unset PYTHONPYCACHEPREFIX && PYTHONDONTWRITEBYTECODE=1 exec chroot "$@"'
    return ["unshare", "--mount", "bash", "-c", script, "inside", str(root), *command]
