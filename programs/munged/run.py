"""munged as a native sidecar: `python3 -m programs.munged.run`, as user munge. Ends when munged ends, with its exit code."""

import os
import signal
import subprocess
import sys
import time

from names import variables
from slurm.logs import teller
from slurm.pump import take_stderr

from .daemon import LATEST_S, Munged

_ORIGIN_S = 15
"""At the first start the Service may be younger than the pod, and cluster DNS caches a "no" for 5 s. The startup probe waits 60 s."""
_ASK_S = 3

say = teller("slipway-munged")


def find_origin(name: str) -> str:
    """The Service's IPv4 address, for credentials: Slurm shows its name as the AllocNode of jobs. Empty if it has none."""
    end = time.monotonic() + _ORIGIN_S
    while True:
        try:
            addresses = subprocess.run(["getent", "ahostsv4", name], capture_output=True, text=True, timeout=_ASK_S, check=False).stdout
        except subprocess.TimeoutExpired:
            addresses = ""
        if addresses.split():
            return addresses.split()[0]
        if time.monotonic() >= end:
            say(f"no IPv4 address of {name} in DNS: jobs from here show this pod's address as their AllocNode")
            return ""
        time.sleep(1)


def main() -> int:
    signal.signal(signal.SIGTERM, _leave)  # until there is a munged
    name = os.environ.get(variables.ORIGIN)
    latest_s = float(os.environ.get(variables.KEY_LATEST_S) or LATEST_S)
    munged = Munged(say, os.environ[variables.SLURMCTLD], latest_s, find_origin(name) if name else "")
    stopped: list[int] = []

    def stop(number: int, _: object) -> None:
        stopped.append(number)
        munged.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        code = munged.run()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        say(f"FAILED: {error}")
        code = 1
    munged.close()
    if stopped:
        return 0
    return code if code >= 0 else 128 - code


def _leave(_: int, __: object) -> None:
    sys.exit(0)


if __name__ == "__main__":
    take_stderr("slipway-munged")
    sys.exit(main())
