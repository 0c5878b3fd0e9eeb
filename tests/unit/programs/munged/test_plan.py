"""When munged takes another key."""

import pytest

from programs.munged.plan import Dial, Step, count_silence, pause_s, plan_key


@pytest.mark.parametrize(
    ("dials", "step"),
    [
        pytest.param([Dial.ANSWERED], Step.WAIT, id="slurmctld-listens"),
        pytest.param([Dial.REFUSED], Step.TAKE, id="its-port-is-closed"),
        pytest.param([Dial.NOTHING, Dial.NOTHING], Step.WAIT, id="no-answer-twice"),
        pytest.param([Dial.NOTHING, Dial.NOTHING, Dial.NOTHING], Step.TAKE, id="no-answer-three-times"),
        pytest.param([Dial.NOTHING, Dial.NOTHING, Dial.ANSWERED, Dial.NOTHING], Step.WAIT, id="an-answer-in-between"),
        pytest.param([Dial.NOTHING, Dial.REFUSED], Step.TAKE, id="its-pod-goes"),
    ],
)
def test_key_is_taken_while_slurmctld_is_silent(dials: list[Dial], step: Step) -> None:
    silence = 0
    for dial in dials:
        silence = count_silence(silence, dial)
    assert plan_key(True, silence, 5, 600) is step


@pytest.mark.parametrize(
    ("is_waiting", "silence", "waited_s", "step"),
    [
        pytest.param(False, 3, 700, Step.REST, id="no-other-key"),
        pytest.param(True, 0, 600, Step.WAIT, id="in-time"),
        pytest.param(True, 0, 601, Step.TAKE, id="slurmctld-has-long-been-with-it"),
    ],
)
def test_key_is_taken_late_rather_than_never(is_waiting: bool, silence: int, waited_s: float, step: Step) -> None:
    assert plan_key(is_waiting, silence, waited_s, 600) is step


def test_looks_are_quick_while_a_key_waits() -> None:
    """slurmctld is silent for at least 8 s; an attempt to reach it may take two."""
    assert pause_s(Step.WAIT) + 2 < 8 / 2
    assert pause_s(Step.REST) > pause_s(Step.WAIT)
