"""The laws of docs/explain/laws.md, through random histories. When one fails, its message has the seed and the last steps."""

from functools import cache

import pytest

from tests.support.controllers.nodeset.simulation import run

SEEDS = range(60)
STEPS = 500
AT_LEAST = 20_000
"""Steps of all histories together: some end early, as their set is deleted."""


@cache
def steps_of(seed: int) -> int:
    """Runs one history; gives its steps."""
    return run(seed, STEPS)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_law_holds_at_every_step_and_the_set_settles_afterwards(seed: int) -> None:
    assert steps_of(seed) > 0


def test_histories_are_long_enough_to_break_a_law() -> None:
    assert sum(map(steps_of, SEEDS)) >= AT_LEAST
