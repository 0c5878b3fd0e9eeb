"""The program of the `notify` container: tells webhooks and mail addresses of ended jobs and of nodes out of service.

`python3 -m programs.notify.run CLUSTER RECEIVERS SECONDS`, as SlurmUser. RECEIVERS is a JSON file, read in each round; SECONDS is the time
between two rounds. Messages wait on slurmctld's disk, mails in the spool of programs/mail. It logs what it gives up.
"""

import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from types import FrameType

from slurm.commands import call
from slurm.ended import pause_s
from slurm.logs import teller
from slurm.pump import take_stderr

from .reader import Reader
from .sender import Senders
from .settings import Receiver, from_json

_CALL_S = 60

say = teller("notify")


def ask(*command: str) -> str:
    """Runs a Slurm command with a time-out."""
    return call(*command, timeout_s=_CALL_S, env={"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"})


def main() -> None:
    # Python as process 1 ignores SIGTERM. Ending at once loses nothing: the state is written after the messages.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)
    threading.excepthook = _fail  # a bug ends the process, which restarts, so that no webhook stays silent

    cluster, file, interval_s = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    reader, senders, told = Reader(cluster, ask, say), Senders(say), ""
    receivers: tuple[Receiver, ...] | None = None
    while True:
        at, fault = time.monotonic(), ""
        try:
            receivers = from_json(file.read_text())
        except (OSError, ValueError, KeyError, TypeError) as error:
            fault = f"the list of receivers cannot be read; the one before stays: {error!r}"
        if receivers is not None:  # until then, messages wait
            try:
                senders.follow(receiver.name for receiver in receivers if receiver.kind != "mail")
                reader.round(receivers)
            except OSError as error:
                fault = f"messages cannot be left on the disk, trying again: {error}"
        if fault and fault != told:
            say(fault)
        told = fault
        time.sleep(pause_s(time.monotonic() - at, interval_s))


def _fail(reason: threading.ExceptHookArgs) -> None:
    # Directly to the log: the thread that reads stderr ends with the process.
    say("FAILED: " + "".join(traceback.format_exception(reason.exc_type, reason.exc_value, reason.exc_traceback)))
    os._exit(1)


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    take_stderr("notify")
    main()
