"""Turns each line of a daemon's output into a line of slurm/logs on the container's stdout, at once.

`python3 -m slurm.pump DAEMON -- COMMAND...` runs the command, passes signals on, reaps children as process 1, and ends with the command's
exit code. A program that starts daemons itself has a `Pump` in a thread for each.
"""

import atexit
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from slurm import daemon_lines, logs

LONGEST = 65_536
"""Bytes of a daemon's line that are kept; the rest of a longer one is not read into memory."""
_BATCH = select.PIPE_BUF
"""Bytes that a pipe takes as one: lines that are written together are whole, whoever else writes to the same pipe."""
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
_CANNOT_RUN = 127
_MOST_READS = 64


class Lines:
    """Bytes as they come, made into lines of a log. Blank lines are left out."""

    def __init__(self, daemon: str, hear: Callable[[str], None] | None = None) -> None:
        self._daemon = daemon
        self._hear = hear
        self._rest = b""
        self._is_cut = False
        """True while the rest of a line comes that is too long: its beginning is kept."""

    def add(self, data: bytes) -> Iterator[str]:
        """The lines that are complete now."""
        *ended, unended = data.split(b"\n")
        for part in ended:
            if text := self._make(part):
                yield text
        self._keep(unended)

    def end(self) -> Iterator[str]:
        """The last line, if it is unfinished."""
        if text := self._make(b""):
            yield text

    def _make(self, part: bytes) -> str:
        self._keep(part)
        text, self._rest, self._is_cut = self._rest, b"", False
        if self._hear is not None:
            self._hear(text.decode("utf-8", "replace"))
        return make_line(self._daemon, text)

    def _keep(self, part: bytes) -> None:
        if not self._is_cut:
            self._rest += part[: LONGEST - len(self._rest)]
            self._is_cut = len(self._rest) >= LONGEST


def make_line(daemon: str, data: bytes) -> str:
    """The log line for a line of the daemon; empty for a blank one. A line that a program of ours in this cluster has formatted stays as it
    is."""
    text = data.decode("utf-8", "replace").rstrip()
    if not text:
        return ""
    if daemon not in daemon_lines.UNSHARED and len(data) <= logs.LONGEST and logs.is_own(text):
        return text
    try:
        reading = daemon_lines.read(daemon, text)
    except Exception:  # a line that cannot be read must not end the log, and with it the daemon
        return logs.line(daemon, text)
    return logs.line(daemon, reading.message, reading.level, reading.at)


def pass_on(lines: Iterator[str]) -> None:
    """Writes lines, as many at once as a pipe takes as one."""
    batch, size = list[str](), 0
    for text in lines:
        length = len(text.encode("utf-8", "replace")) + 1
        if batch and size + length > _BATCH:
            logs.write("\n".join(batch))
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        logs.write("\n".join(batch))


class Pump:
    """A pipe for the output of a daemon, of all its starts, and the thread that reads it."""

    def __init__(self, daemon: str, hear: Callable[[str], None] | None = None) -> None:
        """`hear` gets each line of the daemon at once, in the thread that reads the pipe: it must be quick and never raise."""
        self._reads, self.fd = os.pipe()
        """`fd` is the daemon's stdout and stderr. It stays open, so that the pipe outlives the daemon and serves the next one."""
        self._ends, self._end = os.pipe()
        self._lines = Lines(daemon, hear)
        self._thread = threading.Thread(target=self._run, name=f"log of {daemon}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Once the daemon has ended: passes on what is in the pipe. Returns when that is written."""
        os.write(self._end, b"e")
        self._thread.join()

    def _run(self) -> None:
        os.set_blocking(self._reads, False)
        while True:
            ready, _, _ = select.select([self._reads, self._ends], [], [])
            is_over = drain(self._reads, self._lines)
            if is_over or self._ends in ready:
                pass_on(self._lines.end())
                return


def take_stderr(program: str) -> None:
    """From now on, stderr of this process and its children goes to its log: a traceback, for instance."""
    pump = Pump(program)
    os.dup2(pump.fd, 2)
    atexit.register(pump.close)


def drain(reads: int, lines: Lines) -> bool:
    """Passes on what is in the pipe, without blocking; True if nobody can write to it any more. Returns after a few megabytes, so that a
    child that keeps writing does not hide its daemon's end."""
    for _ in range(_MOST_READS):
        try:
            data = os.read(reads, 65_536)
        except BlockingIOError:
            return False
        except OSError:
            return True
        if not data:
            return True
        pass_on(lines.add(data))
    return False


def run(daemon: str, command: Sequence[str]) -> int:
    """Runs the command until its end; its exit code, 128 and more for a signal."""
    reads, writes = os.pipe()
    awake, wake = os.pipe()
    for end in (reads, awake, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    child: list[int] = []
    early: list[int] = []

    def forward(number: int, _: object) -> None:
        if not child:
            early.append(number)
        for child_pid in child:
            _send(child_pid, number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    actions = [(os.POSIX_SPAWN_DUP2, writes, 1), (os.POSIX_SPAWN_DUP2, writes, 2)]
    try:
        pid = os.posix_spawnp(command[0], [*command], os.environ, file_actions=actions, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    except OSError as error:
        logs.write(logs.line(daemon, f"FAILED: {command[0]} cannot be started: {error.strerror}", logs.CRITICAL))
        return _CANNOT_RUN
    child.append(pid)
    for number in early:
        _send(pid, number)
    os.close(writes)
    return _follow(daemon, pid, child, reads, awake)


def _follow(daemon: str, pid: int, child: list[int], reads: int, awake: int) -> int:
    lines, code, sources = Lines(daemon), None, [reads, awake]
    while code is None:
        ready, _, _ = select.select(sources, [], [])
        if reads in ready and drain(reads, lines):
            sources.remove(reads)  # the daemon has closed its output and runs on
        if awake in ready:
            os.read(awake, 512)
            code = _reap(pid, child)
    if reads in sources:
        drain(reads, lines)
    pass_on(lines.end())
    return code


def _reap(pid: int, child: list[int]) -> int | None:
    """Reaps all ended processes; gives the daemon's exit code, if it has ended."""
    code = None
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if not ended:
            return code
        if ended == pid:
            child.clear()
            exit_code = os.waitstatus_to_exitcode(status)
            code = exit_code if exit_code >= 0 else 128 - exit_code


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def main(arguments: Sequence[str]) -> int:
    if len(arguments) < 3 or arguments[1] != "--":
        logs.teller("pump")("FAILED: python3 -m slurm.pump DAEMON -- COMMAND...")
        return 2
    return run(arguments[0], arguments[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
