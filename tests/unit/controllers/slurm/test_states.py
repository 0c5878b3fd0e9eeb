import pytest

from controllers.slurm.states import category, is_busy, is_drained, is_idle, is_off, is_powering_up, is_registered, node_state


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


def test_node_that_wakes_with_a_job_is_neither_off_nor_idle() -> None:
    state = node_state(["MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP", "POWERED_DOWN"])
    assert is_powering_up(state)
    assert not is_off(state)
    assert not is_idle(state)
