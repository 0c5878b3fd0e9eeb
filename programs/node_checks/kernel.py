"""Health check of the kernel's log: faults of GPUs, memory, disks, links and file systems. Runs on the node, beside jobs; standard library
only.

Settings: `maxAgeS` (0: since the machine started), a limit for each kind of fault, and `patterns` of the user's, by name. `xids` are added
to those below, and `ignoredXids` taken from them. A job may end with an Xid, or be killed at its own memory limit: neither is a fault of
the node. Users choose words of the log, too (names of processes, files and interfaces, mount options): these prove nothing.
"""

import errno
import json
import os
import re
import sys
import time
from dataclasses import dataclass
from typing import Any

_LOG = "/dev/kmsg"
_MOST = 50_000
"""Records that one look reads. A machine's log holds some thousands."""
_RECORD = 8192
"""Bytes; the kernel's longest record."""
_NAMED = 3
_LONGEST = 120
_MATCHED = 500
"""Characters of a line that patterns of the user's see."""

XIDS = {
    46: "GPU stopped processing",
    48: "double bit ECC error",
    54: "auxiliary power is not connected",
    62: "internal micro-controller halt",
    64: "memory remapping failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    95: "uncontained memory error",
    110: "security fault",
    119: "GSP does not answer",
    120: "GSP error",
    136: "link training failed",
    140: "unrecovered ECC error",
    143: "GPU did not initialise",
    155: "NVLink error",
    156: "memory is to be retired",
    158: "GPU does not answer",
    167: "PCIe does not answer",
    168: "less memory than it should have",
    169: "internal micro-controller halt",
    171: "uncorrectable DRAM error",
    172: "uncorrectable SRAM error",
}
"""The Xids for which a GPU has to be reset, its machine rebooted or its board looked at: those are faults of the node.

All others are a job's own (13, 31, 43, 45, 69, 94), report repairs by the driver (63, 92), or come with one of these. NVIDIA wants a reset
for 109, too; a job's endless kernel causes it, so it is left out. Source: NVIDIA, "Analyzing Xid Errors with the Xid Catalog", immediate
action.
"""
_NVLINK_XIDS = range(144, 151)
"""NVLink of Blackwell: faults where the line says `Fatal`. Source: as above, "XID 144-150 Decode"."""
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-f:.]+)\): (\d+)(.*)")
_RECOVERY = re.compile(r"GPU recovery action changed from .* to 0x[0-9a-f]+ \((.*(?:Reset|Reboot).*)\)")
"""Xid 154: the driver names the action that the GPU needs."""

