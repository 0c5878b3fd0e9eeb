"""Deadlines follow the machine: never shorter than asked for, longer on a slow or a full one."""

import pytest

from tests.support import patience
from tests.support.patience import WORK_S, slowness


@pytest.mark.parametrize(
    ("work_s", "load", "processors", "expected"),
    [
        pytest.param(WORK_S, 0.0, 2, 1.0, id="as-expected"),
        pytest.param(WORK_S / 4, 0.0, 64, 1.0, id="fast-and-idle-is-no-less"),
        pytest.param(WORK_S, 1.0, 2, 1.0, id="one-other-process-has-its-own-processor"),
        pytest.param(WORK_S, 5.0, 2, 3.0, id="full"),
        pytest.param(WORK_S * 2, 0.0, 2, 2.0, id="slow"),
        pytest.param(WORK_S * 2, 5.0, 2, 6.0, id="slow-and-full"),
        pytest.param(WORK_S / 4, 5.0, 2, 3.0, id="fast-does-not-pay-for-full"),
    ],
)
def test_slowness(work_s: float, load: float, processors: int, expected: float) -> None:
    assert slowness(work_s, load, processors) == pytest.approx(expected)


def test_patience_of_this_machine_is_told() -> None:
    assert patience.patience() >= 1
    assert patience.describe().startswith("patience: deadlines times ")
