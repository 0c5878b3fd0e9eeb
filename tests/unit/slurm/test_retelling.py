"""How old a result may be: the times have to fit together."""

import pytest

from slurm.retelling import RENEW_AFTER_S, RENEW_EVERY_S, TELL_AGAIN_S, UNKNOWN_AFTER_S, unknown_after_s


@pytest.mark.parametrize(
    ("interval_s", "expected"),
    [pytest.param(0, 1800, id="no-interval"), pytest.param(60, 1800, id="every-minute"), pytest.param(3600, 10_800, id="every-hour")],
)
def test_silence_is_longer_than_some_looks(interval_s: float, expected: float) -> None:
    assert unknown_after_s(interval_s) == expected


def test_node_in_order_may_miss_telling_again_once() -> None:
    assert RENEW_AFTER_S < TELL_AGAIN_S - RENEW_EVERY_S, "what is told again is old enough to be renewed"
    assert 2 * (TELL_AGAIN_S + 60) + RENEW_EVERY_S < UNKNOWN_AFTER_S
