"""Slurm's own programs, from the built image, in runc and network namespaces: the packages for that come from where `make up` gets them."""

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from rich.console import Console

from images.build import build
from local import packages

TOOLS = {"nfs-ls": "libnfs-utils", "mkfs.xfs": "xfsprogs"}
"""Programs that only the tests use, and the Debian packages they come in."""


@pytest.fixture(scope="session", autouse=True)
def tools() -> None:
    """runc, iproute2 and the rest of what the local cluster needs, and the tests' own tools, on a machine that has none of it yet."""
    extras = [package for program, package in TOOLS.items() if shutil.which(program) is None]
    if missing := [*packages.find_missing(), *extras]:
        packages.install(missing)


@pytest.fixture(scope="session")
def image_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root file system of the image of the present content."""
    root = tmp_path_factory.mktemp("image")
    with tarfile.open(build("slurm", Console(stderr=True))) as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        for name in json.load(manifest)[0]["Layers"]:
            layer = archive.extractfile(name)
            assert layer is not None
            subprocess.run(["tar", "-x", "--numeric-owner", "-C", str(root)], input=layer.read(), check=True)
    return root
