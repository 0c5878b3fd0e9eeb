"""How long a node that failed to come up is left alone: what docs/operate/node-sets.md promises."""

import pytest

from controllers.nodeset.retries import Retries
from controllers.runtime.structs import Key

KEY: Key = ("slurm", "gpu")
FAILED_AT = 1000.0


def failed(times: int) -> Retries:
    """gpu-3 has failed so often, each time after it was tried again; the last time at FAILED_AT."""
    retries = Retries()
    for number in range(times):
        retries.note(KEY, [], FAILED_AT)  # it is being tried
        retries.note(KEY, [3], FAILED_AT if number == times - 1 else 0.0)
    return retries


@pytest.mark.parametrize(
    ("failures", "pause_s"),
    [
        pytest.param(1, 30, id="first"),
        pytest.param(2, 60, id="second"),
        pytest.param(3, 120, id="third"),
        pytest.param(6, 960, id="sixth"),
        pytest.param(7, 1800, id="seventh-is-half-an-hour"),
        pytest.param(8, 1800, id="never-longer"),
        pytest.param(500, 1800, id="after-a-week-of-it"),
    ],
)
def test_pause_doubles_with_each_failure(failures: int, pause_s: float) -> None:
    retries = failed(failures)
    assert retries.next_s(KEY, FAILED_AT) == pause_s
    assert retries.held(KEY, FAILED_AT + pause_s - 1) == {3}
    assert retries.held(KEY, FAILED_AT + pause_s) == frozenset()
    assert retries.next_s(KEY, FAILED_AT + pause_s) == float("inf")


def test_failure_that_is_seen_in_many_rounds_is_one() -> None:
    retries = failed(1)
    for later_s in range(20):
        retries.note(KEY, [3], FAILED_AT + later_s)
    assert retries.held(KEY, FAILED_AT + 29) == {3}
    assert retries.held(KEY, FAILED_AT + 30) == frozenset()


def test_node_that_came_up_starts_anew_and_others_do_not() -> None:
    retries = failed(4)
    retries.note(KEY, [3, 5], FAILED_AT)
    retries.forget(KEY, [3])
    retries.note(KEY, [], FAILED_AT)
    retries.note(KEY, [3, 5], FAILED_AT)
    assert retries.held(KEY, FAILED_AT + 31) == {5}


def test_sets_do_not_hold_each_other_up() -> None:
    assert failed(3).held(("slurm", "cpu"), FAILED_AT) == frozenset()
