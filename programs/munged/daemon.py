"""Runs munged with the Secret's key, at the socket in /run/munge. Decides nothing: see plan.

In its own container it runs as user munge, and the pod's containers share /run/munge. In a worker it starts as root, keeps the key on a
tmpfs, and drops all rights before it becomes munged.
"""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable

from names import paths, ports
from slurm.people import ACCOUNTS
from slurm.pump import Pump

from .keys import KEY, SECRET, Keys, has_key, say_taken, say_waiting, waiting_since
from .plan import Dial, Step, count_silence, pause_s, plan_key

_DIAL_S = 2
_RUN = paths.MUNGE_RUN
_STATE = "/var/lib/munge"
_GIVE_UP = (
    "setpriv",
    "--reuid",
    "munge",
    "--regid",
    "munge",
    "--clear-groups",
    "--no-new-privs",
    "--inh-caps",
    "-all",
    "--bounding-set",
    "-all",
)
LATEST_S = 600


class Munged:
    """One munged. `run` starts and reaps it in the calling thread; a second thread watches for another key."""

    def __init__(self, say: Callable[[str], None], controller: str, latest_s: float = LATEST_S, origin: str = "") -> None:
        """`controller` is slurmctld's host; `origin` is the address in credentials, in place of the pod's own."""
        self._say = say
        self._controller = controller
        self._latest_s = latest_s
        self._origin = ["--origin", origin] if origin else []
        self._keys = Keys()
        self._log = Pump("munged")
        self._process: subprocess.Popen[bytes] | None = None
        self._is_watched = False
        self._is_stopping = False
        self._outdated: subprocess.Popen[bytes] | None = None
        """The process that ends because of another key."""

    def run(self) -> int:
        """Runs until munged ends or is stopped; returns its exit code. Raises OSError, CalledProcessError, RuntimeError (no thread)."""
        give_up = self._prepare()
        if not has_key():
            self._keys.take()
        is_change = False
        while True:
            self._keys.note()
            # --force: munged would refuse the volume's mode, and the socket that a killed container left. --max-ttl: munged remembers each
            # decoded credential while it is valid. Slurm's are valid for five minutes.
            options = ["--foreground", "--force", "--num-threads", "10", "--max-ttl", "300", "--key-file", KEY, *self._origin]
            if not self._is_watched:  # first: if no thread can be started, munged does not run unwatched
                threading.Thread(target=self._look_after_key, daemon=True).start()
                self._is_watched = True
            self._process = subprocess.Popen([*give_up, "munged", *options], cwd="/", stdout=self._log.fd, stderr=self._log.fd)
            if is_change:
                say_taken()
                self._say("munged runs with another key")
            if self._is_stopping:  # the signal came before munged was started
                self._process.terminate()
            code = self._process.wait()
            if self._is_stopping or self._outdated is not self._process:
                return code
            self._keys.take()
            is_change = True

    def close(self) -> None:
        """Writes the last lines of munged's log. Call it after `run` has returned."""
        self._log.close()

    def stop(self) -> None:
        """Ends munged, and `run`. For signal handlers."""
        self._is_stopping = True
        self._terminate()

    def _prepare(self) -> tuple[str, ...]:
        """Makes the folders; returns the prefix of munged's command."""
        if os.getuid() != 0:
            if not os.path.isdir(_STATE):
                os.mkdir(_STATE, 0o700)
            return ()
        if not os.path.ismount(_STATE):
            options = "mode=0700,size=1m,nosuid,nodev,noexec"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "munge", _STATE], check=True)
        for folder, mode in ((_RUN, 0o755), (_STATE, 0o700)):
            os.makedirs(folder, exist_ok=True)
            os.chmod(folder, mode)
            os.chown(folder, ACCOUNTS["munge"], ACCOUNTS["munge"])
        return _GIVE_UP

    def _look_after_key(self) -> None:
        silence, told = 0, ""
        step = Step.REST
        while True:
            time.sleep(pause_s(step))
            if self._is_stopping:
                return
            if self._outdated is self._process:  # it is ending
                continue
            try:
                is_waiting = self._keys.has_other()
                fault = ""
            except OSError:
                is_waiting = False
                fault = f"FAILED: whether {SECRET} has another key is unknown: it cannot be compared with the one in use, which stays"
            try:
                if is_waiting and say_waiting():
                    self._say("another key has come; it waits until slurmctld stops listening")
                silence = count_silence(silence, dial(self._controller)) if is_waiting else 0
                step = plan_key(is_waiting, silence, time.time() - waiting_since() if is_waiting else 0, self._latest_s)
                if step is Step.REST:
                    say_taken()
                elif step is Step.TAKE:
                    silence = 0
                    self._outdated = self._process
                    self._terminate()
            except (OSError, RuntimeError) as error:  # such as a full disk, or no thread
                fault = f"could not look after the key, trying again: {error}"
            if fault and fault != told:
                self._say(fault)
            told = fault

    def _terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()


def dial(host: str) -> Dial:
    """Whether slurmctld's port answers. In a thread, as a DNS lookup has no time-out."""
    outcomes: list[Dial] = []

    def connect() -> None:
        try:
            socket.create_connection((host, ports.SLURMCTLD), _DIAL_S).close()
            outcomes.append(Dial.ANSWERED)
        except ConnectionRefusedError:
            outcomes.append(Dial.REFUSED)
        except OSError:
            outcomes.append(Dial.NOTHING)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(_DIAL_S)
    return outcomes[0] if outcomes else Dial.NOTHING
