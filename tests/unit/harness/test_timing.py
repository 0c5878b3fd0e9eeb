"""The table of the slowest modules is right."""

from tests.support.timing import Times, busy_s, module_lines

STAT = "cpu  100 20 30 4000 500 6 7 0 0 0\ncpu0 1 2 3 4 5 6 7 0 0 0\n"


def test_busy_seconds_leave_idle_and_disks_out() -> None:
    assert busy_s(STAT, 100) == (100 + 20 + 30 + 6 + 7) / 100


def test_modules_are_summed_and_the_slowest_come_first() -> None:
    tests = {"a.py::x": Times(1, 1, 2), "b.py::x[1]": Times(3, 1, 2), "b.py::x[2]": Times(4, 0.5, 0.5)}
    assert [line.split() for line in module_lines(tests, shown=1)] == [
        ["7.0", "s,", "processor", "1.5", "s", "own", "2.5", "s", "machine", "b.py"],
        ["8.0", "s,", "processor", "2.5", "s", "own", "4.5", "s", "machine", "all"],
    ]