_DISK = r"(?!fd|sr|loop|nbd|ram|zram)[\w!-]+"
"""A disk; an image file or a floppy is none."""
PATTERNS: tuple[tuple[str, str], ...] = (
    ("maxGpuErrors", r"NVRM: .*GPU has fallen off the bus"),
    ("maxGpuErrors", r"nvidia-nvswitch\d+: SXid \(PCI:[^)]*\): \d+, Fatal"),
    ("maxGpuErrors", r"amdgpu [0-9a-f:.]+: .*(uncorrectable hardware errors|GPU reset\(\d+\) failed)"),
    ("maxMemoryErrors", r"EDAC \S+: \d+ UE .*\bon "),
    ("maxMemoryErrors", r"Memory failure: 0x[0-9a-f]+: "),
    ("maxMemoryErrors", r"mce: Uncorrected hardware memory error"),
    ("maxMemoryErrors", r"\{\d+\}\[Hardware Error\]: event severity: (recoverable|fatal)"),
    ("maxPcieErrors", r"\S+ \S+: AER: (Multiple )?Uncorrect(ed|able) \(Fatal\) error"),
    ("maxPcieErrors", r"mlx5_core \S+: .*(device's health compromised|firmware internal error)"),
    ("maxDiskErrors", r"nvme nvme\d+: (I/O .*timeout, |controller is down; will reset|Device not ready|Disabling device)"),
    ("maxDiskErrors", r"nvme nvme\d+: Removing after probe failure"),
    ("maxDiskErrors", rf"(blk_update_request: )?(I/O|critical medium|critical target) error, dev {_DISK}, "),
    ("maxDiskErrors", rf"md/raid\S*: Disk failure on {_DISK}, "),
    ("maxFilesystemErrors", r"EXT4-fs error \(device (?!loop)"),
    ("maxFilesystemErrors", r"EXT4-fs \((?!loop)\S+\): Remounting filesystem read-only"),
    ("maxFilesystemErrors", r"XFS \((?!loop)\S+\): (.*Corruption |.*[Ss]hutting down filesystem|Filesystem has been shut down)"),
    ("maxFilesystemErrors", r"BTRFS.* \(device (?!loop).*forced readonly"),
    ("maxLinkDowns", r"mlx5_core \S+(?: \S+)?: Link down"),
    ("maxLinkDowns", r"(bnxt_en|ice|ena|i40e) \S+ \S+: (NIC )?Link is [Dd]own"),
    ("maxHungTasks", r"INFO: task .* blocked for more than \d+ seconds"),
    ("maxOoms", r"Out of memory: Killed process "),
)
"""Which limit counts a line that begins so. `Memory cgroup out of memory` is a job's or a pod's own limit."""
_NAME = r"(?:\\x[0-9a-f]{2}|[^\\]){0,15}?"
"""What a process may be called: 15 bytes, of which /dev/kmsg writes some as `\\x0a`; a backslash, too."""
_OF_A_PROCESS = re.compile(
    rf"(?:traps: )?{_NAME}(?:\[ *\d+\]| ?\(\d+\)[ :]|/\d+(?:/|: | is )| invoked oom-killer: |: page allocation (?:failure|stalls)"
    r"|: vmalloc |: vmap |: potentially unexpected fatal signal |: Corrupted page table |: unhandled |: Out of memory|: recvmsg bug"
    r"| uses obsolete | is using a deprecated "
    r"|: renamed from |: port \d+\(|: topology change |: (?:entered|left) (?:promiscuous|allmulticast) mode)"
)
"""Lines that begin with a name that a user chose, of a process or a network interface.

They are of a crash, as `NAME[123]: segfault at`, which ends with the name of a file. Others are of a request for memory, or of a bridge in
a user's own network. Source: Linux, the printk that begin with `%s` and `current->comm`. For interfaces: lines of 6.18 on bridges and
cables of a plain user.
"""
_CHOSEN = re.compile(
    r"(?<=, name=)(?:\\x[0-9a-f]{2}|[^\\]){0,15}(?=, )"
    r"""|(?:(?<=[ =(])(?<!pid=)['"`]|(?<=Comm: )|(?<=comm )|(?<=comm=)|(?<=task=)|(?<= process )\d+ \(|(?<=s! \[)|(?<=INFO: task )"""
    r"|(?<=^device )|(?<=NETDEV_CHANGE\): )|(?<=NETDEV_UP\): )).*"
)
"""The part of a line that a user chose: a name, or the text of an option.

In a line of NVIDIA's driver it is the name only; in all others the rest of the line, as of `Killed process 7 (NAME)`.
"""
_HINTS = ("NVRM", "nvidia-", "amdgpu", "EDAC", "emory", "Hardware Error", "AER", "mlx5_", "nvme", "error", "md/", "EXT4", "XFS", "BTRFS")
_STARTS = re.compile("|".join([*_HINTS, "INFO: task", "ink is "]))
"""Most lines have none of these, and are looked at no further."""
LIMITS = (*dict.fromkeys(limit for limit, _ in PATTERNS), "maxPatterns")
_WORDS = {
    "maxGpuErrors": "GPU errors",
    "maxMemoryErrors": "uncorrectable memory errors",
    "maxPcieErrors": "PCIe errors",
    "maxDiskErrors": "disk errors",
    "maxFilesystemErrors": "file system errors",
    "maxLinkDowns": "lost links",
    "maxHungTasks": "hung tasks",
    "maxOoms": "times out of memory",
    "maxPatterns": "lines that match patterns",
}


@dataclass(frozen=True)
class Line:
    """A record of the log."""

    at_s: float
    """Seconds since the machine started."""
    text: str


