"""What the checks of hardware make of machines that have a fault: recorded lines of the kernel's log, trees as sysfs has them, and what
vendors' tools print."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from configs.models.health_checks import CHECK_SETTINGS
from programs.node_checks import gpu, kernel, network, nvme, pcie, shm
from tests.unit.programs.node_checks.recorded import AMD_METRICS, AMD_PAGES, NVLINKS, SMI

KERNEL = CHECK_SETTINGS["kernel"]
NOW = 10_000.0

XID = "NVRM: Xid (PCI:0000:3f:00): {}, pid='<unknown>', name=<unknown>, {}"
FAULTS = {
    XID.format(79, "GPU has fallen off the bus."): "GPU 0000:3f:00: Xid 79 (GPU has fallen off the bus)",
    XID.format(48, "DBE (double bit error) ECC Error"): "GPU 0000:3f:00: Xid 48 (double bit ECC error)",
    XID.format(119, "Timeout after 6s of waiting for RPC response from GPU0 GSP!"): "GPU 0000:3f:00: Xid 119 (GSP does not answer)",
    "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x0)": "GPU 0018:01:00: Xid 149 (NVLink error)",
    XID.format(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"): "GPU 0000:3f:00: GPU Reset Required",
    "NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.": "",
    "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 30 LTSSM Fault Up": "",
    "amdgpu 0000:c1:00.0: amdgpu: 1 uncorrectable hardware errors detected in umc block": "",
    "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0 (channel:0 slot:0 page:0x10 offset:0x0)": "",
    "Memory failure: 0x3c1ff: recovery action for dirty LRU page: Recovered": "",
    "{1}[Hardware Error]: event severity: recoverable": "",
    "pcieport 0000:00:01.1: AER: Uncorrected (Fatal) error received: 0000:01:00.0": "",
    "pcieport 0000:00:01.1: AER: Uncorrectable (Fatal) error message received from 0000:01:00.0": "",
    "mlx5_core 0000:5e:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count": "",
    "nvme nvme0: I/O 213 QID 4 timeout, aborting": "",
    "nvme nvme1: I/O tag 213 (10d5) opcode 0x2 (I/O Cmd) QID 4 timeout, reset controller": "",
    "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff": "",
    "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0": "",
    "I/O error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2": "",
    "critical medium error, dev sdb, sector 99 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2": "",
    "md/raid1:md0: Disk failure on nvme1n1p1, disabling device.": "",
    "EXT4-fs error (device nvme0n1p1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0": "",
    "EXT4-fs (nvme0n1p1): Remounting filesystem read-only": "",
    "XFS (nvme1n1): Metadata Corruption detected at xfs_agf_read_verify+0x1a/0x90, xfs_agf block 0x1": "",
    "XFS (nvme1n1): Please unmount the filesystem and rectify the problem(s); shutting down filesystem": "",
    "Out of memory: Killed process 4711 (python3) total-vm:100kB, anon-rss:50kB": "",
}
"""Lines of a node that is broken, and what is said of each; nothing where it is the line itself."""
FINE = (
    XID.format(13, "Graphics SM Warp Exception on (GPC 7, TPC 0, SM 1): Out Of Range Address"),
    XID.format(31, "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1_CLIENT_T1_0 faulted @ 0x7f5c_0000"),
    XID.format(43, "Ch 00000010"),
    XID.format(45, "Ch 00000010"),
    XID.format(63, "Row Remapper: New row marked for remapping, reset gpu to activate."),
    XID.format(69, "Class Error: ChId 0008"),
    XID.format(94, "Contained: SM (0x1). RST: No, D-RST: No"),
    XID.format(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"),
    "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 08 (0x004505c6 0x00000000)",
    "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:100kB, anon-rss:50kB",
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0",
    "pcieport 0000:00:01.1: AER: Corrected error received: 0000:01:00.0",
    "I/O error, dev loop3, sector 0 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
    "EXT4-fs (nvme0n1p1): mounted filesystem with ordered data mode",
    "NVRM: Xid (PCI:[4711]: segfault at 0 ip 00007f error 4 in libc.so",
    "bad[4711]: NVRM: Xid (PCI:0000:3f:00): 79, pid=1",
)
"""Lines of a node in order: a job's own errors, what the hardware has mended, and names of processes that look like a fault."""


