"""The API server's time, by the dates of its answers."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.runtime.server_clock import ServerClock

NOW = 1_800_000_000.0


@given(st.floats(-1e6, 1e6), st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_clock_is_within_a_second_and_the_shortest_request(ahead_s: float, answers: list[tuple[float, float, float]]) -> None:
    """Each answer comes after a pause, its request and its way back."""
    here = NOW
    clock = ServerClock(lambda: here)
    for pause_s, request_s, back_s in answers:
        here += pause_s + request_s + back_s
        clock.note(formatdate(int(here - back_s + ahead_s), usegmt=True), request_s + back_s)
    shortest_s = min(request_s + back_s for _, request_s, back_s in answers)
    assert abs(clock.now() - (here + ahead_s)) <= 1 + shortest_s + 1e-3


def test_clock_that_agrees_is_not_touched() -> None:
    here = NOW
    clock = ServerClock(lambda: here)
    for _ in range(50):
        here += 0.13
        clock.note(formatdate(int(here - 0.01), usegmt=True), 0.02)
        assert clock.now() == here


@pytest.mark.parametrize("date", ["", "soon", "Thu, 99 Nov 2026 00:00:00 GMT", "Thu, 01 Jan 999999 00:00:00 GMT"])
def test_text_that_is_no_date_says_nothing(date: str) -> None:
    clock = ServerClock(lambda: NOW)
    clock.note(date, 0.1)
    assert clock.now() == NOW
