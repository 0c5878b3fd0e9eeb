"""The local cluster's own programs."""

import signal
import sys

from local import processes
from tests.support.cluster.dev_stack import STATE, DevStack, eventually


def local(stack: DevStack, verb: str) -> str:
    return stack.run(sys.executable, "-m", "local", verb, timeout_s=600).stdout


def pid_of(program: str) -> int:
    """The process id of a program of the local cluster, by its record."""
    return int((STATE / "processes" / program).read_text().split()[0])


def kill(program: str) -> None:
    """Kills a program of the local cluster behind its back, and returns when it is gone: `up` would take it for running."""
    boot, record = processes.boot_id(), processes.running(STATE / "processes")[program]
    processes.send(record, signal.SIGKILL, boot)
    eventually(f"{program} is gone", lambda: not processes.is_alive(record, boot), 30)
