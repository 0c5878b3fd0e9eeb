import pytest

from slurm.states import (
    category,
    has_jobs_begun,
    is_busy,
    is_drained,
    is_idle,
    is_off,
    is_powering_up,
    is_registered,
    is_released_by_resume,
    may_be_drained,
    may_be_removed,
    node_state,
)
from tests.support.law import Law, every_state


@pytest.mark.parametrize(
    ("words", "drained"),
    [
        pytest.param("IDLE", False, id="idle"),
        pytest.param("MIXED", False, id="mixed"),
        pytest.param("ALLOCATED", False, id="allocated"),
        pytest.param("DOWN", False, id="down"),
        pytest.param("IDLE DRAIN", True, id="idle-drain"),
        pytest.param("DOWN DRAIN", True, id="down-drain"),
        pytest.param("IDLE CLOUD DRAIN NOT_RESPONDING", True, id="idle-drain-silent"),
        pytest.param("MIXED DRAIN", False, id="mixed-drain"),
        pytest.param("ALLOCATED DRAIN", False, id="allocated-drain"),
        pytest.param("IDLE DRAIN COMPLETING", False, id="completing"),
        pytest.param("IDLE DRAIN UNDRAIN", False, id="undrain-asked"),
        pytest.param("", False, id="nothing"),
        pytest.param("DRAIN", False, id="no-base-state"),
        pytest.param("IDLE ALLOCATED DRAIN", False, id="two-base-states"),
        pytest.param("UNKNOWN DRAIN", False, id="unknown"),
        pytest.param("IDLE DRAIN WARPED", False, id="word-from-the-future"),
    ],
)
def test_drained_is_only_what_is_known_to_hold_no_job(words: str, drained: bool) -> None:
    assert is_drained(node_state(words.split())) is drained


@pytest.mark.parametrize(
    ("words", "kind", "busy", "registered"),
    [
        pytest.param("IDLE CLOUD", "idle", False, True, id="idle"),
        pytest.param("ALLOCATED CLOUD", "allocated", True, True, id="allocated"),
        pytest.param("MIXED CLOUD", "allocated", True, True, id="mixed"),
        pytest.param("IDLE COMPLETING", "allocated", True, True, id="completing"),
        pytest.param("IDLE CLOUD POWERED_DOWN", "powered_down", False, False, id="off"),
        pytest.param("DOWN CLOUD POWERED_DOWN", "powered_down", False, False, id="failed-to-resume"),
        pytest.param("IDLE CLOUD POWERING_DOWN", "powering_down", False, False, id="going-off"),
        pytest.param("MIXED CLOUD NOT_RESPONDING POWERING_UP", "powering_up", True, False, id="waking"),
        pytest.param("ALLOCATED CLOUD POWERED_DOWN", "allocated", True, False, id="allocated-before-it-wakes"),
        pytest.param("ALLOCATED DRAIN POWER_DOWN", "draining", True, True, id="asked-to-power-down-later"),
        pytest.param("IDLE DRAIN", "drained", False, True, id="drained"),
        pytest.param("DOWN NOT_RESPONDING", "down", True, False, id="down"),
        pytest.param("IDLE NOT_RESPONDING", "idle", False, False, id="undrained-and-not-pinged-yet"),
        pytest.param("", "unknown", True, False, id="nothing"),
        pytest.param("IDLE WARPED", "unknown", True, False, id="word-from-the-future"),
    ],
)
def test_each_state_has_one_kind_and_unknown_is_busy(words: str, kind: str, busy: bool, registered: bool) -> None:
    state = node_state(words.split())
    assert (category(state), is_busy(state), is_registered(state)) == (kind, busy, registered)


@pytest.mark.parametrize(
    ("words", "released"),
    [
        pytest.param("IDLE CLOUD POWERING_DOWN", True, id="powering-down"),
        pytest.param("IDLE CLOUD DRAIN POWERING_DOWN", False, id="drained"),
        pytest.param("IDLE CLOUD UNDRAIN POWERING_DOWN", False, id="undrain-asked"),
        pytest.param("IDLE CLOUD FAIL POWERING_DOWN", False, id="failing"),
        pytest.param("DOWN CLOUD POWERING_DOWN", False, id="down"),
        pytest.param("MIXED CLOUD POWERING_DOWN", False, id="with-a-job"),
        pytest.param("IDLE CLOUD COMPLETING POWERING_DOWN", False, id="completing"),
        pytest.param("IDLE CLOUD POWERED_DOWN", False, id="off"),
        pytest.param("IDLE CLOUD POWERING_UP", False, id="waking"),
        pytest.param("IDLE CLOUD POWER_DOWN", False, id="asked-to-power-down-later"),
        pytest.param("IDLE CLOUD", False, id="idle"),
        pytest.param("IDLE POWERING_DOWN WARPED", False, id="word-from-the-future"),
    ],
)
def test_resume_ends_a_power_down_and_nothing_else(words: str, released: bool) -> None:
    assert is_released_by_resume(node_state(words.split())) == released


def test_node_that_wakes_with_a_job_is_neither_off_nor_idle() -> None:
    state = node_state(["MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP", "POWERED_DOWN"])
    assert is_powering_up(state)
    assert not is_off(state)
    assert not is_idle(state)


@every_state
def test_law_of_node_states(law: Law) -> None:
    state = node_state(word for word in law.words.split("+") if word)
    assert (may_be_removed(state), may_be_drained(state), has_jobs_begun(state)) == (law.is_free, law.may_be_drained, law.jobs_began)


@every_state
def test_node_without_a_job_is_not_called_busy_and_no_free_one_has_a_job(law: Law) -> None:
    state = node_state(word for word in law.words.split("+") if word)
    assert not (law.is_free and (is_busy(state) or law.jobs_began))
