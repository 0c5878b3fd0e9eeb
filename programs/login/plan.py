"""Decides what a login node shows and limits, and what follows when its sshd ends. Pure."""

import re
from collections.abc import Mapping
from enum import Enum

from slurm.conf import CHECKS_PARTITION

_LEAST_WIDTH = 9
_COLUMNS = ("IDLE", "IN USE", "OTHER", "NODES")
_TAKES_JOBS = re.compile(r"(idle|planned)[-~!%#]*")
_HAS_JOBS = re.compile(r"allocated|mixed|completing")
_USER_JOBS = re.compile(r'^slurm_user_jobs_(running|pending)\{[^"]*"([^"]*)"[^}]*\} *([0-9.e+]+)', re.MULTILINE)
_LIMIT = re.compile(r"([A-Za-z]+)=([0-9]+)")

UNREADABLE_LIMITS = {"memoryMiB": 1024, "tasks": 100}
"""Of each user while the limits were never read."""


STATE_IS_OLD_S = 90
_PERIOD_US = 100_000
"""The kernel's default period of CPU quotas."""


class Next(Enum):
    """What follows from the end of sshd."""

    LEAVE = 1
    """It was told to end: the pod goes, once its sessions are over."""
    AGAIN = 2
    """Sessions are processes of their own, and continue."""
    FAIL = 3


def plan_end(is_stopping: bool, sessions: int) -> Next:
    """What to do now that sshd has ended."""
    if is_stopping:
        return Next.LEAVE
    return Next.AGAIN if sessions else Next.FAIL


def render_partitions(lines: str) -> str:
    """The table that sessions show. A line is `main|2|idle~`, with Slurm's own state of these nodes, so that a drained one is not idle.

    Idle nodes can take a job, also while they are powered down (~), powering down (%) or powering up (#). Nodes that do not respond (*) or
    reboot cannot.
    """
    counts: dict[str, list[int]] = {}
    for line in lines.splitlines():
        name, number, state = line.split("|")
        if name == CHECKS_PARTITION:
            continue  # hidden from users, and sinfo of this program shows it
        idle, used, every = counts.setdefault(name, [0, 0, 0])
        nodes = int(number)
        counts[name] = [
            idle + (nodes if _TAKES_JOBS.fullmatch(state) else 0),
            used + (nodes if _HAS_JOBS.match(state) else 0),
            every + nodes,
        ]
    width = max(_LEAST_WIDTH, *map(len, counts), 0)
    rows = ["".join([f"{'PARTITION':<{width}}", *(f" {column:>9}" for column in _COLUMNS)])]
    for name, (idle, used, every) in counts.items():
        rows.append("".join([f"{name:<{width}}", *(f" {number:>9}" for number in (idle, used, every - idle - used, every))]))
    return "".join(f"{row}\n" for row in rows)


def render_jobs(metrics: str) -> str:
    """A line for each user with jobs: name, running, waiting. slurmctld's lines are `slurm_user_jobs_running{username="alice"} 2`."""
    users: dict[str, dict[str, int]] = {}
    for kind, user, number in _USER_JOBS.findall(metrics):
        users.setdefault(user, {})[kind] = int(float(number))
    return "".join(f"{user} {jobs.get('running', 0)} {jobs.get('pending', 0)}\n" for user, jobs in sorted(users.items()))


def read_limits(text: str) -> dict[str, int] | None:
    """The limits by name: `cpus`, `memoryMiB`, `tasks`; None for a text that is not a list of limits."""
    matches = [_LIMIT.fullmatch(line) for line in text.splitlines() if line]
    return None if None in matches else {limit[1]: int(limit[2]) for limit in matches if limit}


def group_folders(uid: int, is_v2: bool) -> list[str]:
    """A user's groups, below /run/slipway/cgroup. The group that counts processes comes last."""
    return [f"v2/users/{uid}"] if is_v2 else [f"{controller}/users/{uid}" for controller in ("cpu", "memory", "pids")]


def cgroup_files(uid: int, is_v2: bool, limits: Mapping[str, int]) -> dict[str, str]:
    """The files of a user's groups that set limits, below /run/slipway/cgroup, with their values. A missing limit is lifted."""
    cpu, memory, pids = group_folders(uid, is_v2) * (3 if is_v2 else 1)
    none = "max" if is_v2 else "-1"
    quota, bytes_, tasks = f"{cpu}/cpu.cfs_quota_us", f"{memory}/memory.limit_in_bytes", f"{pids}/pids.max"
    if is_v2:
        quota, bytes_ = f"{cpu}/cpu.max", f"{memory}/memory.max"
    return {
        quota: str(limits["cpus"] * _PERIOD_US) if "cpus" in limits else none,
        bytes_: str(limits["memoryMiB"] * 2**20) if "memoryMiB" in limits else none,
        tasks: str(limits["tasks"]) if "tasks" in limits else "max",
    }


def render_message(cluster: str, jobs: str | None, age_s: int, user: str) -> str:
    """What a session shows of the cluster. `cluster` and `jobs` are from `render_partitions` and `render_jobs`, `age_s` seconds ago; `jobs`
    is None if users may not see jobs.

    Raises ValueError for a malformed line of jobs.
    """
    running, waiting = 0, 0
    for line in (jobs or "").splitlines():
        name, its_running, its_waiting = line.split()
        if name == user:
            running, waiting = int(its_running), int(its_waiting)
    age = f"The cluster as it was {age_s} s ago; slurmctld has not answered since.\n" if age_s > STATE_IS_OLD_S else ""
    more = "More: sinfo, squeue --me; ssh NODE goes where a job of yours runs."
    own_jobs = f"Your jobs: {running} running, {waiting} waiting. " if jobs is not None else ""
    return f"{age}{cluster}{own_jobs}{more}\n"


def render_pam_limits(limits: Mapping[str, int], most_tasks: int | None, most_kib: int | None) -> str:
    """Lines for pam_limits: tasks of each user, and the address space of each process. pam_limits has no share of CPUs.

    Each is at most what the pod itself may have (None: no limit), else pam_limits would refuse every session.
    """
    lines: list[str] = []
    for name, value in limits.items():
        if name == "tasks":
            lines.append(f"* - nproc {_at_most(value, most_tasks)}\n")
        elif name == "memoryMiB":
            lines.append(f"* - as {_at_most(value * 1024, most_kib)}\n")
    return "".join(lines)


def shows_own_group(groups: str, mounts: str, point: str, controller: str) -> bool:
    """True if a mount shows the container's own group and nothing above: groups made there must not be the machine's.

    `groups` is /proc/self/cgroup, `mounts` /proc/self/mountinfo, `point` where the mount is; `controller` is empty for v2.
    """
    rows = [line.split(":", 2) for line in groups.splitlines()]
    own_groups = [path for number, names, path in rows if (controller in names.split(",") if controller else number == "0")]
    mount_rows = [line.split() for line in mounts.splitlines()]
    shown = [row[3] for row in mount_rows if row[4] == point]
    return len(own_groups) == 1 and own_groups[0] != "" and shown[-1:] == own_groups


def may_set_capabilities(status: str) -> bool:
    """True if /proc/self/status shows that this container may have SETPCAP."""
    match = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return bool(match and int(match[1], 16) >> 8 & 1)


def _at_most(value: int, most: int | None) -> int:
    return value if most is None else min(value, most)
