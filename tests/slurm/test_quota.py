"""Quotas at login on a real ext4, and on it by a real NFS server with rpc.rquotad: in a User Mode Linux, as kernels often have neither."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from programs.login.quota import DEADLINE_S
from tests.support.patience import patience, seconds
from tests.support.slurm.quota_inside import MODULES

PROJECT = Path(__file__).parents[2]
FOLDER = Path("/var/tmp/slipway-quota")
BOOT_S = 120
BELOW = "Your home: 2.9 MiB of 9.8 MiB, 2 of 200 files used.\n"
ABOVE = r"Your home: 6\.7 MiB of 9\.8 MiB, 3 of 200 files used\. Above 4\.9 MiB, nothing can be written from 20[-0-9: ]* UTC on: .*\n"

Seen = dict[str, tuple[float, str]]


@pytest.fixture(scope="module")
def seen(image_root: Path) -> Iterator[Seen]:
    """What logins said inside."""
    root = FOLDER / "root"
    subprocess.run(["umount", "-q", str(root)], check=False)  # what a killed run left
    shutil.rmtree(FOLDER, ignore_errors=True)
    for part in ("root", "upper", "work"):
        (FOLDER / part).mkdir(parents=True)
    layers = f"lowerdir={image_root},upperdir={FOLDER / 'upper'},workdir={FOLDER / 'work'}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(root)], check=True)
    try:
        _prepare(root)
        disk = FOLDER / "disk"
        with disk.open("wb") as made:
            made.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "quota", "-E", "quotatype=usrquota", str(disk)], check=True)
        options = [
            "rootfstype=hostfs",
            f"rootflags={root}",
            "rw",
            "init=/quota_inside.py",
            "mem=384M",
            f"ubd0={disk}",
            "quiet",
            f"PATIENCE={seconds(1)}",
        ]
        console = ["con=null", "con0=null,fd:1"]
        ran = subprocess.run(
            ["linux.uml", *options, *console],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BOOT_S * patience(),
            check=False,
        )
        found = re.search(r"^SEEN (\{.*\})", ran.stdout, re.MULTILINE)
        assert found, ran.stdout
        yield json.loads(found[1])
    finally:
        subprocess.run(["umount", str(root)], check=True)
        shutil.rmtree(FOLDER)


def _prepare(root: Path) -> None:
    """What the image lacks: the programs, the kernel's modules, and rpcbind with its user. NFS has no IPv6 there."""
    for package in ("names", "programs", "slurm"):
        shutil.copytree(PROJECT / package, root / "opt/slipway" / package)
    inside = root / "quota_inside.py"
    inside.write_text(f"#!/usr/bin/python3\n{(PROJECT / 'tests/support/slurm/quota_inside.py').read_text()}")
    inside.chmod(0o755)
    (root / "uml-modules").mkdir()
    modules = {module.stem: module for module in Path("/usr/lib/uml/modules").rglob("*.ko")}
    for name in MODULES:
        shutil.copy(modules[name], root / "uml-modules")
    shutil.copy("/sbin/rpcbind", root / "usr/sbin")
    shutil.copy("/usr/sbin/rpcinfo", root / "usr/sbin")
    with (root / "etc/passwd").open("a") as users:
        users.write("_rpc:x:110:65534::/run/rpcbind:/usr/sbin/nologin\n")
    protocols = root / "etc/netconfig"
    protocols.write_text("".join(line for line in protocols.read_text().splitlines(keepends=True) if "6 " not in line))
    (root / "var/lib/nfs/ganesha").mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("by", ["", "nfs "], ids=["ext4", "nfs"])
def test_login_says_what_is_used_and_the_limits(seen: Seen, by: str) -> None:
    assert seen[f"{by}below"][1] == BELOW
    assert seen[f"{by}without limits"][1] == ""
    assert re.fullmatch(ABOVE, seen[f"{by}above"][1])


def test_full_home_is_said_to_be_full(seen: Seen) -> None:
    assert "Disk quota exceeded" in seen["refused"][1]
    assert seen["full"][1].startswith("Your home: 9.8 MiB of 9.8 MiB, 4 of 200 files used.")


def test_file_server_that_hangs_holds_one_login_up_for_the_deadline(seen: Seen) -> None:
    """The server of the files hangs as well as that of the quotas, so the tool hangs in the kernel and is not waited for."""
    waited_s, said = seen["silent"]
    assert said == "no answer"
    assert waited_s < (DEADLINE_S + 1) * patience()
    waited_s, said = seen["after silence"]
    assert said == ""
    assert waited_s < 1 * patience()