def fault_of(text: str, settings: dict[str, Any]) -> tuple[str, str] | None:
    """The limit that counts the line, and its text; None for a line that shows no fault of the node."""
    if _STARTS.search(text) is None or _OF_A_PROCESS.match(text):
        return None
    if xid := _XID.match(text):
        number, details = int(xid[2]), xid[3]
        if number in settings["ignoredXids"]:
            return None
        if number in XIDS or (number in _NVLINK_XIDS and " Fatal" in details):
            return "maxGpuErrors", f"GPU {xid[1]}: Xid {number} ({XIDS.get(number, 'NVLink error')})"
        if number == 154 and (action := _RECOVERY.search(details)):
            return "maxGpuErrors", f"GPU {xid[1]}: {action[1]}"
        return ("maxGpuErrors", f"GPU {xid[1]}: Xid {number}") if number in settings["xids"] else None
    for limit, pattern in PATTERNS:
        if re.match(pattern, text):  # compiled once a line may be one: most looks need none
            return limit, _cut(text)
    return None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _faults_of(text: str, settings: dict[str, Any], patterns: dict[str, re.Pattern[str]]) -> list[tuple[str, str]]:
    """Each limit that counts the line, with its text: at most one of ours, and one for the first of the user's patterns."""
    ours = fault_of(text, settings)
    seen = "" if not patterns or _OF_A_PROCESS.match(text) else _CHOSEN.sub("", text)[:_MATCHED]
    name = next((name for name, pattern in patterns.items() if pattern.search(seen)), None)
    return [*([ours] if ours else []), *([("maxPatterns", f"{name}: {_cut(text)}")] if name is not None else [])]


def judge(lines: list[Line], now_s: float, settings: dict[str, Any]) -> tuple[str, str]:
    """`passed` or `failed`, and what was found; `now_s` in seconds since the machine started. Every kind of fault is named."""
    oldest = now_s - settings["maxAgeS"] if settings["maxAgeS"] else 0.0
    young = [line for line in lines if line.at_s >= oldest]
    counts = dict.fromkeys(LIMITS, 0)
    texts: dict[str, dict[str, None]] = {limit: {} for limit in LIMITS}
    patterns = {name: re.compile(pattern) for name, pattern in settings["patterns"].items()}
    for line in young:
        for limit, text in _faults_of(line.text, settings, patterns):
            counts[limit] += 1
            texts[limit][text] = None
    faults: list[str] = []
    for limit, count in counts.items():
        if count > settings[limit]:
            named, most = [*texts[limit]], settings[limit]
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            allowed = f" ({count} {_WORDS[limit]}, {most} allowed)" if most else ""
            faults.append(f"{', '.join(named[:_NAMED])}{more}{allowed}")
    if faults:
        return "failed", "; ".join(faults)
    return "passed", f"no fault in {len(young)} lines of the kernel's log"


def read_line(record: bytes) -> Line | None:
    """Reads a record of /dev/kmsg: `priority,number,microseconds,flags;text`, and lines that begin with a space. None for other text, and
    for what a program has written under its own name. Source: the kernel's Documentation/ABI/testing/dev-kmsg."""
    head, separator, text = record.partition(b";")
    fields = head.split(b",")
    if not separator or len(fields) < 4 or not fields[0].isdigit() or not fields[2].isdigit():
        return None
    # 0: the kernel. 1: root, by `echo > /dev/kmsg`, to see what becomes of a line.
    if int(fields[0]) >> 3 > 1:
        return None
    return Line(int(fields[2]) / 1e6, text.partition(b"\n")[0].decode(errors="replace"))


def read_log(path: str, most: int = _MOST) -> list[Line]:
    """The lines of the log now, without waiting for more. Raises OSError, and OverflowError if there are more than `most` records."""
    lines: list[Line] = []
    log = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        for _ in range(most):
            try:
                record = os.read(log, _RECORD)
            except BlockingIOError:
                return lines
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten meanwhile: the next read has what follows
                    continue
                raise
            if not record:
                return lines
            if (line := read_line(record)) is not None:
                lines.append(line)
    finally:
        os.close(log)
    raise OverflowError(f"it has more than {most} lines")


def main() -> None:
    try:
        lines = read_log(_LOG)
        result, found = judge(lines, time.clock_gettime(time.CLOCK_MONOTONIC), json.loads(sys.argv[1]))
    except (OSError, OverflowError) as error:
        result, found = "unknown", f"the kernel's log cannot be read: {error}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
