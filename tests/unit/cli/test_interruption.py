"""Ctrl-C while the cluster is being changed."""

import signal
import subprocess
import sys

from tests.support.patience import patience


def test_interrupt_that_nothing_listens_to_ends_the_command_all_the_same() -> None:
    """A library may swallow a KeyboardInterrupt, or a thread be waited for."""
    code = """
import time
from cli import interruption
interruption._LATEST_END_S = 0.5
with interruption.stoppable():
    while True:
        try:
            print("up", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60 * patience())
    assert (process.returncode, said) == (130, "Interrupted. What was done stays; run the same command to finish.\n")
