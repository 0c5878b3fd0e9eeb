"""Slurm's own commands for programs.maintenance: two readings, and four writes for all jobs of a round. Thin."""

from collections.abc import Iterable, Mapping

from slurm.commands import SlurmError, call
from slurm.maintenance import RESERVATION_COMMAND, Job, Window, job_command, jobs_of, read_job_rows, read_windows
from slurm.squeue import ReadingError, random_word

_CALL_S = 30
_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
_MOST = 1000
"""Jobs of one command: a command line has an end."""


class Slurm:
    """One Slurm cluster, as the commands in this container reach it. Run it as SlurmUser: others may not requeue users' jobs."""

    def windows(self, prefix: str) -> tuple[Window, ...]:
        """Raises SlurmError."""
        try:
            return read_windows(call(*RESERVATION_COMMAND, timeout_s=_CALL_S, env=_SECONDS), prefix)
        except ReadingError as error:
            raise SlurmError(str(error)) from None

    def jobs(self) -> tuple[Job, ...]:
        """All jobs that have nodes. Raises SlurmError."""
        try:
            end = random_word()
            return jobs_of(read_job_rows(call(*job_command(end), timeout_s=_CALL_S, env=_SECONDS), end))
        except ReadingError as error:
            raise SlurmError(str(error)) from None

    def requeue(self, jobs: Iterable[str]) -> None:
        """Jobs that have ended are named in the SlurmError; the others are requeued."""
        for some in _parts(jobs):
            call("scontrol", "requeue", ",".join(some), timeout_s=_CALL_S)

    def note(self, jobs: Iterable[str], comment: str) -> None:
        for some in _parts(jobs):
            call("scontrol", "update", f"JobId={','.join(some)}", f"AdminComment={comment}", timeout_s=_CALL_S)

    def signal(self, jobs: Iterable[str], name: str) -> None:
        """To the script and to all steps."""
        for some in _parts(jobs):
            call("scancel", "--full", f"--signal={name}", *some, timeout_s=_CALL_S)

    def notify(self, words: Mapping[str, str]) -> None:
        """One scontrol says it to all jobs. Raises SlurmError with what it could not say."""
        lines = "".join(f"notify {job} {text}\n" for job, text in words.items())
        call("scontrol", "--quiet", timeout_s=_CALL_S, is_silence_wanted=True, stdin=lines)


def _parts(jobs: Iterable[str]) -> Iterable[list[str]]:
    names = [*jobs]
    return (names[at : at + _MOST] for at in range(0, len(names), _MOST))
