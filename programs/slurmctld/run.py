"""Runs slurmctld with its state and a copy of its files on the claim, as the ConfigMap in /etc/slurm may not be accepted yet
(programs/config_sync). slurmctld is a daemon without -D, so that a reconfigure keeps the old process if the files are bad.

`python3 -m programs.slurmctld.run`, as SlurmUser, below an init that reaps slurmctld. Decides nothing: see plan.
"""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from names import paths, variables
from slurm.commands import SlurmError, call
from slurm.logs import teller
from slurm.pump import Pump, take_stderr
from slurm.signals import Signals

from .claim import Claim
from .plan import (
    Files,
    Step,
    Watch,
    cannot_read_files,
    has_settled,
    is_key_due,
    is_to_forget,
    must_await_key,
    plan_files,
    plan_look,
    setting,
    unready_nodes,
)

OFFERED = Path(paths.SLURM)
RUN = Path(paths.SLURM_RUN)
MUNGE = Path(paths.MUNGE_RUN)
JWT_KEY = Path(paths.JWT_KEY)
_WAITS = "key-waits"
"""programs/munged's note that another key waits in this pod."""
_PAUSE_S = 0.5
_STOP_TRIES = 60
_TAKE_S = 8
"""Seconds in which all pods take a key: they look every second, and a look may take two."""
_SINFO_S = 10
_LOOK_S = 0.1

say = teller("slipway-slurmctld")


class Controller:
    """One start of slurmctld, until its end."""

    def __init__(self, signals: Signals, spread_s: float) -> None:
        """`spread_s`: seconds until all kubelets have brought a changed munge key to their pods."""
        self._signals = signals
        self._spread_s = spread_s
        text = (OFFERED / "slurm.conf").read_text()
        self._state = Path(setting(text, "StateSaveLocation"))  # a folder: slurmctld calls the claim's group-writable top a hole
        self._has_accounting = bool(setting(text, "AccountingStorageType"))
        self._claim = Claim(self._state.parent, OFFERED)
        self._version = ""
        self._log = Pump("slurmctld")

    def run(self) -> int:
        """Runs until slurmctld or the pod ends; returns the exit code."""
        try:
            return self._run()
        finally:
            self._log.close()

    def _run(self) -> int:
        if not self._prepare():
            return 1
        self._await_munged()
        if self._signals.is_stopping:
            return 0
        # A daemon's standard error is /dev/null, so its log is a link to the pipe of the container's log. It is a link because slurmctld's
        # working directory is that of its log.
        log = RUN / "slurmctld.log"
        log.unlink(missing_ok=True)
        log.symlink_to(f"/proc/{os.getpid()}/fd/{self._log.fd}")
        if not self._await_key_elsewhere():
            return 1
        if self._signals.is_stopping:
            return 0
        threading.Thread(target=watch_nodes, daemon=True).start()
        self._start()
        return self._watch()

    def _prepare(self) -> bool:
        """Prepares folders and files; False if slurmctld must not start."""
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._state.chmod(0o700)
        RUN.mkdir(exist_ok=True)
        if not os.access(JWT_KEY, os.R_OK):
            say(f"user slurm cannot read {JWT_KEY}: mount the Secret with fsGroup 64030 and mode 0440")
        if is_to_forget(self._has_accounting, frozenset(file.name for file in self._state.iterdir())):
            say("slurmctld ended before it saved any usage; there is none to recover")
            (self._state / "clustername").unlink()
        self._version = call("slurmctld", "-V", timeout_s=60).strip()
        files = plan_files(self._claim.has_before(), self._claim.find())
        if files is Files.BEFORE:
            refused, before = self._claim.go_back()
            say(f"slurmctld ended before it had taken the files of {refused}; it starts with those before, {before}")
            files = plan_files(has_before=False, copy=self._claim.find())
        if files is Files.NONE:
            say(f"FAILED: {self._claim.accepted}/slurm.conf, the configuration that slurmctld had, cannot be read")
            return False
        if files is Files.OFFERED:
            self._claim.accept()
        os.environ["SLURM_CONF"] = str(self._claim.accepted / "slurm.conf")
        return True

    def _await_munged(self) -> None:
        tries = 0
        while not self._signals.is_stopping and not _has_munge():
            if tries % 10 == 0:
                say("waiting for munged")
            tries += 1
            self._signals.wait(_PAUSE_S)

    def _await_key_elsewhere(self) -> bool:
        """Waits until all pods have this pod's munge key; False if it is unknown which key slurmctld had."""
        try:
            last = self._claim.noted("munge-key")
        except OSError:
            say(f"FAILED: {self._claim.note_path('munge-key')} cannot be read: which munge key slurmctld had is unknown")
            return False
        if must_await_key(last, _key_id()):
            say(f"this pod has another munge key than slurmctld had; it starts in {self._spread_s:.0f} s, when all pods have it")
            until = time.monotonic() + self._spread_s
            while not self._signals.is_stopping and (left := until - time.monotonic()) > 0:
                self._signals.wait(left)
        return True

    def _start(self) -> None:
        self._note_key("munge", _key_id())
        if jwt := _jwt_id():
            self._note_key("jwt", jwt)
        out = self._log.fd
        try:
            code = subprocess.run(["slurmctld", "-L", str(RUN / "slurmctld.log")], stdout=out, stderr=out, check=False).returncode
        except OSError as error:
            say(f"slurmctld cannot be started: {error.strerror}")
        else:
            if code:
                say("FAILED: slurmctld did not start")

    def _note_key(self, name: str, key: str) -> None:
        """Notes which key slurmctld has. The note's time is that of the key's first use: programs/config_sync reports its age."""
        try:
            if not key or self._claim.noted(f"{name}-key") != key:
                self._claim.note(f"{name}-key", key)
        except OSError as error:  # such as a full disk: at worst the next start waits for a key that all pods have
            say(f"cannot note which {name} key slurmctld has: {error.strerror}")

    def _watch(self) -> int:
        watch, began, is_noted = Watch(), time.monotonic(), False
        while True:
            pid = find_process("slurmctld")
            is_due = is_key_due(_changed_at(MUNGE / _WAITS), time.time(), self._spread_s)
            step, watch = plan_look(watch, pid is not None, self._signals.is_stopping, is_due)
            if step is Step.LEAVE:
                return 0
            if step is Step.FAIL:
                break
            if pid is not None:
                if step is Step.TELL:
                    _tell(pid)
                elif step is Step.CHANGE_KEY:
                    self._change_key(pid)
                if not is_noted and has_settled(time.monotonic() - began):
                    self._note_version()
                    is_noted = True
            self._signals.wait(_PAUSE_S)
        say("slurmctld ended")
        if cannot_read_files(time.monotonic() - began, self._is_new_slurm()):
            say("this Slurm, another than before, may not read the files of its predecessor; the next start is with those of the ConfigMap")
            self._claim.accept()
        return 1

    def _change_key(self, pid: int) -> None:
        """Stops and starts slurmctld. Each pod's munged takes the key meanwhile (programs/munged), so two keys are never in use."""
        say("another munge key has come to all pods; slurmctld stops for some seconds, in which they take it")
        _tell(pid)
        for _ in range(_STOP_TRIES):
            if _changed_at(MUNGE / _WAITS) is None and find_process("slurmctld") is None:
                break
            self._signals.wait(_PAUSE_S)
        if not self._signals.is_stopping:
            self._signals.wait(_TAKE_S)
        if not self._signals.is_stopping:
            self._start()

    def _is_new_slurm(self) -> bool:
        """True if another version ran here last. False if the note cannot be read."""
        try:
            return self._claim.noted("version") != self._version
        except OSError:
            say(f"FAILED: {self._claim.note_path('version')} cannot be read: which Slurm ran here last is unknown")
            return False

    def _note_version(self) -> None:
        if self._is_new_slurm():
            try:
                self._claim.note("version", self._version)
            except OSError as error:
                say(f"cannot note which Slurm runs here: {error.strerror}")


