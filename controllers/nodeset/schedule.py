"""When a set is looked at again. Decides nothing about the set."""

from dataclasses import dataclass

from controllers.nodeset.plan import Plan
from controllers.nodeset.rounds import SWEEP_S, TOO_LATE_S, Round

SOON_S = 0.5
"""Most seconds until the next round while something is under way."""


@dataclass(frozen=True)
class Next:
    """When to look at a set again."""

    seconds: float
    has_failed: bool = False
    """Something was refused or not answered: wait longer each time."""


def next_round(round_: Round, plan: Plan) -> Next:
    """The earliest of what the plan waits for; a sweep when it waits for nothing."""
    world, key, now = round_.world, round_.key, round_.world.clock.now()
    if round_.memory.late_s(now) >= TOO_LATE_S:
        return Next(SWEEP_S, has_failed=True)  # each round asks a Slurm that is slow already for all its nodes
    is_under_way = plan.needs_fresh_reading or plan.create or plan.deletions.unbound or plan.repairs.has_changed
    if (is_under_way or round_.has_no_reading or round_.came_too_late or round_.has_more_objects) and not round_.errors:
        return Next(SOON_S)
    ghosts_s = round_.memory.ghost_pause_s(now) if plan.ghosts.evict_later else SWEEP_S
    held_s = min(world.retries.next_s(key, now), world.refusals.next_s(key, now), round_.memory.stop_settles_s(now))
    checks_s = round_.memory.checks_due_s(plan.repairs.checks, now)
    due_s = min(plan.deadlines.next_s, plan.repairs.next_s, plan.roll.settles_s)
    return Next(min(SWEEP_S, checks_s, ghosts_s, due_s, held_s), bool(round_.errors))