def lines(*texts: str, at_s: float = NOW - 60) -> list[kernel.Line]:
    return [kernel.Line(at_s, text) for text in texts]


@pytest.mark.parametrize(("text", "said"), FAULTS.items())
def test_kernel_line_that_is_a_fault(text: str, said: str) -> None:
    result, found = kernel.judge(lines(text), NOW, dict(KERNEL))
    assert result == "failed"
    assert (said or text[:100]) in found


@pytest.mark.parametrize("text", FINE)
def test_kernel_line_of_a_jobs_own_error_drains_nothing(text: str) -> None:
    assert kernel.judge(lines(text), NOW, dict(KERNEL))[0] == "passed"


def test_no_xid_of_an_application_is_in_the_table() -> None:
    assert not kernel.XIDS.keys() & {8, 11, 13, 25, 31, 32, 39, 43, 44, 45, 60, 63, 66, 68, 69, 92, 94, 109, 137, 141}


@pytest.mark.parametrize(
    ("at_s", "most_s", "result"),
    [
        pytest.param(NOW - 3600, 3600, "failed", id="as-old-as-may-be"),
        pytest.param(NOW - 3601, 3600, "passed", id="older"),
        pytest.param(0.0, 0, "failed", id="since-the-start"),
    ],
)
def test_kernel_line_counts_while_it_is_young(at_s: float, most_s: int, result: str) -> None:
    text = next(iter(FAULTS))
    assert kernel.judge(lines(text, at_s=at_s), NOW, {**KERNEL, "maxAgeS": most_s})[0] == result


def test_link_that_flaps_and_tasks_that_hang_count_beyond_their_limits() -> None:
    down = "mlx5_core 0000:17:00.0 eth2: Link down"
    hung = "INFO: task python3:4711 blocked for more than 120 seconds."
    assert kernel.judge(lines(*[down] * 3, *[hung] * 3), NOW, dict(KERNEL))[0] == "passed"
    assert kernel.judge(lines(*[down] * 4), NOW, dict(KERNEL)) == ("failed", f"{down} (4 lost links, 3 allowed)")
    assert kernel.judge(lines(*[hung] * 4), NOW, dict(KERNEL)) == ("failed", f"{hung} (4 hung tasks, 3 allowed)")


def test_every_kind_of_fault_is_named_and_a_long_list_is_cut() -> None:
    xids = [XID.format(79, "").replace("3f", f"{at:02x}") for at in range(5)]
    found = kernel.judge(lines(*xids, "Out of memory: Killed process 1 (x)"), NOW, dict(KERNEL))[1]
    assert found.startswith("GPU 0000:00:00: Xid 79 (GPU has fallen off the bus), ")
    assert found.endswith(" and 2 more; Out of memory: Killed process 1 (x)")


@pytest.mark.parametrize(
    ("record", "line"),
    [
        pytest.param(b"6,339,5140900,-;eth0: up\n SUBSYSTEM=net\n DEVICE=+net:eth0\n", kernel.Line(5.1409, "eth0: up"), id="kernel"),
        pytest.param(b"12,339,5000000,-,caller=T1;NVRM: x\n", kernel.Line(5.0, "NVRM: x"), id="root-by-echo"),
        pytest.param(b"30,339,5000000,-;NVRM: x\n", None, id="a-daemon"),
        pytest.param(b"6,339,5000000,-;\xff\n", kernel.Line(5.0, "\ufffd"), id="any-byte"),
        pytest.param(b"garbage", None, id="no-record"),
    ],
)
def test_record_of_the_log_is_read(record: bytes, line: kernel.Line | None) -> None:
    assert kernel.read_line(record) == line


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="this machine does not show its kernel's log")
def test_the_real_log_is_read_without_waiting() -> None:
    found = kernel.read_log("/dev/kmsg")
    assert any(line.text for line in found)
    with pytest.raises(OverflowError, match="more than 1 lines"):
        kernel.read_log("/dev/kmsg", 1)


