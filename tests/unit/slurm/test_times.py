"""Times that others write."""

import pytest

from slurm.times import read_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("1970-01-02T00:00:00Z", 86_400.0, id="utc"),
        pytest.param(" 1970-01-02T01:00:00+01:00\n", 86_400.0, id="with-an-offset"),
        pytest.param("1970-01-02", 86_400.0, id="without-one"),
        pytest.param("0001-01-01T00:00:00", -62_135_596_800.0, id="first-year"),
        pytest.param("soon", None, id="no-time"),
        pytest.param("", None, id="nothing"),
        pytest.param("10000-01-01T00:00:00Z", None, id="year-10000"),
    ],
)
def test_time_is_read_or_none(text: str, seconds: float | None) -> None:
    assert read_time(text, is_utc=True) == seconds


@pytest.mark.parametrize("text", ["0001-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59"])
def test_time_at_the_ends_of_the_calendar_ends_nobody(text: str) -> None:
    read_time(text)
    read_time(text, is_utc=True)
