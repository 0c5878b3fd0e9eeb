"""The Job that installs packages in one version of the shared root. An interrupted run is resumed. apt's lock serializes installs.

`python3 -m programs.root_packages.run`, as root, with CAP_SYS_ADMIN for its mounts, SLIPWAY_ROOT_VERSION and SLIPWAY_ROOT_PACKAGES.
Exit code 1: this try failed. 3: the next cannot help either.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from names import paths
from slurm.logs import teller
from slurm.pump import take_stderr

from .plan import Outcome, Wanted, find_missing, judge, read_wanted

VERSIONS = Path(f"{paths.SHARED}/versions")
_MOUNTED = "mounted"
"""Argument of the program once it has its own mount namespace."""
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C"}
_ENVIRONMENT["DEBIAN_FRONTEND"] = "noninteractive"
_UPDATE = ("apt-get", "update", "-q", "-o", "APT::Update::Error-Mode=any")
_INSTALL = ("apt-get", "install", "-y", "-q", "-o", "Dpkg::Use-Pty=0", "-o", "Dpkg::Options::=--force-confold")

say = teller("root-packages")


def install(wanted: Wanted) -> tuple[Outcome, str]:
    """Installs what the version lacks. Raises OSError, CalledProcessError."""
    root = VERSIONS / wanted.version
    if not root.is_dir():
        return Outcome.AGAIN, f"version {wanted.version} is not there"
    furnish(root)
    missing = find_missing(wanted.packages, list_installed(root))
    if not missing:
        say(f"version {wanted.version} has {', '.join(wanted.packages)} already")
        return Outcome.DONE, ""
    call(root, ["dpkg", "--configure", "-a"])  # finishes a killed install
    code, output = call(root, _UPDATE)
    if code:
        return judge(code, output, wanted.version)
    code, output = call(root, [*_INSTALL, *missing])
    outcome, why = judge(code, output, wanted.version)
    if outcome is Outcome.DONE:
        say(f"version {wanted.version} has {', '.join(missing)} now")
    return outcome, why


def furnish(root: Path) -> None:
    """Mounts what package scripts expect of a system. The mounts end with this process, in its own namespace."""
    for name in ("proc", "dev", "tmp"):
        mount("--rbind", f"/{name}", root / name)
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", root / "run")
    for name in ("hosts", "resolv.conf"):
        file = root / "etc" / name
        if not file.exists():
            file.touch()
        mount("--bind", f"/etc/{name}", file)


def mount(*arguments: str | Path) -> None:
    """One mount. Raises CalledProcessError."""
    subprocess.run(["mount", *arguments], check=True)


def list_installed(root: Path) -> str:
    """All packages of the version, with state and version. Raises CalledProcessError."""
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n"]
    return subprocess.run(["chroot", root, *query], env=_ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True).stdout


def call(root: Path, command: Sequence[str]) -> tuple[int, str]:
    """Runs a command in the version; returns its exit code and output, which it also logs."""
    lines: list[str] = []
    with subprocess.Popen(
        ["chroot", root, *command], env=_ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            say(line.rstrip())
            lines.append(line)
    return process.returncode, "".join(lines)


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def main() -> int:
    # Python as process 1 ignores SIGTERM. Ending at once is safe: the next run resumes.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)
    if sys.argv[1:] != [_MOUNTED]:
        os.execvp("unshare", ["unshare", "--mount", "--propagation=private", *sys.orig_argv, _MOUNTED])  # noqa: S606 # there is no shell
    take_stderr("root-packages")
    try:
        outcome, why = install(read_wanted(os.environ))
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"FAILED: {error}")
        return 1
    if why:
        say(why)
    return {Outcome.DONE: 0, Outcome.REFUSED: 3, Outcome.AGAIN: 1}[outcome]


if __name__ == "__main__":
    sys.exit(main())
