"""What the checks of disks, PCIe links and /dev/shm make of machines that have a fault; and that every check of hardware answers here."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from programs.node_checks import kernel, network, nvme, pcie, shm
from programs.node_checks.kinds import KINDS, CheckKind
from tests.unit.programs.node_checks.trees import write

NVME = KINDS["nvme"].limits
MDSTAT = """\
Personalities : [raid1] [raid0]
md0 : active raid1 nvme1n1p1[1](F) nvme0n1p1[0]
      1046528 blocks super 1.2 [2/1] [U_]

md1 : active raid0 nvme3n1[1] nvme2n1[0]
      3750486016 blocks super 1.2 512k chunks

unused devices: <none>
"""


@pytest.mark.parametrize(
    ("states", "arrays", "settings", "answer"),
    [
        pytest.param({}, {}, NVME, ("skipped", "no NVMe disk and no array is here"), id="nothing-here"),
        pytest.param({}, {}, {**NVME, "minDisks": 2}, ("failed", "0 NVMe disks, 2 wanted"), id="nothing-where-disks-are-wanted"),
        pytest.param({"nvme0": "live"}, {"md0": (2, 2)}, NVME, ("passed", "1 NVMe disks are live, 1 arrays are whole"), id="fine"),
        pytest.param({"nvme0": "dead", "nvme1": "live"}, {}, NVME, ("failed", "nvme0 is dead"), id="dead"),
        pytest.param({"nvme0": "resetting"}, {}, NVME, ("unknown", "nvme0 is resetting"), id="on-its-way"),
        pytest.param({"nvme0": "live"}, {"md0": (2, 1)}, NVME, ("failed", "md0 has 1 of 2 disks"), id="degraded"),
        pytest.param({}, {"md0": (2, 1)}, {**NVME, "maxDegraded": 1}, ("passed", "0 NVMe disks are live, 1 arrays are whole"), id="may"),
    ],
)
def test_nvme(states: dict[str, str], arrays: dict[str, tuple[int, int]], settings: dict[str, Any], answer: tuple[str, str]) -> None:
    assert nvme.judge(states, arrays, settings) == answer


def test_disks_are_read_from_the_kernel(tmp_path: Path) -> None:
    write(tmp_path, {"nvme0/state": "live", "nvme1/state": "dead"})
    assert nvme.read_states(tmp_path) == {"nvme0": "live", "nvme1": "dead"}
    assert nvme.read_states(tmp_path / "none") == {}
    assert nvme.read_arrays(MDSTAT) == {"md0": (2, 1)}


def pci(folder: Path, address: str, kind: str, width: str, speed: str, vendor: str = "0x15b3", above: str = "16") -> None:
    """A device below a bridge, as sysfs has them."""
    bridge = f"pci0000:00/{address}-bridge"
    link = {"current_link_width": width, "max_link_width": "16", "current_link_speed": speed, "max_link_speed": "32.0 GT/s PCIe"}
    write(folder, {f"{bridge}/{address}/{name}": text for name, text in {"class": kind, "vendor": vendor, **link}.items()})
    write(folder, {f"{bridge}/max_link_width": above, f"{bridge}/max_link_speed": "32.0 GT/s PCIe"})
    (folder / "devices").mkdir(exist_ok=True)
    (folder / "devices" / address).symlink_to(folder / bridge / address)


def test_pcie_links_below_what_both_ends_can(tmp_path: Path) -> None:
    full, low = "32.0 GT/s PCIe", "2.5 GT/s PCIe"
    pci(tmp_path, "0000:01:00.0", "0x030200", "16", low, vendor="0x10de")  # idle: its speed tells nothing
    pci(tmp_path, "0000:02:00.0", "0x030200", "8", full, vendor="0x10de")
    pci(tmp_path, "0000:03:00.0", "0x020700", "16", low)
    pci(tmp_path, "0000:04:00.0", "0x010802", "4", full, above="4")  # four lanes are all that its slot has
    pci(tmp_path, "0000:05:00.0", "0x030000", "1", low, vendor="0x1a03")  # the board's own display
    pci(tmp_path, "0000:06:00.0", "0x020000", "0", "Unknown")
    links = pcie.read_links(tmp_path / "devices")
    assert pcie.judge(links, {"maxNarrow": 0, "maxSlow": 0}) == (
        "failed",
        "GPU 0000:02:00.0 has 8 of 16 lanes; InfiniBand card 0000:03:00.0 has 2.5 of 32 GT/s",
    )
    assert pcie.judge(links, {"maxNarrow": 1, "maxSlow": 1}) == ("passed", "4 PCIe links are as wide as they can be")
    assert pcie.judge(links[-1:], {"maxNarrow": 0, "maxSlow": 0})[0] == "skipped"
    assert pcie.judge([], {"maxNarrow": 0, "maxSlow": 0})[0] == "skipped"


def test_leftovers_are_those_of_users_without_a_process(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "left").write_bytes(b"x" * 3_000_000)
    (tmp_path / "link").symlink_to("/dev/zero")
    used = shm.measure(str(tmp_path))
    assert 3_000_000 <= used[os.getuid()] < 3_500_000
    with pytest.raises(OverflowError):
        shm.measure(str(tmp_path), 1)
    assert os.getuid() in shm.users_alive(Path("/proc"))
    limits = {"maxLeftoverMiB": 2, "leastUser": 1000, "accounts": [64030]}
    size = 3 * 1024 * 1024
    assert shm.judge({1001: size, 0: size, 64030: size}, set(), limits) == (
        "failed",
        "3 MiB in /dev/shm of users without a job here (1001), 2 allowed",
    )
    assert shm.judge({1001: size}, {1001}, limits) == ("passed", "0 MiB in /dev/shm of users without a job here")


@pytest.mark.parametrize(
    ("check", "facts"),
    [("kernel", {"xids": [], "ignoredXids": [], "patterns": {"x": "y"}}), ("nvme", {}), ("pcie", {}), ("network", {"efaDevices": 0})],
)
def test_check_answers_on_this_machine(
    check: CheckKind, facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whatever this machine has: one JSON object with a result."""
    monkeypatch.setattr(network, "_KEPT", tmp_path / "kept.json")
    monkeypatch.setattr("sys.argv", ["-", json.dumps({**KINDS[check].limits, **facts})])
    {"kernel": kernel, "nvme": nvme, "pcie": pcie, "network": network}[check].main()
    answer = json.loads(capsys.readouterr().out)
    assert answer["result"] in ("passed", "failed", "unknown", "skipped")
    assert answer["found"]
