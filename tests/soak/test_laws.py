"""The laws of docs/explain/laws.md through a million steps of random histories, others at each run."""

import time

from tests.support.controllers.nodeset.simulation import run

STEPS = 1_000_000
PER_HISTORY = 500


def test_every_law_holds_through_a_million_steps() -> None:
    first, done = int(time.time()), 0
    seed = first
    while done < STEPS:
        done += run(seed, PER_HISTORY)
        seed += 1
    assert done >= STEPS, f"seeds {first} to {seed}"
