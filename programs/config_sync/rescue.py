"""Restarts jobs that slurmctld told no node of: looks for them after each start of slurmctld's process (see untold).

The sidecar stores nothing. If it is killed between two writes, at most one job keeps a right to be requeued that the sidecar lent it. The
job's AdminComment notes that, and the next run takes the right back.
"""

import time
from collections.abc import Callable

from slurm.commands import SlurmError
from slurm.prologs import CHECKS, longest_s

from . import copies, slurm, untold
from .plan import some
from .untold import Job

SLACK_S = 180.0
"""Seconds beyond the prologs' own time: for the 150 that our SPANK plugin gives itself, and for messages that are sent again."""
_LOOK_S = 15.0
_AT_ONCE = 20
"""Jobs that one look deals with: config_sync has other work."""


class Rescue:
    """The jobs that already waited at the first look after slurmctld's last start. The new process tells the nodes of every later job."""

    def __init__(self, say: Callable[[str], None], slack_s: float = SLACK_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._slack_s, self._clock = say, slack_s, clock
        self._said: dict[str, str] = {}
        self._look_at = float("-inf")
        self._boot = 0
        """The start after which the jobs were listed."""
        self._since: dict[tuple[str, int | None], float] = {}
        """When each job that waits was first seen to."""
        self._may_have_lent = True

    def look(self) -> None:
        """Looks if it is due. What cannot be read or done now is tried again."""
        if self._clock() < self._look_at:
            return
        try:
            self._look()
        except SlurmError as error:
            self._tell("unknown", f"which jobs slurmctld told no node of is not known yet ({error})")
        self._look_at = self._clock() + _LOOK_S

    def _look(self) -> None:
        """Raises SlurmError."""
        try:
            config = slurm.read_config()
        except SlurmError:
            return  # whoever reads slurmctld's log knows
        boot = config.get("BOOT_TIME", "")
        if not boot.isdecimal():
            raise SlurmError(f"scontrol gives no BOOT_TIME in seconds, but {boot!r}")
        if self._may_have_lent:
            self._take_back()
        if int(boot) == self._boot and not self._since:
            return
        waiting = untold.find_waiting(slurm.read_started("RUNNING"), int(boot))
        if int(boot) == self._boot:
            waiting = tuple(job for job in waiting if job.run in self._since)
        now = self._clock()
        self._boot, self._since = int(boot), {job.run: self._since.get(job.run, now) for job in waiting}
        prologs_s = longest_s(config, _checks_script())
        if waiting and prologs_s is None:
            self._tell(
                "unlimited",
                f"slurmctld may have told no node of jobs {_ids(waiting)}, which wait for their prologs since it restarted. Nothing limits "
                "the time of this cluster's prologs: with PrologTimeout in slurm.settings, such jobs start again by themselves",
            )
            self._since = {}
        elif prologs_s is not None:
            ripe = [job for job in waiting if now - self._since[job.run] >= prologs_s + self._slack_s]
            self._deal_with(ripe, int(boot))

    def _deal_with(self, waiting: list[Job], boot: int) -> None:
        """A job that is refused or unclear is tried again after the same time. Raises SlurmError."""
        nodes = {name: slurmd.state for name, slurmd in slurm.read_slurmds().items()} if waiting else {}
        for job in [job for job in waiting if untold.all_nodes_answer(job, nodes)][:_AT_ONCE]:
            self._since[job.run] = self._clock()
            try:
                if not untold.is_lost(job, slurm.read_known([job.number])):
                    self._tell(
                        f"left {job.id}",
                        f"job {job.id} waits for the prolog of a node since slurmctld restarted, but may work on another node: look at it. "
                        + ("`scontrol requeue` has it start again" if job.is_batch else "`scancel` ends it"),
                    )
                # Right before it is touched: it may have ended, or may have begun after all.
                else:
                    for present in untold.find_waiting(slurm.read_started("RUNNING", job.id), boot):
                        if present.run == job.run:
                            self._rescue(present)
            except SlurmError as error:
                self._tell(f"refused {job.id}", f"job {job.id}, of which slurmctld told no node, is tried again later ({error})")

    def _rescue(self, job: Job) -> None:
        """Raises SlurmError."""
        if not job.is_batch:
            self._tell("end", f"job {job.id} is ended: {untold.ENDED}")
            slurm.note(job.id, untold.noted(job.admin_comment, untold.ENDED))
            slurm.end(job.id, untold.ENDED)
            return
        self._tell("again", f"job {job.id} is {untold.AGAIN}")
        is_lent = untold.needs_right(job)
        if is_lent:
            self._may_have_lent = True
            slurm.note(job.id, untold.lending(job.admin_comment), may_requeue=True)
        slurm.requeue(job.id)
        slurm.note(job.id, untold.noted(job.admin_comment, untold.AGAIN), may_requeue=False if is_lent else None)

    def _take_back(self) -> None:
        """Takes back what a run that was killed, or refused a write, has lent. Reads all jobs, so only if there may be something."""
        try:
            for job in untold.find_lent(slurm.read_started("")):
                if job.run not in self._since:
                    slurm.note(job.id, untold.noted(job.admin_comment), may_requeue=False)
            self._may_have_lent = False
        except SlurmError as error:
            self._tell("lent", f"whether jobs have the right to be requeued by Slipway alone is looked at again ({error})")

    def _tell(self, kind: str, text: str) -> None:
        """Logs a text, unless it was the last one of its kind."""
        if self._said.get(kind) != text:
            self._say(text)
        self._said[kind] = text


def _checks_script() -> str:
    try:
        return (copies.ACCEPTED / CHECKS).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _ids(jobs: tuple[Job, ...]) -> str:
    return some([job.id for job in jobs])
