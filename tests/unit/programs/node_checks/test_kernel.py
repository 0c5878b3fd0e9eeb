"""What the check of the kernel's log makes of recorded lines."""

import os
from typing import Any

import pytest

from programs.node_checks import kernel
from programs.node_checks.kinds import KINDS

KERNEL: dict[str, Any] = {**KINDS["kernel"].limits, "xids": [], "ignoredXids": [], "patterns": {}}
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
"""Lines of a broken node, each with the words of the check; where these are the line itself, they are empty here."""
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
    "EDAC a: 1 UE x[26498]: segfault at 0 ip 00007faf02f74219 sp 00007ffd82175278 error 4 in libc.so.6[156219,7faf02e44000+156000]",
    "bad[4711]: NVRM: Xid (PCI:0000:3f:00): 79, pid=1",
)
"""Lines of a node in order: a job's own errors, what the hardware has mended, and the name of a process as the kernel wrote it."""
FORGED = {
    "crash": "{name}[4711]: segfault at 0 ip 00007faf02f74219 sp 00007ffd82175278 error 4 in {file}[401000+1000] likely on CPU 1 (core 1)",
    "trap": "traps: {name}[4711] general protection fault ip:7faf02f74219 sp:7ffd82175278 error:0 in {file}[401000+1000]",
    "trap-before-6": "{name}[4711] trap invalid opcode ip:7faf02f74219 sp:7ffd82175278 error:0 in {file}[401000+1000]",
    "signal": "{name}: potentially unexpected fatal signal 11. {file}",
    "signal-with-number": "{name}/4711: potentially unexpected fatal signal 11. {file}",
    "memory": "{name} invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0 {file}",
    "page": "{name}: page allocation failure: order:4, mode:0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO), nodemask=(null) {file}",
    "vmalloc": "{name}: vmalloc error: size 4096, failed to allocate pages {file}",
    "stack": "{name} (4711) used greatest stack depth: 10000 bytes left {file}",
    "table": "{name}: Corrupted page table at address 7faf02f74219 {file}",
    "old-call": "{name} uses obsolete (PF_INET,SOCK_PACKET) {file}",
    "interface": "{name}: renamed from {file}",
    "bridge": "{name}: port 1({file}) entered blocking state",
    "port-of-a-bridge": "br0: port 1({name}) entered disabled state",
    "bridge-without-ports": "{name}: topology change detected, propagating",
    "promiscuous": "{name}: entered promiscuous mode",
    "multicast": "{name}: left allmulticast mode",
    "promiscuous-before-6": "device {name} entered promiscuous mode",
    "link": "IPv6: ADDRCONF(NETDEV_CHANGE): {name}: link becomes ready",
    "list-of-tasks": "[   4711] 10001  4711   100    50   40960        0             0 {name} {file}",
    "mount": "tmpfs: Unknown parameter '{name}{file}'",
    "killed": "Memory cgroup out of memory: Killed process 4711 ({name}) total-vm:100kB, anon-rss:50kB, file-rss:0kB, UID:10001 {file}",
    "audit": 'audit: type=1701 audit(1795500000.000:1): auid=10001 uid=10001 pid=4711 comm="{name}" exe="/home/alice/{file}" sig=11 res=1',
    "cgroup": "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,task={name},pid=4711,uid=10001 {file}",
    "lockup": "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [{name}:4711] {file}",
    "warning": "CPU: 1 PID: 4711 Comm: {name} Not tainted 6.18.44 #1 {file}",
    "hung": "INFO: task {name}:4711 blocked for more than 120 seconds.",
    "quoted": "warning: `{name}' uses 32-bit capabilities (legacy support in use) {file}",
    "xid": "NVRM: Xid (PCI:0000:3f:00): 31, pid=4711, name={name}, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS",
}
"""Lines with the name of a process or a network interface (15 characters), of a file, or the option of a mount, as users choose them."""


def lines(*texts: str, at_s: float = NOW - 60) -> list[kernel.Line]:
    return [kernel.Line(at_s, text) for text in texts]


@pytest.mark.parametrize(("text", "said"), FAULTS.items())
def test_kernel_line_that_is_a_fault(text: str, said: str) -> None:
    result, found = kernel.judge(lines(text), NOW, KERNEL)
    assert result == "failed"
    assert (said or text[:100]) in found


@pytest.mark.parametrize("text", FINE)
def test_kernel_line_of_a_jobs_own_error_drains_nothing(text: str) -> None:
    assert kernel.judge(lines(text), NOW, KERNEL)[0] == "passed"


@pytest.mark.parametrize("form", FORGED.values(), ids=FORGED.keys())
def test_name_that_a_user_chose_is_no_fault_of_the_node(form: str) -> None:
    """The name is a fault's first 15 characters, with or without one that /dev/kmsg escapes, and the file's name is the rest."""
    for fault in FAULTS:
        for name, rest in ((fault[:15], fault[15:]), (fault[:14] + r"\x01", fault[14:])):
            forged = form.format(name=name, file=rest.replace("/", "!"))
            assert kernel.judge(lines(forged), NOW, KERNEL)[0] == "passed", forged


