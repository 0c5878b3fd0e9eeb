"""After each start of slurmctld's process, looks once for jobs that no node was told of, and has them start again: see untold.

It keeps nothing that matters: a new run of the sidecar looks again. Killed between two writes, it has lent a job the right to be requeued
at most, which is noted in the job, and taken back at the next run's first look.
"""

import time
from collections.abc import Callable, Iterable

from slurm.commands import SlurmError
from slurm.prologs import CHECKS, longest_s

from . import copies, slurm, untold
from .plan import some
from .untold import Job

_LOOK_S = 15.0
_FRESH_S = 10.0


class Rescue:
    """Which start of slurmctld was looked at, and what was said of it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said = ""
        self._look_at = 0.0
        self._done = 0
        """The start after which all such jobs were dealt with."""
        self._states = untold.ALL
        """Waiting jobs are looked at where one may have a right that it was lent: there may be 100,000 of them."""

    def look(self) -> None:
        """Looks where that is due. What cannot be read or done now is tried again."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_S
        try:
            config = slurm.read_config()
        except SlurmError:
            return  # whoever reads slurmctld's log knows
        boot = config.get("BOOT_TIME", "")
        prologs_s = longest_s(config, _checks_script())
        if not boot.isdecimal():
            self._tell(f"whether jobs wait in vain is unknown: scontrol gives no BOOT_TIME in seconds, but {boot!r}")
        elif int(boot) != self._done and time.time() >= int(boot) + (prologs_s or 0) + untold.SLACK_S:
            try:
                if self._deal_with(int(boot), is_sure=prologs_s is not None):
                    self._done, self._states = int(boot), untold.RUNNING
            except SlurmError as error:
                self._states = untold.ALL
                self._tell(f"jobs that wait in vain for their nodes are looked for again ({error})")

    def _deal_with(self, boot: int, *, is_sure: bool) -> bool:
        """Deals with jobs that wait in vain since before this start; True once none is left for later. Raises SlurmError."""
        asked_at = time.monotonic()
        jobs = slurm.read_started(self._states)
        waiting = untold.find_waiting(jobs, boot)
        if waiting and not is_sure:
            self._tell(
                f"jobs {_ids(waiting)} may wait in vain since slurmctld started anew. Nothing limits the time of this cluster's prologs: "
                "with PrologTimeout in slurm.settings, such jobs start again by themselves"
            )
            waiting = ()
        steps = slurm.read_steps(job.id for job in waiting) if waiting else ()
        nodes = {name: each.state for name, each in slurm.read_slurmds().items()} if waiting else {}
        plan = untold.plan_untold(jobs, waiting, steps, nodes)
        if time.monotonic() - asked_at > _FRESH_S:
            raise SlurmError(f"Slurm took more than {_FRESH_S:.0f} s to list them")
        if plan.left:
            self._tell(
                f"jobs {_ids(plan.left)} wait in vain for a node since slurmctld started anew, and may work on another. "
                "Look at them; `scontrol requeue JOB` has one start again"
            )
        if plan.requeue:
            self._tell(f"starts jobs {_ids(plan.requeue)} again: {untold.WHY}")
        if plan.end:
            self._tell(f"ends jobs {_ids(plan.end)} of srun and salloc: {untold.WHY}")
        refused = [*_each(_requeue, plan.requeue), *_each(_end, plan.end), *_each(_give_back, plan.give_back)]
        if refused:
            raise SlurmError("; ".join(refused))
        return not plan.later

    def _tell(self, text: str) -> None:
        """Says it, unless it was the last thing said here."""
        if text != self._said:
            self._say(text)
        self._said = text


def _each(act: Callable[[Job], None], jobs: Iterable[Job]) -> list[str]:
    """What Slurm refused; one job's refusal holds up no other."""
    refused: list[str] = []
    for job in jobs:
        try:
            act(job)
        except SlurmError as error:
            refused.append(f"job {job.id}: {error}")
    return refused


def _requeue(job: Job) -> None:
    if not untold.is_lent(job):
        slurm.note(job.id, untold.noted(job))
        slurm.requeue(job.id)
        return
    slurm.note(job.id, untold.lending(job), may_requeue=True)
    slurm.requeue(job.id)
    _give_back(job)


def _give_back(job: Job) -> None:
    slurm.note(job.id, untold.noted(job), may_requeue=False)


def _end(job: Job) -> None:
    slurm.note(job.id, untold.noted(job, untold.ENDED))
    slurm.end(job.id, untold.ENDED)


def _checks_script() -> str:
    try:
        return (copies.ACCEPTED / CHECKS).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _ids(jobs: tuple[Job, ...]) -> str:
    return some([job.id for job in jobs])
