"""Slurm by its own commands: readings as JSON, writes with scontrol, a check as a job with srun. Thin: it decides nothing.

Every call has a deadline in seconds. All errors are `SlurmError`s with Slurm's own words.
"""

import contextlib
import getpass
import json
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from slurm import reasons
from slurm.check_results import LAUNCH, RESERVATION, SKIPPED, UNKNOWN, driver_of
from slurm.commands import SlurmError, call
from slurm.conf import CHECKS_PARTITION
from slurm.hostlists import expand
from slurm.job_marks import with_text
from slurm.scontrol import AnswerError, Node, read_brief_nodes, read_nodes

from .beside import could_not_run, read_answer
from .bundle import bundle
from .launch_plan import Free, read_launch
from .measured import Measured, read_measured
from .meeting import MEETING
from .plan import BUSY, ENDED, NOT_BEGUN, PREEMPTED, Outcome, Reservation
from .updates import MOST_ALONE, SIDE_BY_SIDE, Update, alone, in_lots

_CALL_S = 30
_IMMEDIATE_S = 5
_ANSWER_S = 20
_POLL_S = 0.2
_JOB = "slipway-check-"
"""Start of the names of checks' jobs."""
_TOP_PRIORITY = 4294967293
"""The highest that Slurm takes from its own user: a check of an idle node never waits behind the queue."""
_TAKEN_WORDS = ("Duplicate reservation name", "Reservation already exists")
_TIMED_OUT = 124
"""The exit code of timeout(1)."""
_ENDED_AS = "the job ended as "
_PREEMPTED_WORDS = ("DUE TO PREEMPTION", f"{_ENDED_AS}PREEMPTED")
_NOT_BEGUN_WORDS = (f"{_ENDED_AS}FAILED", f"{_ENDED_AS}CANCELLED")
"""Of a silent srun alone: it tells the end of a step that has begun."""
_GOES_ON = {"RUNNING", "COMPLETING", "CONFIGURING", "STAGE_OUT"}
_ENDS_S = 5
_ENVIRONMENT = "PATH=/usr/sbin:/usr/bin:/sbin:/bin,HOME=/tmp,OMPI_MCA_mpi_yield_when_idle=1"
"""OpenMPI 5 ends in MPI_Init without a HOME. Ranks that wait give the CPU away: a node may have fewer than it says, as on one machine
that plays several."""
_BUSY_WORDS = ("nodes are busy", "Immediate execution impossible", "higher priority")


