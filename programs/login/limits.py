"""Limits each user of a login pod: with a cgroup below the pod's own, or with pam_limits where the container may not make cgroups.

Only root enters /run/slipway/cgroup, where slipway-login-session makes the users' groups. The limits are lines of
/etc/slipway/login/limits: cpus=, memoryMiB=, tasks=. Changed ones count from a user's next login. `python3 -m programs.login.limits`
rewrites those of pam_limits.
"""

import contextlib
import resource
import subprocess
import sys
from pathlib import Path

from names import paths
from slurm.logs import teller

from .plan import UNREADABLE_LIMITS, read_limits, render_pam_limits, shows_own_group

TOP = Path(paths.LOGIN_CGROUPS)
_CGROUPS = Path("/sys/fs/cgroup")
_LIMITS = Path(f"{paths.LOGIN}/limits")
_PAM = Path("/etc/security/limits.d/slipway.conf")
_CONTROLLERS = ("cpu", "memory", "pids")
_TRIES = 20

say = teller("slipway-login")


def prepare() -> None:
    """Prepares cgroups of users, or pam_limits. Raises OSError if neither works."""
    TOP.mkdir(mode=0o700, exist_ok=True)
    TOP.chmod(0o700)
    is_v2 = (_CGROUPS / "cgroup.controllers").is_file()
    try:
        if is_v2:
            _prepare_v2()
        else:
            for controller in _CONTROLLERS:
                _show_writable(_CGROUPS / controller, TOP / controller, controller)
    except (OSError, subprocess.CalledProcessError) as error:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            _undo()
        TOP.rmdir()
        why = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error
        say(f"no cgroups of users' own here ({why}); pam_limits limits tasks of each user, and the address space of each process")
        write_pam_limits()
        return
    say(f"each user has a cgroup ({'v2' if is_v2 else 'v1'})")


def write_pam_limits() -> bool:
    """Writes the limits for pam_limits. False if they cannot be read, and earlier ones stay. Raises OSError.

    Slurm must not carry these limits on to jobs: slurm.conf, PropagateResourceLimitsExcept.
    """
    try:
        limits = read_limits(_LIMITS.read_text(errors="replace"))
    except OSError:
        limits = None
    if limits is None and _PAM.exists():
        say("cannot read the limits; those read before stay")
        return False
    if limits is None:
        say("cannot read the limits: each user gets 1 GiB a process and 100 tasks until they can be read")
        limits = UNREADABLE_LIMITS
    most_bytes = _most(resource.RLIMIT_AS)
    text = render_pam_limits(limits, _most(resource.RLIMIT_NPROC), None if most_bytes is None else most_bytes // 1024)
    new_file = _PAM.with_name(f"{_PAM.name}.new")
    new_file.write_text(text)
    new_file.replace(_PAM)
    return True


def _prepare_v2() -> None:
    top = TOP / "v2"
    _show_writable(_CGROUPS, top, "")
    # A group with processes has no children with controllers, so ours move into a leaf; an exec may add a process meanwhile.
    (top / "slipway").mkdir(exist_ok=True)
    for _ in range(_TRIES):
        processes = (top / "cgroup.procs").read_text().split()
        if not processes:
            break
        for process in processes:
            with contextlib.suppress(OSError):  # ended meanwhile
                (top / "slipway" / "cgroup.procs").write_text(f"{process}\n")
    for controller in _CONTROLLERS:
        for group in (top, top / "users"):
            (group / "cgroup.subtree_control").write_text(f"+{controller}\n")


def _show_writable(source: Path, target: Path, controller: str) -> None:
    """Mounts the container's cgroups a second time, writable: the first mount is read-only, and stays so."""
    groups, mounts = (Path(f"/proc/self/{name}").read_text(errors="replace") for name in ("cgroup", "mountinfo"))
    if not shows_own_group(groups, mounts, str(source.resolve()), controller):
        raise OSError("the mount shows more than this container")
    target.mkdir(mode=0o755, exist_ok=True)
    _run("mount", "--bind", str(source), str(target))
    _run("mount", "-o", "remount,bind,rw", str(target))
    (target / "users").mkdir(exist_ok=True)


def _undo() -> None:
    for part in ("v2", *_CONTROLLERS):
        if (TOP / part).is_mount():
            _run("umount", str(TOP / part))
        if (TOP / part).is_dir():
            (TOP / part).rmdir()


def _most(limit: int) -> int | None:
    most = resource.getrlimit(limit)[1]
    return None if most == resource.RLIM_INFINITY else most


def _run(*command: str) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


if __name__ == "__main__":
    sys.exit(0 if write_pam_limits() else 1)