NVME = CHECK_SETTINGS["nvme"]
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


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n")


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


NETWORK = {**CHECK_SETTINGS["network"], "efaDevices": 0}


def port(
    name: str, state: str = "ACTIVE", physical: str = "LinkUp", rate: float = 400, is_efa: bool = False, **counters: int
) -> network.Port:
    return network.Port(f"{name}/1", "MT_0000000838", is_efa, state, physical, rate, counters)


@pytest.mark.parametrize(
    ("ports", "growth", "settings", "answer"),
    [
        pytest.param([], {}, NETWORK, ("skipped", "no InfiniBand, RoCE or EFA port is here, and no bond"), id="nothing-here"),
        pytest.param([], {}, {**NETWORK, "minPorts": 8}, ("failed", "0 ports are up, 8 wanted"), id="nothing-where-ports-are-wanted"),
        pytest.param([port("mlx5_0"), port("mlx5_1")], {}, NETWORK, ("passed", "2 of 2 ports are up"), id="fine"),
        pytest.param([port("mlx5_0")], None, NETWORK, ("passed", "1 of 1 ports are up, their errors are not judged"), id="as-a-job"),
        pytest.param(
            [port("mlx5_0"), port("mlx5_1", "DOWN", "Polling")], {}, NETWORK, ("failed", "port mlx5_1/1 is DOWN (Polling)"), id="unplugged"
        ),
        pytest.param([port("mlx5_0"), port("mlx5_1", "DOWN", "Disabled")], {}, NETWORK, ("passed", "1 of 1 ports are up"), id="off"),
        pytest.param(
            [port("mlx5_0"), port("mlx5_1", "DOWN", "Polling")],
            {},
            {**NETWORK, "maxPortsDown": 1},
            ("passed", "1 of 2 ports are up"),
            id="may-be-down",
        ),
        pytest.param(
            [port("mlx5_0"), port("mlx5_1", rate=200)],
            {},
            NETWORK,
            ("failed", "port mlx5_1/1 has 200 Gbit/s, 400 wanted"),
            id="slower-than-its-like",
        ),
        pytest.param(
            [port("mlx5_0", rate=200)],
            {},
            {**NETWORK, "minRateGbps": 400},
            ("failed", "port mlx5_0/1 has 200 Gbit/s, 400 wanted"),
            id="slower-than-declared",
        ),
        pytest.param(
            [port("mlx5_0")],
            {"mlx5_0/1": {"link_downed": 4, "symbol_error": 101}},
            NETWORK,
            (
                "failed",
                "port mlx5_0/1 lost its link more than 3 times in 3600 s; port mlx5_0/1 had symbol errors more than 100 times in 3600 s",
            ),
            id="flaps",
        ),
        pytest.param(
            [port("rdmap0s6", is_efa=True)], {}, {**NETWORK, "efaDevices": 2}, ("failed", "1 EFA devices, 2 declared"), id="efa-missing"
        ),
    ],
)
def test_network(
    ports: list[network.Port], growth: dict[str, dict[str, int]] | None, settings: dict[str, Any], answer: tuple[str, str]
) -> None:
    assert network.judge(ports, growth, settings) == answer


def test_ports_are_read_from_the_kernel(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "mlx5_0/board_id": "MT_0000000838",
            "mlx5_0/ports/1/state": "4: ACTIVE",
            "mlx5_0/ports/1/phys_state": "5: LinkUp",
            "mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
            "mlx5_0/ports/1/counters/link_downed": "2",
            "mlx5_0/ports/1/counters/symbol_error": "0",
            "rdmap0s6/ports/1/state": "1: DOWN",
            "rdmap0s6/ports/1/phys_state": "3: Disabled",
            "rdmap0s6/ports/1/rate": "100 Gb/sec (4X EDR)",
            "drivers/efa/x": "",
            "rdmap0s6/device/x": "",
        },
    )
    (tmp_path / "rdmap0s6/device/driver").symlink_to(tmp_path / "drivers/efa")
    assert network.read_ports(tmp_path) == [
        network.Port("mlx5_0/1", "MT_0000000838", False, "ACTIVE", "LinkUp", 400, {"link_downed": 2, "symbol_error": 0}),
        network.Port("rdmap0s6/1", "", True, "DOWN", "Disabled", 100, {}),
    ]
    assert network.read_ports(tmp_path / "none") == []


