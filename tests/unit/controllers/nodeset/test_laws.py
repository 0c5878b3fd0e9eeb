"""The laws of docs/design.md section 5, through random histories. When one fails, its message has the seed and the last steps."""

import pytest

from tests.unit.controllers.nodeset.simulation import run

STEPS = 500


@pytest.mark.parametrize("seed", range(60))
def test_every_law_holds_at_every_step_and_the_set_settles_afterwards(seed: int) -> None:
    assert run(seed, STEPS) > 0