@pytest.mark.parametrize("form", FORGED.values(), ids=FORGED.keys())
def test_pattern_of_the_config_does_not_see_what_users_chose(form: str) -> None:
    for name in ("bad weather", "bad, weather", "a bad weather", r"bad weather\x0a", "bad weather, x"):
        forged = form.format(name=name, file="")
        assert kernel.judge(lines(forged), NOW, {**KERNEL, "patterns": {"own": "bad,? weather"}})[0] == "passed", forged


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
    assert kernel.judge(lines(*[down] * 3, *[hung] * 3), NOW, KERNEL)[0] == "passed"
    assert kernel.judge(lines(*[down] * 4), NOW, KERNEL) == ("failed", f"{down} (4 lost links, 3 allowed)")
    assert kernel.judge(lines(*[hung] * 4), NOW, KERNEL) == ("failed", f"{hung} (4 hung tasks, 3 allowed)")


def test_every_kind_of_fault_is_named_and_a_long_list_is_cut() -> None:
    xids = [XID.format(79, "").replace("3f", f"{at:02x}") for at in range(5)]
    found = kernel.judge(lines(*xids, "Out of memory: Killed process 1 (x)"), NOW, KERNEL)[1]
    assert found.startswith("GPU 0000:00:00: Xid 79 (GPU has fallen off the bus), ")
    assert found.endswith(" and 2 more; Out of memory: Killed process 1 (x)")


HOT = "CPU3: Core temperature above threshold, cpu clock throttled (total events = 7)"
TRIP = {"patterns": {"hot": r"CPU\d+: .* above threshold", "late": "clocksource: .*unstable"}}


@pytest.mark.parametrize(
    ("texts", "settings", "answer"),
    [
        pytest.param([XID.format(63, "")], {}, ("passed", "no fault in 1 lines of the kernel's log"), id="xid-that-does-not-count"),
        pytest.param([XID.format(63, "")], {"xids": [63]}, ("failed", "GPU 0000:3f:00: Xid 63"), id="xid-that-counts-by-the-config"),
        pytest.param(
            [XID.format(79, "")], {"ignoredXids": [79]}, ("passed", "no fault in 1 lines of the kernel's log"), id="xid-that-is-ignored"
        ),
        pytest.param(
            [XID.format(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")],
            {"ignoredXids": [154]},
            ("passed", "no fault in 1 lines of the kernel's log"),
            id="xid-of-the-recovery-action-that-is-ignored",
        ),
        pytest.param(
            [XID.format(94, "")],
            {"xids": [94], "maxGpuErrors": 1},
            ("passed", "no fault in 1 lines of the kernel's log"),
            id="xid-below-the-limit-of-all",
        ),
        pytest.param([HOT], {}, ("passed", "no fault in 1 lines of the kernel's log"), id="line-without-a-pattern"),
        pytest.param([HOT], TRIP, ("failed", f"hot: {HOT}"), id="line-with-a-pattern"),
        pytest.param(
            [HOT, HOT], {**TRIP, "maxPatterns": 2}, ("passed", "no fault in 2 lines of the kernel's log"), id="as-many-lines-as-may-be"
        ),
        pytest.param(
            [HOT, HOT, "clocksource: tsc unstable"],
            {**TRIP, "maxPatterns": 2},
            ("failed", f"hot: {HOT}, late: clocksource: tsc unstable (3 lines that match patterns, 2 allowed)"),
            id="lines-of-all-patterns-count-together",
        ),
        pytest.param(
            [XID.format(63, "Row Remapper: New row marked for remapping, reset gpu to activate.")],
            {"patterns": {"rows": "Row Remapper: New row"}},
            ("failed", f"rows: {XID.format(63, 'Row Remapper: New row marked for remapping, reset gpu to activate.')[:117]}..."),
            id="line-of-a-driver-behind-the-name-of-a-process",
        ),
        pytest.param(
            ["x" * 490 + "deadline"],
            {"patterns": {"late": "deadline"}},
            ("failed", f"late: {'x' * 117}..."),
            id="long-line-is-cut",
        ),
        pytest.param(
            ["Out of memory: Killed process 1 (x)"],
            {"patterns": {"own": "Killed process"}},
            ("failed", "Out of memory: Killed process 1 (x); own: Out of memory: Killed process 1 (x)"),
            id="line-that-is-a-fault-anyway",
        ),
    ],
)
def test_kernel_line_that_the_config_decides_on(texts: list[str], settings: dict[str, Any], answer: tuple[str, str]) -> None:
    assert kernel.judge(lines(*texts), NOW, {**KERNEL, **settings}) == answer


def test_end_of_a_long_line_is_not_matched() -> None:
    assert kernel.judge(lines("x" * 493 + "deadline"), NOW, {**KERNEL, "patterns": {"late": "deadline"}})[0] == "passed"


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
