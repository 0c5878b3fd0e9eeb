"""Slurm through its own commands: readings as JSON, writes with scontrol, a check as a job with srun. Thin: it decides nothing.

Every call has a deadline in seconds. Whatever goes wrong is a `SlurmError` with Slurm's own words.
"""

import getpass
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slurm import reasons
from slurm.check_results import UNKNOWN
from slurm.commands import SlurmError, call
from slurm.job_marks import with_text
from slurm.scontrol import AnswerError, Node, read_extras, read_nodes

from .beside import could_not_run, read_answer
from .plan import BUSY, Outcome, Reservation

_CALL_S = 30
_IMMEDIATE_S = 5
_ANSWER_S = 20
_POLL_S = 0.2
_JOB = "slipway-check-"
"""Start of the names of checks' jobs."""
_TOP_PRIORITY = 4294967293
"""The highest that Slurm takes from its own user: a check of an idle node never waits behind the queue."""
_TAKEN_WORDS = ("Duplicate reservation name", "Reservation already exists")
_BUSY_WORDS = ("nodes are busy", "Immediate execution impossible", "higher priority")


class Slurm:
    """One Slurm cluster, as the commands in this container reach it. Run it as SlurmUser: others may not drain or reserve."""

    def nodes(self, name: str = "") -> dict[str, Node]:
        """All nodes by name, or the one named; nothing for a node that Slurm does not know."""
        try:
            return read_nodes(_call("scontrol", "show", "node", *([name] if name else []), "--json"))
        except AnswerError as error:
            raise SlurmError(str(error)) from None

    def extras(self) -> dict[str, str]:
        """The `Extra` of each node that has one as JSON: a twentieth of the time that all nodes take."""
        try:
            return read_extras(_call("scontrol", "show", "node", "--oneliner"))
        except AnswerError as error:
            raise SlurmError(str(error)) from None

    def reservations(self) -> dict[str, Reservation]:
        """The reservations that runs of checks hold, by node name."""
        text = _call("scontrol", "show", "reservation", "--oneliner")
        found = [_reservation(line) for line in text.splitlines()]
        return {held.node: held for held in found if held and reasons.is_check(held.comment)}

    def reserve(self, held: Reservation) -> bool:
        """No end: a run that was killed must not free a node that failed. The next run of the check ends it.

        False where another check was faster.
        """
        try:
            _call(
                "scontrol",
                "create",
                "reservation",
                f"ReservationName={held.name}",
                f"Nodes={held.node}",
                f"Users={getpass.getuser()}",
                "StartTime=now",
                "Duration=UNLIMITED",
                "Flags=MAINT,IGNORE_JOBS",
                f"Comment={held.comment}",
            )
        except SlurmError as error:
            if any(words in str(error) for words in _TAKEN_WORDS):
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
        """Writes the `Extra` field of nodes, all the same."""
        _call("scontrol", "update", f"NodeName={','.join(nodes)}", f"Extra={extra}")

    def remark(self, job: str, text: str) -> None:
        """Writes a text where the job's user finds it: in its record, and, of srun and salloc, on the screen. A job that is gone, or that
        nobody waits for, is none of its worries."""
        try:
            comment = with_text(_call("squeue", "--noheader", "--all", f"--jobs={job}", "--Format=admin_comment:0").strip(), text)
        except SlurmError:
            comment = text
        for command in (("update", f"JobId={job}", f"AdminComment={comment}"), ("notify", job, text)):
            try:
                _call("scontrol", *command)
            except SlurmError as error:
                sys.stderr.write(f"checks: job {job} is not told {text!r}: {error}\n")

    def is_held_by_checks(self, node: str) -> bool:
        """True when the jobs on a node are those of checks, or gone."""
        names = _call("squeue", "--noheader", "--all", f"--nodelist={node}", "--states=RUNNING,COMPLETING,CONFIGURING", "--Format=Name:0")
        return all(name.strip().startswith(_JOB) for name in names.splitlines() if name.strip())

    def run(
        self, check: str, node: Node, program: Path, settings: dict[str, Any], timeout_s: int, gpus: int, held: Reservation | None
    ) -> Outcome:
        """Runs a check's program on a node as a job that has the node for itself, or says why it did not start.

        Exclusive, so that a node that got a job meanwhile is skipped instead of shared; at top priority and immediate, so that it never
        waits in the queue. The program travels on standard input: workers need no copy of it.
        """
        command = [
            *("srun", "--quiet", f"--job-name={_JOB}{check}", "--chdir=/", "--export=PATH=/usr/sbin:/usr/bin:/sbin:/bin"),
            *("--nodes=1", "--ntasks=1", f"--nodelist={node.name}", "--exclusive", "--mem=0", "--mpi=none", "--cpu-bind=none"),
            *(f"--immediate={_IMMEDIATE_S}", f"--priority={_TOP_PRIORITY}", f"--time={-(-timeout_s // 60) + 1}"),
            *([f"--partition={node.partitions[0]}"] if node.partitions else []),
            *([f"--gres=gpu:{gpus}"] if gpus else []),
            *([f"--reservation={held.name}"] if held else []),
            *("timeout", "--kill-after=5", str(timeout_s), "python3", "-I", "-", json.dumps(settings)),
        ]
        try:
            with program.open("rb") as source:
                done = subprocess.run(
                    command,
                    stdin=source,
                    capture_output=True,
                    encoding="utf-8",
                    errors="replace",  # a driver's message may have any byte
                    timeout=_IMMEDIATE_S + timeout_s + _CALL_S,
                )
        except subprocess.TimeoutExpired:
            return Outcome(UNKNOWN, f"did not end within {timeout_s} s")
        return read_outcome(done.returncode, done.stdout, done.stderr, timeout_s)


def read_outcome(code: int, output: str, errors: str, timeout_s: int) -> Outcome:
    """What a check's job said. Where it did not say anything: unknown, or busy where Slurm did not start it."""
    if answer := read_answer(code, output):
        return Outcome(*answer)
    if any(words in errors for words in _BUSY_WORDS):
        return BUSY
    return Outcome(UNKNOWN, f"did not end within {timeout_s} s" if code in (124, 137) else could_not_run(code, errors))


def _call(*command: str) -> str:
    return call(*command, timeout_s=_CALL_S)


def _reservation(line: str) -> Reservation | None:
    """One line of `scontrol show reservation --oneliner`, because its JSON leaves the comment out (26.05). None for other lines."""
    match = re.match(r"ReservationName=(\S+) .*? Nodes=(\S+) .*? Comment=(.*)$", line)
    return Reservation(match[1], match[2], match[3].strip()) if match else None
