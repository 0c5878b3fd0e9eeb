"""The last good readings and their age. Pure: times are arguments, in monotonic seconds.

A scrape only prints these. A failed reading leaves the previous one in place, and its age grows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from .text import Family, render


@dataclass(frozen=True)
class Reading:
    """The last good reading of one kind."""

    at: float
    """When Slurm was asked for it; before the first reading, when the process began."""
    took_s: float | None = None
    """None before the first."""
    body: bytes = b""
    is_answered: bool = False
    """False when the last attempt failed, or before the first."""
    is_failing: bool = False
    """True when the last attempt failed."""


class Readings:
    """The readings by kind. Thread-safe."""

    def __init__(self, kinds: Iterable[str], began: float) -> None:
        self._lock = Lock()
        self._all = {kind: Reading(began) for kind in kinds}

    def succeeded(self, kind: str, at: float, took_s: float, body: str) -> None:
        """Stores a good reading that was asked for at this time."""
        with self._lock:
            self._all[kind] = Reading(at, took_s, body.encode(), is_answered=True)

    def failed(self, kind: str) -> bool:
        """Notes a failed attempt. True unless the previous attempt had failed, too."""
        with self._lock:
            last = self._all[kind]
            self._all[kind] = Reading(last.at, last.took_s, last.body, is_failing=True)
            return not last.is_failing

    def page(self, now: float, memory: int, cpu_s: float, key_waits_s: float = 0) -> bytes:
        """The text of a scrape. `memory` (bytes) and `cpu_s` are this process's own."""
        with self._lock:
            readings = dict(self._all)
        return b"".join([_state(readings, now, memory, cpu_s, key_waits_s).encode(), *(reading.body for reading in readings.values())])


def _state(readings: Mapping[str, Reading], now: float, memory: int, cpu_s: float, key_waits_s: float) -> str:
    up = all(reading.is_answered for kind, reading in readings.items() if kind != "accounting")
    took = {(kind,): reading.took_s for kind, reading in readings.items() if reading.took_s is not None}
    return render(
        [
            Family("slipway_slurm_up", "Whether slurmctld answers: 1, or 0 after a reading that failed.", (), {(): int(up)}),
            Family(
                "slipway_collector_reading_age_seconds",
                "Age of the last good reading; before the first, of the collector.",
                ("reading",),
                {(kind,): max(0.0, now - reading.at) for kind, reading in readings.items()},
            ),
            Family("slipway_collector_reading_seconds", "Time that the last good reading took.", ("reading",), took),
            Family(
                "slipway_munge_key_waits_seconds",
                "Time that another munge key has waited for slurmctld's stop; 0: none.",
                (),
                {(): key_waits_s},
            ),
            Family("process_resident_memory_bytes", "Resident memory of the collector.", (), {(): memory}),
            Family("process_cpu_seconds_total", "Processor time of the collector and its commands.", (), {(): cpu_s}, "counter"),
        ]
    )