def bonded(folder: Path, aggregator: str = "", bond: str = "up", **cards: tuple[str, str]) -> list[network.Bond]:
    """A bond as sysfs has it: the cards with their MII status, and the aggregator that LACP has put each into."""
    files = {"bond0/bonding/slaves": " ".join(cards), "bond0/bonding/mii_status": bond, "bond0/bonding/mode": "802.3ad 4"}
    files |= {"bond0/bonding/ad_aggregator": aggregator} if aggregator else {}
    for name, (status, own) in cards.items():
        files |= {f"{name}/bonding_slave/mii_status": status, f"{name}/bonding_slave/ad_aggregator_id": own}
    write(folder, files)
    return network.read_bonds(folder)


@pytest.mark.parametrize(
    ("aggregator", "bond", "cards", "limits", "answer"),
    [
        pytest.param(
            "1", "up", {"eth0": ("up", "1"), "eth1": ("up", "1")}, {"minBondPorts": 2}, ("passed", "bond0 has 2 of 2 ports up"), id="whole"
        ),
        pytest.param("", "up", {"eth0": ("up", ""), "eth1": ("down", "")}, {}, ("failed", "bond0: eth1 is down"), id="cable-is-out"),
        pytest.param(
            "",
            "up",
            {"eth0": ("up", ""), "eth1": ("down", "")},
            {"maxBondPortsDown": 1},
            ("passed", "bond0 has 1 of 2 ports up"),
            id="may-be-down",
        ),
        pytest.param(
            "2",
            "up",
            {"eth0": ("up", "2"), "eth1": ("up", "1")},
            {},
            ("failed", "bond0: eth1 is left out by LACP"),
            id="up-and-not-in-the-bond",
        ),
        pytest.param(
            "",
            "down",
            {"eth0": ("down", "")},
            {"minBondPorts": 2},
            ("failed", "bond0 is down; bond0: eth0 is down; bond0 has 0 ports up, 2 wanted"),
            id="all-is-down",
        ),
        pytest.param(
            "", "up", {"eth0": ("up", "")}, {"minBondPorts": 2}, ("failed", "bond0 has 1 ports up, 2 wanted"), id="card-is-not-in-it"
        ),
        pytest.param("", "up", {"eth0": ("going back", "")}, {}, ("failed", "bond0: eth0 is going back"), id="other-states"),
        pytest.param("", "down", {}, {}, ("skipped", "no InfiniBand, RoCE or EFA port is here, and no bond"), id="empty-bond"),
        pytest.param("", "down", {}, {"minBondPorts": 2}, ("failed", "no bond is here, one with 2 ports wanted"), id="none-and-one-wanted"),
    ],
)
def test_bond(
    aggregator: str, bond: str, cards: dict[str, tuple[str, str]], limits: dict[str, int], answer: tuple[str, str], tmp_path: Path
) -> None:
    assert network.judge([], {}, {**NETWORK, **limits}, bonded(tmp_path, aggregator, bond, **cards)) == answer