def watch_nodes() -> None:
    """For prolog-slurmctld.sh: lists busy nodes that are not up while prologs wait, with one command for all."""
    while True:
        time.sleep(_LOOK_S)
        try:
            answer_prologs()
        except (OSError, SlurmError):  # a prolog without an answer ends by itself
            continue


def answer_prologs() -> None:
    """If a prolog waits, asks slurmctld and writes the answer for all prologs. Raises OSError, SlurmError."""
    waiting = RUN / "waiting"
    if not os.access(waiting, os.F_OK):
        return
    waiting.unlink()  # before the question: later prologs need a later answer
    asked_us = time.time_ns() // 1000
    states = "--states=allocated,mixed,completing"
    busy = call("sinfo", "--noheader", "--Node", states, "--format=%T %N", timeout_s=_SINFO_S)
    draft = RUN / "unready.new"
    draft.write_text(f"{asked_us} {' '.join(unready_nodes(busy))}\n")
    draft.replace(RUN / "unready")


def find_process(name: str, processes: Path = Path("/proc")) -> int | None:
    """The pid of a daemon, a child of the init; None if there is none. The pid file is no help: at a reconfigure of slurmctld, the old
    process removes it."""
    for entry in os.scandir(processes):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # ended meanwhile
                head, _, fields = (Path(entry.path) / "stat").read_text(errors="replace").rpartition(") ")
                state, parent = fields.split()[:2]
                if head.partition(" (")[2].startswith(name) and parent == "1" and state != "Z":
                    return int(entry.name)
    return None


def _tell(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _key_id() -> str:
    try:
        return (MUNGE / "key-id").read_text().strip()
    except OSError:
        return ""


def _jwt_id() -> str:
    """Identifies the JWT key without revealing it."""
    try:
        return hashlib.sha256(JWT_KEY.read_bytes()).hexdigest()[:16]
    except OSError:
        return ""


def _changed_at(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None


def _has_munge() -> bool:
    try:
        return subprocess.run(["munge", "--no-input", "--output", "/dev/null"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def main() -> int:
    try:
        return Controller(Signals(), float(os.environ.get(variables.KEY_SPREAD_S) or 120)).run()
    except (OSError, SlurmError) as error:
        say(f"FAILED: {error}")
        return 1


if __name__ == "__main__":
    take_stderr("slipway-slurmctld")
    sys.exit(main())
