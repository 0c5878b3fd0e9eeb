"""Slurm as the sidecar uses it: readings, hostlists and the few writes. Thin: it decides nothing.

Every call has a deadline. An answer that cannot be read is a `SlurmError`, never an empty answer.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slurm.commands import SlurmError, call
from slurm.scontrol import AnswerError, read_partitions, read_places, read_starts, read_states
from slurm.squeue import ReadingError, random_word
from slurm.states import NodeState

from . import untold
from .plan import Job
from .slurmds import Slurmd

_CALL_S = 30
_LOOK_S = 10
"""Of a look at the slurmds, which is to hold up nothing else."""
_RECONFIGURE_S = 60
_NODES = ("scontrol", "--oneliner", "show", "nodes")
_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
FRESH_S = 10
"""Seconds after which a reading is too old to change anything by it."""


class Refused(SlurmError):
    """slurmctld answered, and keeps its old configuration."""


@dataclass(frozen=True)
class Reading:
    """What slurmctld had when it was asked."""

    nodes: Mapping[str, NodeState]
    partitions: Mapping[str, str]
    jobs: tuple[Job, ...]
    asked_at: float
    """Monotonic seconds."""
    starts: Mapping[str, int] = field(default_factory=dict[str, int])
    """When each slurmd has started, in seconds since 1970."""
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where nodes were placed in the topologies."""

    def check_age(self) -> None:
        """Raises SlurmError once nothing may be changed by this reading."""
        age_s = time.monotonic() - self.asked_at
        if age_s > FRESH_S:
            raise SlurmError(f"its answer is {age_s:.0f} s old")


def read() -> Reading:
    """Nodes, partitions and jobs. Raises SlurmError."""
    asked_at = time.monotonic()
    try:
        lines = _call(*_NODES, env=_SECONDS)
        nodes, starts = read_states(lines), read_starts(lines)
        partitions = read_partitions(_call("scontrol", "--all", "--oneliner", "show", "partitions"))
        jobs = tuple(_job(line) for line in _call("squeue", "--all", "--noheader", "--format", "%i|%P|%n").splitlines() if line.strip())
    except AnswerError as error:
        raise SlurmError(str(error)) from None
    return Reading(nodes, partitions, jobs, asked_at, starts, read_places(lines))


def read_slurmds() -> dict[str, Slurmd]:
    """Every node's slurmd, in one call: 0.07 s for 1,000 nodes. Raises SlurmError."""
    lines = _call(*_NODES, timeout_s=_LOOK_S, env=_SECONDS)
    try:
        starts = read_starts(lines)
        return {name: Slurmd(state, starts.get(name)) for name, state in read_states(lines).items()}
    except AnswerError as error:
        raise SlurmError(str(error)) from None


def expand(hostlists: Iterable[str]) -> frozenset[str]:
    """The names in hostlists, by Slurm's own parser. Raises SlurmError for lists that it does not expand."""
    text = ",".join(dict.fromkeys(hostlists))
    if not text:
        return frozenset()
    names = frozenset(_call("scontrol", "show", "hostnames", text).split())
    if not names:
        raise SlurmError(f"scontrol expands {text[:80]!r} to no name")
    return names


def close_partition(name: str) -> None:
    _call("scontrol", "update", f"PartitionName={name}", "State=DRAIN")


def open_partition(name: str) -> None:
    _call("scontrol", "update", f"PartitionName={name}", "State=UP")


def drain(nodes: Iterable[str], reason: str) -> None:
    _call("scontrol", "update", f"NodeName={','.join(nodes)}", "State=DRAIN", f"Reason={reason}")


def undrain(nodes: Iterable[str]) -> None:
    _call("scontrol", "update", f"NodeName={','.join(nodes)}", "State=UNDRAIN")


def forget_places(nodes: Iterable[str]) -> None:
    _call("scontrol", "update", f"NodeName={','.join(nodes)}", "Topology=")


def reconfigure() -> None:
    """Has slurmctld read its files. Raises Refused if it keeps the old ones, SlurmError if it does not answer."""
    try:
        _call("scontrol", "reconfigure", timeout_s=_RECONFIGURE_S)
    except SlurmError as error:
        message = str(error)
        if any(phrase in message for phrase in ("Unable to contact", "timed out", "did not answer")):
            raise
        raise Refused(message) from None


def read_config() -> dict[str, str]:
    """slurmctld's settings by key, and BOOT_TIME: when its process started, in seconds since 1970. Raises SlurmError."""
    lines = _call("scontrol", "show", "config", timeout_s=_LOOK_S, env=_SECONDS).splitlines()
    return {key.strip(): value.strip() for key, equals, value in (line.partition("=") for line in lines) if equals}


def read_started(state: str, job: str = "") -> tuple[untold.Job, ...]:
    """The jobs in a state, or all that have not ended. Raises SlurmError, also if a job that is asked for has gone."""
    chosen = [*([f"--states={state}"] if state else []), *([f"--jobs={job}"] if job else [])]
    end_of_field = random_word()
    try:
        return untold.read_jobs(_call(*untold.command(end_of_field), *chosen, env=_SECONDS), end_of_field)
    except ReadingError as error:
        raise SlurmError(str(error)) from None


def read_known(jobs: Iterable[str]) -> frozenset[str]:
    """The numbers of those jobs of which a node knows a step. squeue also lists steps that no node has heard of.

    Raises SlurmError, also if a node could not be asked, which sstat reports on standard error only.
    """
    command = ("sstat", "--noheader", "--parsable2", "--allsteps", "--pidformat", f"--jobs={','.join(jobs)}")
    lines = call(*command, timeout_s=_LOOK_S, is_silence_wanted=True).splitlines()
    return frozenset(line.partition(".")[0] for line in lines if line.strip())


def requeue(job: str) -> None:
    """Puts a job that runs back into the queue; one that has ended stays ended."""
    _call("scontrol", "requeue", "Incomplete", job)


def note(job: str, comment: str, may_requeue: bool | None = None) -> None:
    """Writes a job's AdminComment, and in the same step whether the job may be requeued."""
    right = [] if may_requeue is None else [f"Requeue={may_requeue:d}"]
    _call("scontrol", "update", f"JobId={job}", f"AdminComment={comment}", *right)


def end(job: str, words: str) -> None:
    """Ends a job for which somebody's srun or salloc waits, which prints the words first."""
    with contextlib.suppress(SlurmError):  # nobody waits any more
        _call("scontrol", "notify", job, words)
    _call("scancel", "--state=RUNNING", job)


def _job(line: str) -> Job:
    fields = line.strip().split("|")
    if len(fields) != 3:
        raise SlurmError(f"squeue's answer is not what 26.05 gives: {line[:80]!r}")
    return Job(fields[0], tuple(name for name in fields[1].split(",") if name), fields[2])


def _call(*command: str, timeout_s: float = _CALL_S, env: Mapping[str, str] | None = None) -> str:
    return call(*command, timeout_s=timeout_s, env=env)