def test_errors_grow_within_a_window_and_a_counter_that_began_again_begins_at_nothing() -> None:
    growth, kept = network.grown({}, [port("mlx5_0", link_downed=7)], 100, 3600)  # also soon after 1970
    assert growth == {"mlx5_0/1": {"link_downed": 0}}
    growth, kept = network.grown(kept, [port("mlx5_0", link_downed=9)], 200, 3600)
    assert growth == {"mlx5_0/1": {"link_downed": 2}}
    growth, kept = network.grown(kept, [port("mlx5_0", link_downed=1)], 300, 3600)
    assert growth == {"mlx5_0/1": {"link_downed": 0}}
    growth, kept = network.grown(kept, [port("mlx5_0", link_downed=5)], 400, 3600)
    assert growth == {"mlx5_0/1": {"link_downed": 4}}
    growth, kept = network.grown(kept, [port("mlx5_0", link_downed=5)], 3701, 3600)
    assert (growth, kept["at"]) == ({"mlx5_0/1": {"link_downed": 0}}, 3701)


LIMITS = {**CHECK_SETTINGS["gpu"], "vendor": "nvidia", "count": 2, "simulated": False}
BESIDE = {**LIMITS, "maxIdleMemoryMiB": 0}


def smi(**changes: str) -> list[gpu.State]:
    """Two H100 under load, of which the first one has these fields changed."""
    return gpu.read_states("\n".join(", ".join(each) for each in ({**SMI, **changes}.values(), {**SMI, "index": "1"}.values())))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        pytest.param({"ecc": "3"}, "GPU 0 has 3 uncorrectable memory errors", id="ecc"),
        pytest.param({"remap_failed": "Yes"}, "GPU 0 has memory to be retired", id="row-remapping-failed"),
        pytest.param({"remap_pending": "Yes"}, "GPU 0 has memory to be retired", id="row-remapping-pending"),
        pytest.param({"temperature": "91"}, "GPU 0 is hotter than 90 C", id="hot"),
        pytest.param({"thermal": "Active"}, "GPU 0 is held back by heat", id="thermal-slowdown"),
        pytest.param({"brake": "Active"}, "GPU 0 is held back by the power brake", id="power-brake"),
        pytest.param({"width": "8"}, "GPU 0 has 8 of 16 PCIe lanes", id="narrow"),
        pytest.param({"generation": "3"}, "GPU 0 has PCIe 3, 5 possible", id="slow"),
        pytest.param({"fabric": "Not Started"}, "GPU 0 is not in the NVLink fabric: the fabric manager has not begun with it", id="fabric"),
        pytest.param({"fabric_status": "Insufficient Resources"}, "GPU 0 is not in the NVLink fabric: Insufficient Resources", id="status"),
        pytest.param({"performance": "[GPU requires reset]"}, "GPU 0 says [GPU requires reset]", id="requires-reset"),
    ],
)
def test_gpu_with_a_fault(changes: dict[str, str], found: str) -> None:
    assert gpu.judge(2, smi(**changes), BESIDE) == ("failed", found)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"generation": "1", "width": "8", "utilization": "0", "performance": "P8"}, id="idle-and-its-link-saves-power"),
        pytest.param({"fabric": "In Progress", "fabric_status": "N/A"}, id="fabric-being-built"),
        pytest.param({"fabric": "N/A", "fabric_status": "N/A"}, id="no-nvswitch"),
        pytest.param({"temperature": "N/A", "thermal": "[N/A]", "width": "[N/A]"}, id="tells-nothing"),
    ],
)
def test_gpu_in_order(changes: dict[str, str]) -> None:
    assert gpu.judge(2, smi(**changes), BESIDE) == ("passed", "2 GPUs")


def test_users_job_with_all_of_a_gpus_memory_is_no_fault() -> None:
    busy = smi(memory="81559", utilization="100")
    assert gpu.judge(2, busy, BESIDE) == ("passed", "2 GPUs")
    idle = {**LIMITS, "count": 1}
    assert gpu.judge(1, busy[:1], idle) == ("failed", "GPU 0 has more than 1024 MiB in use on an idle node")


def test_nvlinks_that_are_inactive_are_missed_where_a_number_is_wanted() -> None:
    states = gpu.with_nvlinks(smi(), NVLINKS)
    assert [state.nvlinks for state in states] == [3, 2]
    assert gpu.judge(2, states, {**BESIDE, "minNvlinks": 3}) == ("failed", "GPU 1 has 2 active NVLinks, 3 wanted")
    assert gpu.judge(2, states, BESIDE)[0] == "passed"