class Slurm:
    """One Slurm cluster, as the commands in this container reach it. Run it as SlurmUser: others may not drain or reserve."""

    is_ending = False
    """True once `end` was called: no further job begins."""

    def __init__(self) -> None:
        self._sruns: set[subprocess.Popen[str]] = set()

    def end(self) -> None:
        """Ends the jobs of this run's checks. For a handler of signals: it waits for nothing."""
        self.is_ending = True
        for srun in tuple(self._sruns):
            srun.terminate()  # it ends its job, or takes it out of the queue, within about a second (measured on 26.05)

    def nodes(self, name: str = "") -> dict[str, Node]:
        """All nodes by name, or the one named; nothing for a node that Slurm does not know."""
        try:
            return read_nodes(_call("scontrol", "show", "node", *([name] if name else []), "--json"))
        except AnswerError as error:
            raise SlurmError(str(error)) from None

    def all_briefly(self) -> dict[str, Node]:
        """All nodes by name, with their state, reason and an `Extra` that is JSON: a twentieth of the time that whole nodes take."""
        try:
            return read_brief_nodes(_call("scontrol", "show", "node", "--oneliner"))
        except AnswerError as error:
            raise SlurmError(str(error)) from None

    def reservations(self) -> dict[str, Reservation]:
        """The reservations that runs of checks hold, by node name."""
        text = _call("scontrol", "show", "reservation", "--oneliner")
        rows = [_reservation(line) for line in text.splitlines()]
        return {held.node: held for held in rows if held and reasons.is_check(held.comment)}

    def reserve(self, held: Reservation) -> bool:
        """Reserves without an end: a killed run must not free a node that failed. The next run of the check ends it.

        False if another check was faster.
        """
        try:
            _call(
                "scontrol",
                "create",
                "reservation",
                f"ReservationName={held.name}",
                f"Nodes={','.join((held.node, *held.partners))}",
                f"Users={getpass.getuser()}",
                "StartTime=now",
                "Duration=UNLIMITED",
                "Flags=MAINT,IGNORE_JOBS",
                f"Comment={held.comment}",
            )
        except SlurmError as error:
            if any(phrase in str(error) for phrase in _TAKEN_WORDS):
                return False
            raise
        return True

    def release(self, held: Reservation) -> None:
        _call("scontrol", "delete", f"ReservationName={held.name}")

    def resume(self, node: str) -> None:
        """Lifts the drain, and waits until slurmctld has heard from the node: right after, it shows NOT_RESPONDING for about a second."""
        _call("scontrol", "update", f"NodeName={node}", "State=RESUME")
        end = time.monotonic() + _ANSWER_S
        while "NOT_RESPONDING" in self.nodes(node)[node].state.flags and time.monotonic() < end:
            time.sleep(_POLL_S)

    def drain(self, node: str, reason: str) -> None:
        _call("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")

    def record(self, nodes: Iterable[str], extra: str) -> None:
        """Writes the same `Extra` to all of these nodes."""
        _call("scontrol", "update", f"NodeName={','.join(nodes)}", f"Extra={extra}")

    def write(self, updates: Sequence[Update]) -> dict[str, SlurmError]:
        """Makes these updates by a few processes, and tries what was refused again, each node alone. Returns the nodes that Slurm refused,
        with its errors. Raises SlurmError if Slurm does not answer."""
        batches = in_lots(updates)
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            suspects = [update for batch, is_done in zip(batches, pool.map(_feed, batches), strict=True) if not is_done for update in batch]
        left = list(alone(updates))
        if suspects:
            seen = self.nodes(",".join(sorted({name for update in suspects for name in update.nodes})))
            left += [missing for update in suspects for missing in update.missing(seen)]
        refused: dict[str, SlurmError] = {}
        for number, update in enumerate(left):
            try:
                if number >= MOST_ALONE:
                    raise SlurmError("Slurm has refused too many updates of this round")
                _call("scontrol", "update", *update.words())
            except SlurmError as error:
                refused |= dict.fromkeys(update.nodes, error)
        return refused

    def comment(self, job: str, text: str) -> None:
        """Writes a text into the job's AdminComment, beside what maintenance has noted there. Raises SlurmError."""
        before = _call("squeue", "--noheader", "--all", f"--jobs={job}", "--Format=admin_comment:0").strip()
        _call("scontrol", "update", f"JobId={job}", f"AdminComment={with_text(before, text)}")

    def notify(self, texts: Mapping[str, str]) -> None:
        """Shows a text, in one line without quotes, where somebody's srun or salloc waits for the job."""
        if texts:
            with contextlib.suppress(SlurmError):
                call("scontrol", timeout_s=_CALL_S, stdin="".join(f"notify {job} {text}\n" for job, text in texts.items()))

    def node_seconds(self, check: str, within_s: int) -> float:
        """Node seconds of a check's jobs within the last `within_s` seconds, by accounting."""
        format_ = ("--allusers", "--allocations", "--noheader", "--parsable2", "--format=ElapsedRaw,NNodes")
        since = f"--starttime=now-{within_s}seconds"
        rows = [line.split("|") for line in _call("sacct", *format_, since, f"--name={_JOB}{check}").splitlines()]
        return sum(float(row[0]) * int(row[1]) for row in rows if len(row) == 2 and row[0].isdecimal() and row[1].isdecimal())

    def is_held_by_checks(self, node: str) -> bool:
        """True if all jobs on a node are those of checks, or gone."""
        return all(name.startswith(_JOB) for name in self._jobs([node]))

    def _jobs(self, nodes: Sequence[str]) -> list[str]:
        """Names of the jobs on nodes."""
        options = ("--noheader", "--all", f"--nodelist={','.join(nodes)}", "--states=RUNNING,COMPLETING,CONFIGURING", "--Format=Name:0")
        return [name.strip() for name in _call("squeue", *options).splitlines() if name.strip()]

    def run(
        self, check: str, node: Node, program: Path, settings: dict[str, Any], timeout_s: int, gpus: int, held: Reservation | None
    ) -> Outcome:
        """Runs a check's program on a node as a job that has the node for itself, or says why it did not start.

        Exclusive, so that a node that got a job meanwhile is skipped instead of shared. At top priority and immediate, so that it never
        waits in the queue. The program travels on standard input: workers need no copy of it.
        """
        options = ["--mpi=none", *_gres(gpus)]
        done = self._job(check, [node], options, bundle(program), settings, timeout_s, held)
        return ENDED if self.is_ending and done.returncode else read_outcome(done.returncode, done.stdout, done.stderr, timeout_s)

    def run_together(
        self,
        check: str,
        nodes: Sequence[Node],
        program: Path,
        settings: dict[str, Any],
        timeout_s: int,
        gpus: int,
        held: Reservation | None,
    ) -> Measured | Outcome:
        """Runs a program over several nodes, a task on each, as one job. Returns what it measured, or its own or our judgement."""
        if not held and not shared_partition(nodes):
            return Outcome(UNKNOWN, f"no partition has {' and '.join(node.name for node in nodes)}")
        settings = {**settings, "ranks": len(nodes), "nodes": sorted(node.name for node in nodes)}
        script = bundle(program, {MEETING: secrets.token_hex(16)})
        done = self._job(check, nodes, _gres(gpus), script, settings, timeout_s, held)
        if self.is_ending and done.returncode:
            return ENDED
        outcome = read_measured(done.returncode, done.stdout)
        return outcome or read_outcome(done.returncode, done.stdout, done.stderr, timeout_s)

    def try_launch(self, node: Node, held: Reservation | None, timeout_s: int) -> Outcome:
        """Whether slurmd starts a batch job of Slurm's own user on a node."""
        options = (f"--job-name={_JOB}{LAUNCH}", f"--nodelist={node.name}", "--ntasks=1", "--mem=1", "--no-requeue", "--wrap=true")
        limits = ("--output=/dev/null", "--chdir=/", "--export=NONE", "--time=2", f"--priority={_TOP_PRIORITY}")
        partition = shared_partition([node])
        places = ([f"--partition={partition}"] if partition else []) + ([f"--reservation={held.name}"] if held else [])
        job = _call("sbatch", "--parsable", *options, *limits, *places).strip().partition(";")[0]
        end, outcome = time.monotonic() + timeout_s, None
        try:
            while outcome is None and time.monotonic() < end:
                time.sleep(_POLL_S)
                query = ("--noheader", "--all", "--states=all", f"--jobs={job}", "--Format=State:32,StartTime:32")
                outcome = read_launch(_call("squeue", *query))
        finally:
            if outcome is None:
                with contextlib.suppress(SlurmError):  # it may have ended meanwhile
                    _call("scancel", job)
        return outcome or Outcome(UNKNOWN, f"the test job did not end within {timeout_s} s")

    def job(self, job: str) -> dict[str, Any]:
        """A job's record, as JSON has it. Raises SlurmError where there is none."""
        try:
            return json.loads(_call("scontrol", "show", "job", job, "--json"))["jobs"][0]
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise SlurmError(f"no job {job}: {error!r}") from None

    def free(self, job: str, how: Free) -> None:
        """Ends the hold of a job, or its wait after a requeue. Raises SlurmError."""
        if how == "release":
            _call("scontrol", "release", job)
        _call("scontrol", "update", f"JobId={job}", "StartTime=now")  # a job that was held waits as well

    def _job(
        self,
        check: str,
        nodes: Sequence[Node],
        options: Sequence[str],
        script: str,
        settings: dict[str, Any],
        timeout_s: int,
        held: Reservation | None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs one job. If a user's job waits for these nodes, Slurm starts nothing of a lower partition there. Then the check runs in a
        partition of users, as the first of its queue. Only on nodes without a job: it would preempt other checks."""
        partition, users = shared_partition(nodes), users_partition(nodes)
        done = self._srun(check, nodes, options, script, settings, timeout_s, held, partition)
        if (
            partition != CHECKS_PARTITION
            or held
            or not users
            or not any(phrase in done.stderr for phrase in _BUSY_WORDS)
            or self._jobs([node.name for node in nodes])
        ):
            return done
        return self._srun(check, nodes, options, script, settings, timeout_s, held, users)

    def _srun(
        self,
        check: str,
        nodes: Sequence[Node],
        options: Sequence[str],
        script: str,
        settings: dict[str, Any],
        timeout_s: int,
        held: Reservation | None,
        partition: str,
    ) -> subprocess.CompletedProcess[str]:
        command = [
            *("srun", "--quiet", f"--job-name={_JOB}{check}", "--chdir=/", f"--export={_ENVIRONMENT}"),
            *(
                f"--nodes={len(nodes)}",
                f"--ntasks={len(nodes)}",
                "--ntasks-per-node=1",
                f"--nodelist={','.join(node.name for node in nodes)}",
            ),
            *("--exclusive", "--mem=0", "--cpu-bind=none", f"--immediate={_IMMEDIATE_S}", *options),
            *(f"--priority={_TOP_PRIORITY}", f"--time={-(-timeout_s // 60) + 1}"),
            *([f"--partition={partition}"] if partition else []),
            *([f"--reservation={held.name}"] if held else []),
            *("timeout", "--kill-after=5", str(timeout_s), "python3", "-I", "-", json.dumps(settings)),
        ]
        if self.is_ending:
            return subprocess.CompletedProcess(command, -signal.SIGTERM, "", "")
        since = time.strftime("%Y-%m-%dT%H:%M:%S")
        done = self._wait(command, script, _IMMEDIATE_S + timeout_s + _CALL_S)
        if self.is_ending or done.returncode == _TIMED_OUT:
            self._cancel(check, nodes)
        if self.is_ending or done.returncode in (0, _TIMED_OUT) or done.stdout.strip() or done.stderr.strip():
            return done
        return subprocess.CompletedProcess(command, done.returncode, "", self._end(check, nodes, since))

    def _wait(self, command: Sequence[str], script: str, timeout_s: int) -> subprocess.CompletedProcess[str]:
        """Waits for srun to end, or for the end of this run."""
        pipe = subprocess.PIPE
        # A driver's message may have any byte.
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace") as srun:
            self._sruns.add(srun)
            if self.is_ending:  # `end` may have come before this one was among those that it ends
                srun.terminate()
            try:
                output, errors = srun.communicate(script, timeout_s)
            except subprocess.TimeoutExpired:
                srun.kill()
                return subprocess.CompletedProcess(command, _TIMED_OUT, "", "")
            finally:
                self._sruns.discard(srun)
        return subprocess.CompletedProcess(command, srun.returncode, output, errors)

    def _cancel(self, check: str, nodes: Sequence[Node]) -> None:
        """Ends the check's job on these nodes: on a busy machine, an srun that got SIGTERM ended without it (26.05)."""
        with contextlib.suppress(SlurmError):  # the next run ends it then
            _call("scancel", f"--jobname={_JOB}{check}", f"--nodelist={','.join(node.name for node in nodes)}")

    def _end(self, check: str, nodes: Sequence[Node], since: str) -> str:
        """How the job of a silent srun ended; empty if that is not known. `since` is as Slurm writes times.

        srun prints nothing if a job ends before its step has begun, or starts just as srun gives up (26.05: exit code 1).
        """
        query = ("--noheader", "--all", "--states=all", f"--nodelist={','.join(node.name for node in nodes)}", f"--name={_JOB}{check}")
        end = time.monotonic() + _ENDS_S
        while True:
            rows = [line.split() for line in _call("squeue", *query, "--Format=StartTime:32,State:32").splitlines()]
            states = {row[1] for row in rows if len(row) == 2 and row[0][0].isdecimal() and row[0] >= since}
            if states.isdisjoint(_GOES_ON) or time.monotonic() > end:
                return "".join(f"{_ENDED_AS}{state}\n" for state in sorted(states - _GOES_ON))
            time.sleep(_POLL_S)


def _gres(gpus: int) -> list[str]:
    return [f"--gres=gpu:{gpus}"] if gpus else []


def shared_partition(nodes: Sequence[Node]) -> str:
    """The partition of a check's job on these nodes: that of checks if it has all, else the first that has all; empty for none."""
    is_theirs = all(CHECKS_PARTITION in node.partitions for node in nodes)
    return CHECKS_PARTITION if is_theirs else users_partition(nodes)


def users_partition(nodes: Sequence[Node]) -> str:
    """The first partition of users that has all of these nodes; empty for none."""
    shared = (name for name in nodes[0].partitions if all(name in node.partitions for node in nodes))
    return next((name for name in shared if name != CHECKS_PARTITION), "")


def read_outcome(code: int, output: str, errors: str, timeout_s: int) -> Outcome:
    """What a check's job reported. Without a report: unknown, or busy if Slurm did not start it."""
    if answer := read_answer(code, output):
        # SKIPPED is for a node that no job could start on. A node with nothing to look at was looked at, and its result is unknown.
        return Outcome(UNKNOWN if answer[0] == SKIPPED else answer[0], answer[1], driver=driver_of(answer[2]))
    if any(phrase in errors for phrase in _PREEMPTED_WORDS):
        return PREEMPTED
    if any(phrase in errors for phrase in _NOT_BEGUN_WORDS):
        return NOT_BEGUN
    if any(phrase in errors for phrase in _BUSY_WORDS):
        return BUSY
    return Outcome(UNKNOWN, f"did not end within {timeout_s} s" if code in (_TIMED_OUT, 137) else could_not_run(code, errors))


def _feed(updates: Sequence[Update]) -> bool:
    """Gives these updates to one scontrol. False if it refuses any of them, or does not end."""
    try:
        call("scontrol", timeout_s=_CALL_S, stdin="".join(f"{update.line}\n" for update in updates))
    except SlurmError:
        return False
    return True


def _call(*command: str) -> str:
    return call(*command, timeout_s=_CALL_S)


def _reservation(line: str) -> Reservation | None:
    """Reads a line of `scontrol show reservation --oneliner`: its JSON leaves the comment out (26.05). None for other lines."""
    match = re.match(r"ReservationName=(\S+) StartTime=(\S+) .*? Nodes=(\S+) .*? Comment=(.*)$", line)
    if match is None:
        return None
    nodes = expand(match[3])
    about = match[1].removeprefix(RESERVATION)
    node = about if about in nodes else nodes[0]
    partners = tuple(name for name in nodes if name != node)
    return Reservation(match[1], node, match[4].strip(), partners, _age_s(match[2]))


def _age_s(since: str) -> float:
    """Seconds since a local time of scontrol's; 0 if it is not a time, such as `Unknown`."""
    try:
        return max(0.0, time.time() - time.mktime(time.strptime(since, "%Y-%m-%dT%H:%M:%S")))
    except (ValueError, OverflowError):
        return 0.0
