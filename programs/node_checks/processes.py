"""Health check of processes that hang in the kernel (state D), as on a disk or a mount that does not answer. Runs on the node; standard
library only.

Settings: `maxStuck`, `stuckS`. A process counts if it is in state D at every look, a second apart, for `stuckS` seconds, and has not run
meanwhile. A process that waits for another one of its own user shows no fault of the node.
"""

import json
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NAMED = 3
"""The most processes that a message names."""
_OWN_DOING = (
    *("kernel_clone", "_do_fork", "do_fork", "wait_for_vfork_done"),
    *("seccomp_do_user_notification", "__seccomp_filter"),
    *("coredump_task_exit", "exit_mm", "do_exit", "do_coredump", "vfs_coredump"),
    *("de_thread", "handle_userfault"),
)
"""Functions of the kernel in which a process waits for something that its user decides.

It waits for a child of vfork, seccomp's answer, another thread's core, the end of other threads, or a page of userfaultfd. Source: Linux,
kernel/fork.c, seccomp.c, exit.c, fs/exec.c, fs/coredump.c, fs/userfaultfd.c.
"""
_FUSE = ("request_wait_answer", "fuse_", "__fuse_")
"""In these it waits for a file system in user space, which may be the site's or the user's."""
_UNKNOWN = ("", "0")
"""What wchan has for who may not know it, and on a kernel without stack traces."""


@dataclass(frozen=True)
class Stuck:
    """A process in state D, by what stays the same between two looks."""

    number: int
    start: int
    """In ticks after the machine's start."""
    name: str
    runs: str
    """How often it has given its processor away and lost it: more when it has run meanwhile."""


def stuck_of(stat: str, status: str) -> "Stuck | None":
    """From the texts of /proc/N/stat and /proc/N/status; None in any other state, and for other text."""
    match = re.match(r"(\d+) \((.*)\) (\w)((?: -?\d+){19})", stat, re.DOTALL)
    if match is None or match[3] != "D":
        return None
    return Stuck(int(match[1]), int(match[4].split()[18]), match[2], " ".join(re.findall(r"ctxt_switches:\s*(\d+)", status)))


def look(proc: Path) -> "set[Stuck]":
    """The processes in state D now."""
    stuck: set[Stuck] = set()
    for folder in proc.glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(errors="replace")
            status = (folder / "status").read_text(errors="replace") if ") D " in stat else ""
        except OSError:
            continue  # it has ended
        process = stuck_of(stat, status)
        if process is not None:
            stuck.add(process)
    return stuck


def waits_for_its_user(proc: Path, process: Stuck) -> "bool | None":
    """True if the user of the process can end its wait, None if that cannot be known."""
    folder = proc / str(process.number)
    try:
        where = (folder / "wchan").read_text().strip()
        if where.startswith(_OWN_DOING):
            return True
        return where.startswith(_FUSE) and _has_own_fuse(proc, folder) if where not in _UNKNOWN else None
    except OSError:
        return None


def _has_own_fuse(proc: Path, folder: Path) -> bool:
    """True if the process sees a FUSE file system that a user has mounted: in a user namespace, or as themselves."""
    if (folder / "uid_map").read_text() != (proc / "self/uid_map").read_text():
        return True
    mounts = (line.partition(" - ")[2].split(" ") for line in (folder / "mountinfo").read_text(errors="replace").splitlines())
    return any(option.startswith("user_id=") and option != "user_id=0" for mount in mounts for option in mount[-1].split(","))


def judge(stuck: "set[Stuck]", settings: "dict[str, Any]", unclear: "frozenset[Stuck] | set[Stuck]" = frozenset()) -> "tuple[str, str]":
    """`passed`, `failed` or `unknown`, and what was found. `unclear` may wait for their users."""
    most = settings["maxStuck"]
    if len(stuck) > most:
        return "failed", f"{_named(stuck)} in state D for {settings['stuckS']} s, {most} allowed"
    if len(stuck) + len(unclear) > most:
        return "unknown", f"{_named(unclear)} in state D for {settings['stuckS']} s, and the kernel does not tell what for"
    return "passed", f"{len(stuck)} processes hang in the kernel" if stuck else "no process hangs in the kernel"


def _named(stuck: "frozenset[Stuck] | set[Stuck]") -> str:
    named = ", ".join(f"{process.name} ({process.number})" for process in sorted(stuck, key=lambda process: process.number)[:_NAMED])
    return f"{named} and {len(stuck) - _NAMED} more" if len(stuck) > _NAMED else named


def find(proc: Path, seconds: int) -> "tuple[set[Stuck], set[Stuck]]":
    """Processes that hang for `seconds` seconds, and those that may wait for their users. Only root may know what others wait for. But a
    job of a check has the node for itself: users' processes were killed, and only what hangs is still there."""
    stuck = look(proc)
    for _ in range(seconds):
        if not stuck:
            break
        time.sleep(1)
        stuck &= look(proc)
    waits = {process: waits_for_its_user(proc, process) for process in stuck}
    hanging = {process for process, is_own in waits.items() if is_own is False or (is_own is None and os.geteuid() != 0)}
    return hanging, {process for process, is_own in waits.items() if is_own is None} - hanging


def main() -> None:
    settings = json.loads(sys.argv[1])
    stuck, unclear = find(Path("/proc"), settings["stuckS"])
    result, found = judge(stuck, settings, unclear)
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