def stand_in(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vendor's tool that prints what was recorded."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setattr(gpu, "_FOLDERS", (str(folder),))


def test_driver_that_does_not_know_a_field_is_asked_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = 'case "$1" in *{}*) echo \'Field "{}" is not a valid field to query.\'; exit 2;; esac'
    unknown = ("clocks_event_reasons.hw_thermal_slowdown", "clocks_event_reasons.hw_power_brake_slowdown", "fabric.state", "fabric.status")
    answer = ", ".join(list({**SMI, "thermal": "Active"}.values())[:-2])
    stand_in(tmp_path, "nvidia-smi", "\n".join([*(refuse.format(each, each) for each in unknown), f"echo '{answer}'"]), monkeypatch)
    [state] = gpu.ask("nvidia", asks_nvlinks=False) or []
    assert (state.throttled, state.fabric, state.memory_used_mib) == ("heat", "", 70000)


def test_amd_gpus_are_read_from_amd_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metric").write_text(json.dumps(AMD_METRICS))
    (tmp_path / "bad-pages").write_text(json.dumps(AMD_PAGES))
    stand_in(tmp_path, "amd-smi", f'exec cat "{tmp_path}/$1"', monkeypatch)
    states = gpu.ask("amd", asks_nvlinks=False)
    settings = {**BESIDE, "vendor": "amd", "count": 3}
    assert gpu.judge(3, states, settings) == (
        "failed",
        "GPU 1 has 2 uncorrectable memory errors; GPU 1 has memory to be retired; GPU 2 is hotter than 90 C; "
        "GPU 2 is held back by socket_thermal",
    )
    assert states is not None
    assert gpu.judge(1, states[:1], {**settings, "count": 1}) == ("passed", "1 GPUs")


def test_driver_is_told_beside_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(tmp_path, "nvidia-smi", f"echo '{', '.join(SMI.values())}'", monkeypatch)
    monkeypatch.setattr("sys.argv", ["-", json.dumps({**BESIDE, "count": 1, "otherDrivers": 2})])
    gpu.main()
    assert json.loads(capsys.readouterr().out)["driver"] == {"version": "550.90.07", "drains": 2}


def test_driver_of_amd_is_that_of_sysfs_or_the_kernels_own(tmp_path: Path) -> None:
    assert gpu.amd_driver(tmp_path) == os.uname().release
    write(tmp_path, {"version": "6.8.5"})
    assert gpu.amd_driver(tmp_path) == "6.8.5"


@pytest.mark.parametrize(
    ("script", "result", "found"),
    [
        pytest.param("echo no driver >&2; exit 15", "failed", "nvidia-smi ended with 15: no driver", id="driver"),
        pytest.param("echo what >&2; exit 6", "unknown", "nvidia-smi ended with 6: what", id="other-end"),
        pytest.param("echo what", "unknown", "nvidia-smi said ['what']", id="other-words"),
    ],
)
def test_tool_that_gives_no_state(
    script: str, result: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, "nvidia-smi", script, monkeypatch)
    monkeypatch.setattr("sys.argv", ["-", json.dumps(LIMITS)])
    gpu.main()
    assert json.loads(capsys.readouterr().out) == {"result": result, "found": found}


@pytest.mark.parametrize(("check", "facts"), [("kernel", {}), ("nvme", {}), ("pcie", {}), ("network", {"efaDevices": 0})])
def test_check_answers_on_this_machine(
    check: str, facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whatever this machine has: one JSON object with a result."""
    monkeypatch.setattr(network, "_KEPT", tmp_path / "kept.json")
    monkeypatch.setattr("sys.argv", ["-", json.dumps({**CHECK_SETTINGS[check], **facts})])  # type: ignore[index]
    {"kernel": kernel, "nvme": nvme, "pcie": pcie, "network": network}[check].main()
    answer = json.loads(capsys.readouterr().out)
    assert answer["result"] in ("passed", "failed", "unknown", "skipped")
    assert answer["found"]
