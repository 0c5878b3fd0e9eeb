"""The one truth table of node states: what each says to everybody who asks. The tests of every caller run through it."""

from typing import NamedTuple

import pytest


class Law(NamedTuple):
    """What a state says."""

    words: str
    """The state as scontrol prints it."""
    is_free: bool = False
    """No job can be on the node, nor start there before Slurm is told: its pod may end, and its line may go."""
    may_be_drained: bool = True
    """A drain ends no job, and there is none yet."""
    jobs_began: bool = False
    """Jobs have processes there."""


TABLE = [
    # Up.
    Law("IDLE+CLOUD"),
    Law("ALLOCATED+CLOUD", jobs_began=True),
    Law("MIXED+CLOUD", jobs_began=True),
    Law("IDLE+COMPLETING"),
    Law("IDLE+NOT_RESPONDING"),
    Law("IDLE+PLANNED"),
    Law("IDLE+RESERVED+MAINTENANCE"),
    Law("MIXED+POWER_DOWN", jobs_began=True),
    # Down, and not drained: it may come back by registering.
    Law("DOWN+CLOUD"),
    Law("DOWN+NOT_RESPONDING"),
    Law("DOWN+CLOUD+NOT_RESPONDING"),
    # Drained, and draining.
    Law("IDLE+DRAIN", is_free=True, may_be_drained=False),
    Law("IDLE+CLOUD+DRAIN", is_free=True, may_be_drained=False),
    Law("DOWN+CLOUD+DRAIN", is_free=True, may_be_drained=False),
    Law("IDLE+CLOUD+DRAIN+NOT_RESPONDING", is_free=True, may_be_drained=False),
    Law("IDLE+CLOUD+DRAIN+POWERED_DOWN", is_free=True, may_be_drained=False),
    Law("MIXED+CLOUD+DRAIN", may_be_drained=False, jobs_began=True),
    Law("ALLOCATED+DRAIN", may_be_drained=False, jobs_began=True),
    Law("IDLE+COMPLETING+DRAIN", may_be_drained=False),
    Law("IDLE+DRAIN+UNDRAIN", may_be_drained=False),
    Law("ALLOCATED+DRAIN+POWER_DOWN", may_be_drained=False, jobs_began=True),
    # Off, and on the way.
    Law("IDLE+CLOUD+POWERED_DOWN", is_free=True),
    Law("IDLE+CLOUD+POWERING_DOWN", is_free=True),
    Law("DOWN+CLOUD+POWERED_DOWN", is_free=True),
    Law("DOWN+CLOUD+NOT_RESPONDING+POWERED_DOWN", is_free=True),
    Law("IDLE+COMPLETING+POWERING_DOWN"),
    Law("ALLOCATED+POWERING_DOWN", may_be_drained=False),
    Law("MIXED+CLOUD+POWERED_DOWN", may_be_drained=False),
    Law("ALLOCATED+CLOUD+POWERED_DOWN", may_be_drained=False),
    Law("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", may_be_drained=False),
    Law("IDLE+CLOUD+POWERING_UP", may_be_drained=False),
    Law("IDLE+POWERED_DOWN+POWERING_UP", may_be_drained=False),
    Law("MIXED+CLOUD+POWERED_DOWN+POWERING_UP", may_be_drained=False),
    # Unknown is busy.
    Law("", may_be_drained=False),
    Law("DRAIN", may_be_drained=False),
    Law("POWERED_DOWN", may_be_drained=False),
    Law("UNKNOWN", may_be_drained=False),
    Law("UNKNOWN+DRAIN", may_be_drained=False),
    Law("UNKNOWN+CLOUD+POWERED_DOWN", may_be_drained=False),
    Law("IDLE+ALLOCATED+DRAIN", may_be_drained=False),
    Law("IDLE+WARPED", may_be_drained=False),
    Law("IDLE+DRAIN+WARPED", may_be_drained=False),
    Law("IDLE+POWERED_DOWN+WARPED", may_be_drained=False),
    Law("MIXED+WARPED", may_be_drained=False),
]

every_state = pytest.mark.parametrize("law", [pytest.param(law, id=law.words or "nothing") for law in TABLE])
