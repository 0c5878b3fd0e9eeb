"""Slurm's own programs, from the built image, in runc and network namespaces: the packages for that come from where `make up` gets them."""

import shutil
from pathlib import Path

import pytest

from local import packages
from tests.slurm.image_root import unpack

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
    """The unpacked image of the present content; shared, so tests put overlays on it."""
    root = unpack(tmp_path_factory.mktemp("image"))
    for folder in (root, *root.parents):  # daemons that are not root go through here
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o011)
    return root
