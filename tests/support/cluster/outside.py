"""An apt archive and a package index in a network beside the machine."""

import gzip
import hashlib
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.apiserver.server import run_process
from tests.support.patience import patience

NETNS, LINK = "slipway-beside", "slw-out"
MACHINE, SERVER = "203.0.113.1", "203.0.113.2"  # a /30: the machine itself may use the rest of the network
PORT = 8080
CONTROL = """\
Package: slipway-out
Version: 1.0
Architecture: all
Maintainer: Test <test@example.test>
Description: a program that says hello
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An apt repository and a package index, served in a network beside the machine; gives the line of a sources.list."""
    folder = tmp_path_factory.mktemp("repository")
    _make_package(folder)
    _make_wheel(folder / "simple/slipway-out")
    run_command("ip", "netns", "delete", NETNS, check=False)
    run_command("ip", "netns", "add", NETNS)
    try:
        run_command("ip", "link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", NETNS)
        run_command("ip", "address", "add", f"{MACHINE}/30", "dev", LINK)
        run_command("ip", "link", "set", LINK, "up")
        run_command("ip", "-n", NETNS, "address", "add", f"{SERVER}/30", "dev", "eth0")
        run_command("ip", "-n", NETNS, "link", "set", "eth0", "up")
        serve = ["ip", "netns", "exec", NETNS, "python3", "-m", "http.server", str(PORT), "--directory", str(folder)]
        with run_process("repository", serve, folder):
            yield f"deb [trusted=yes] http://{SERVER}:{PORT} ./"
    finally:
        run_command("ip", "netns", "delete", NETNS)


def _make_package(folder: Path) -> None:
    root = folder / "root"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(CONTROL)
    (root / "usr/bin").mkdir(parents=True)
    program = root / "usr/bin/slipway-out"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    package = folder / "slipway-out_1.0_all.deb"
    run_command("dpkg-deb", "--root-owner-group", "--build", str(root), str(package))
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    index = f"{CONTROL}Filename: ./{package.name}\nSize: {package.stat().st_size}\nSHA256: {digest}\n"
    (folder / "Packages.gz").write_bytes(gzip.compress(index.encode()))


def _make_wheel(folder: Path) -> None:
    folder.mkdir(parents=True)
    about = "slipway_out-1.0.dist-info"
    files = {
        "slipway_out.py": "print('hello')\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: slipway-out\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(folder / "slipway_out-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{about}/RECORD": record}.items():
            wheel.writestr(name, text)


def run_command(*command: str, check: bool = True) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=check, timeout=60 * patience()).stdout
