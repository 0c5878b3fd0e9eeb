"""Beside slurmctld: reads the reservations every 15 s and, while one for maintenance is near, the jobs that run.

`python3 -m programs.maintenance.run SETTINGS`, as SlurmUser; SETTINGS are slurm.maintenance.Policy as JSON. It keeps nothing: what was sent
is noted in Slurm, so it may be killed at any time.
"""

import functools
import sys
import time
from collections.abc import Callable, Sequence

from slurm import logs
from slurm.commands import SlurmError
from slurm.maintenance import Policy, read_policy
from slurm.pump import take_stderr
from slurm.signals import Signals

from .plan import Actions, are_near, plan_maintenance
from .slurm import Slurm

INTERVAL_S = 15
_FRESH_S = 10
"""A reading that took longer shows the past: the next round decides."""


def one_round(slurm: Slurm, policy: Policy, say: Callable[[str], None], clock: Callable[[], float] = time.time) -> None:
    """Reads, decides, writes. Raises SlurmError where a reading fails or took too long."""
    asked_at = clock()
    windows = slurm.windows(policy.reservation_prefix)
    if not are_near(windows, asked_at, policy):
        return
    actions = plan_maintenance(slurm.jobs(), windows, asked_at, policy)
    if clock() - asked_at > _FRESH_S:
        raise SlurmError(f"Slurm took more than {_FRESH_S} s to list its jobs: nothing is done by that list")
    carry_out(slurm, actions, policy, say)


def carry_out(slurm: Slurm, actions: Actions, policy: Policy, say: Callable[[str], None]) -> None:
    """What Slurm refuses for one job, as it has just ended, holds up no other. Nobody is warned whose warning was not noted."""
    if actions.requeue:
        say(_line(f"asks Slurm to requeue jobs {', '.join(actions.requeue)}", maintenance="requeue", jobs=actions.requeue))
        _try(lambda: slurm.requeue(actions.requeue), say)
    noted = [job for comment, jobs in actions.notes.items() for job in _note(slurm, comment, jobs, say)]
    if not noted:
        return
    say(_line(f"warns jobs {', '.join(noted)}", maintenance="warn", jobs=noted))
    if policy.signal:
        _try(lambda: slurm.signal(noted, policy.signal), say)
    _try(lambda: slurm.notify({job: actions.words[job] for job in noted}), say)


def _note(slurm: Slurm, comment: str, jobs: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """The jobs that have the note. Where Slurm refuses it for some of them, each gets it by itself."""
    if _try(lambda: slurm.note(jobs, comment), say):
        return [*jobs]
    return [job for job in jobs if len(jobs) > 1 and _try(functools.partial(slurm.note, [job], comment), say)]


def _try(act: Callable[[], None], say: Callable[[str], None]) -> bool:
    try:
        act()
    except SlurmError as error:
        say(_line(f"Slurm refuses: {error}", logs.ERROR, maintenance="refused", error=str(error)))
        return False
    return True


def _line(message: str, level: str = logs.INFO, jobs: Sequence[str] = (), **more: str) -> str:
    about = {"jobs": [*jobs]} if jobs else {}
    return logs.line("maintenance", message, level, job=jobs[0] if len(jobs) == 1 else "", **more, **about)


def main() -> int:
    signals, policy, slurm = Signals(), read_policy(sys.argv[1]), Slurm()
    while not signals.is_stopping:
        try:
            one_round(slurm, policy, logs.write)
        except SlurmError as error:
            logs.write(_line(f"what to do is unknown: {error}", logs.ERROR, maintenance="unknown", error=str(error)))
        signals.wait(INTERVAL_S)
    return 0


if __name__ == "__main__":
    take_stderr("maintenance")
    sys.exit(main())
