"""The collector: reads Slurm in the background and serves the last readings to Prometheus at :8081/metrics.

`python3 -m programs.metrics.run SETTINGS`, as SlurmUser, who sees all jobs. It keeps no state: counters start at 0.
"""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from names import paths, ports
from slurm import web
from slurm.commands import SlurmError, call
from slurm.ended import Gap, back_to, gap_after_answer, gap_after_failure, pause_s
from slurm.listen import Bounds, InThread, Listener
from slurm.logs import ERROR, teller
from slurm.pump import take_stderr
from slurm.signals import Signals

from . import checks, jobs, nodes, usage
from .readings import Readings
from .settings import Settings, from_json
from .text import CONTENT_TYPE, render

KEY_WAITS = Path(paths.MUNGE_KEY_WAITS)
"""The note of programs/munged, beside its socket."""
_CALL_S = 20
_BOUNDS = Bounds(clients=64, per_address=8, answer_s=10, answers_bytes=64 * 2**20)
_ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}

say = teller("metrics")

Ask = Callable[..., str]
"""Runs a Slurm command and returns its output. Raises SlurmError."""


class Collector:
    """Reads each kind. `ask` runs a command; `clock` is monotonic, `wall` is in seconds since 1970."""

    def __init__(
        self,
        settings: Settings,
        ask: Ask,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        notes_checks: Callable[[str, int], bool] = checks.notes,
    ) -> None:
        self._settings, self._ask, self._clock, self._wall, self._notes_checks = settings, ask, clock, wall, notes_checks
        began = wall()
        self._waits = jobs.Waits(began)
        self._usage = usage.Usage(began, settings.accounts)
        self._since = began
        """When ended jobs were last read, in seconds since 1970."""
        self._gap: Gap | None = None
        """The last outage of slurmdbd."""
        self.readings = Readings(("nodes", "jobs", *(("accounting",) if settings.accounting else ())), clock())

    def read(self, kind: str) -> float:
        """Makes one attempt and stores its result or failure. Returns the seconds that it took."""
        at = self._clock()
        try:
            body = {"nodes": self._nodes, "jobs": self._jobs, "accounting": self._accounting}[kind]()
        except (SlurmError, ValueError) as error:  # an AnswerError is a ValueError
            if self.readings.failed(kind):
                say(f"{kind} cannot be read: {error}", ERROR, reading=kind, error=str(error))
            return self._clock() - at
        took = self._clock() - at
        self.readings.succeeded(kind, at, took, body)
        return took

    def _nodes(self) -> str:
        command = nodes.COMMAND if self._settings.accounting else nodes.DETAILED
        settings = self._settings
        families = nodes.node_metrics(self._ask(*command), settings.checks, self._wall(), settings.unknown_after_s)
        if settings.checks_collector is not None:
            families.append(checks.family(self._notes_checks(*settings.checks_collector)))
        return render(families)

    def _jobs(self) -> str:
        now = self._wall()
        # The records of 50,000 jobs take 20 MB for a moment, after the text is freed.
        listed_jobs = [*jobs.read_jobs(self._ask(*jobs.COMMAND))]
        self._waits.add(listed_jobs)
        body = render(jobs.job_metrics(listed_jobs, now, self._settings.accounts)) + self._waits.render()
        return body if self._settings.accounting else body + self._count(jobs.ended_runs(listed_jobs), now)

    def _accounting(self) -> str:
        now = self._wall()
        try:
            text = self._ask(*usage.command(back_to(self._since, self._gap, now)))
        except SlurmError:
            self._gap = gap_after_failure(self._gap, self._since, now)
            raise
        return self._count(usage.read_ended(text), now)

    def _count(self, ended: Any, now: float) -> str:
        self._usage.add(ended, back_to(self._since, self._gap, now))
        self._gap, self._since = gap_after_answer(self._gap, now), now
        return render(self._usage.families())


def ask(*command: str) -> str:
    """Runs a Slurm command with a time-out."""
    return call(*command, timeout_s=_CALL_S, env=_ENVIRONMENT)


def memory() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_s() -> float:
    """Processor seconds of this process and of its commands."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(times.ru_utime + times.ru_stime for times in spent)


def key_waits_s(note: Path = KEY_WAITS) -> float:
    """Seconds since another munge key came to this pod and waits for slurmctld's stop; 0 if none waits."""
    try:
        return max(0.0, time.time() - note.stat().st_mtime)
    except OSError:
        return 0.0


def listener(readings: Readings, bounds: Bounds = _BOUNDS) -> Listener:
    """Serves the readings. A page may have megabytes, so simultaneous requests share one."""
    page = web.shared(lambda: web.Answer(readings.page(time.monotonic(), memory(), cpu_s(), key_waits_s()), CONTENT_TYPE))
    return web.gives({"/metrics": page}, bounds)


def work(collector: Collector, kinds: tuple[str, ...], interval_s: float, stop: threading.Event) -> None:
    """Reads until `stop` is set, with pauses."""
    while not stop.is_set():
        took = max(collector.read(kind) for kind in kinds)
        stop.wait(pause_s(took, interval_s))


def main() -> int:
    signals, stop, is_broken = Signals(), threading.Event(), threading.Event()
    settings = from_json(sys.argv[1])
    collector = Collector(settings, ask)
    slurmdbd = [(("accounting",), settings.accounting_interval_s)] if settings.accounting else []
    loops = [(("nodes", "jobs"), settings.interval_s), *slurmdbd]
    threads = [threading.Thread(target=work, args=(collector, *loop, stop), daemon=True) for loop in loops]

    def end(reason: threading.ExceptHookArgs) -> None:
        threading.__excepthook__(reason)
        is_broken.set()
        signals.wake()

    threading.excepthook = end  # a bug ends the process, which restarts, so that no reading ages for ever
    serving = InThread((listener(collector.readings), ports.METRICS), (web.healthy(), ports.PROBE))
    for thread in threads:
        thread.start()
    while not signals.is_stopping and not is_broken.is_set():
        signals.wait(None)
    serving.close()
    return int(is_broken.is_set())


if __name__ == "__main__":
    take_stderr("metrics")
    sys.exit(main())
