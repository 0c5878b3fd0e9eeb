"""preStop hook of a worker: drains its node and returns when no job can be running on it, or after SLIPWAY_DRAIN_GRACE_S.

Only a reading of slurmctld counts; while it does not answer, the node counts as busy. `python3 -m programs.worker.stop`; ends with 0
always, as Kubernetes would report a failed hook and still end the pod.
"""

import os
import sys
import time

from names import variables
from slurm import logs

from .plan import Drain, Leave, plan_stop
from .slurm import SlurmError, read, write
from .steps import has_steps
from .stopping import say_stopping

_LOG = "/proc/1/fd/1"
_PAUSE_S = 1.0


def say(text: str) -> None:
    """Into the container's log; a hook's own output is only seen when it fails."""
    line = logs.line("worker-stop", text) + "\n"
    try:
        log = os.open(_LOG, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(log, line.encode("utf-8", "replace"))
        finally:
            os.close(log)
    except OSError:
        sys.stderr.write(line)


def attempt(name: str) -> tuple[str, bool]:
    """One look and at most one write: what to say, and whether the pod may end."""
    try:
        reading = read(name)
        step = plan_stop(name, reading.node, has_steps())
        if isinstance(step, Leave):
            return step.why, True
        if not isinstance(step, Drain):
            return step.why, False
        assert reading.node
        write(name, step, reading)
        return f"draining (state {reading.node.state})", False
    except SlurmError as error:
        return f"slurmctld does not answer, so the node counts as busy: {error}", False
    except Exception as error:  # the end of this hook ends the pod, and its jobs
        return f"the node counts as busy, as it could not be looked at: {error!r}", False


def main() -> int:
    name = os.uname().nodename
    grace_s = int(os.environ.get(variables.DRAIN_GRACE_S) or 3600)
    end = time.monotonic() + grace_s
    try:
        say_stopping()
    except OSError as error:  # a full disk, for instance; at worst the drain is lifted, and set again by the next look
        say(f"the programs of this pod were not told that it stops: {error}")
    last = ""
    while time.monotonic() < end:
        now, is_over = attempt(name)
        if now != last:
            say(now)
        last = now
        if is_over:
            return 0
        if not now.startswith("draining"):
            time.sleep(_PAUSE_S)
    say(f"gave up after {grace_s} s: {last}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
