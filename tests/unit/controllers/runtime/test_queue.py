import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controllers.runtime.clock import Clock
from controllers.runtime.queue import WorkQueue
from tests.support.fakes.clock import FakeClock, settle

KEYS = st.sampled_from("abcd")


def taken(queue: WorkQueue[str]) -> list[str]:
    """All keys that are due, worked on at once."""
    keys: list[str] = []
    while (key := queue.take()) is not None:
        keys.append(key)
        queue.done(key)
    return keys


def test_many_adds_of_a_key_are_one() -> None:
    queue = WorkQueue[str](clock=FakeClock().clock)
    for key in "abab":
        queue.add(key)
    assert (len(queue), taken(queue), len(queue)) == (2, ["a", "b"], 0)


def test_key_that_is_worked_on_is_given_to_nobody_else_and_comes_again() -> None:
    queue = WorkQueue[str](clock=FakeClock().clock)
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a")
    queue.add("a")
    assert queue.take() is None
    queue.done("a")
    assert taken(queue) == ["a"]


@pytest.mark.parametrize(
    ("adds", "due"),
    [
        pytest.param([5], 5, id="one"),
        pytest.param([5, 9], 5, id="a later one changes nothing"),
        pytest.param([9, 5], 5, id="an earlier one counts"),
        pytest.param([9, 5, 7, 5], 5, id="the earliest of many"),
        pytest.param([0], 0, id="none is now"),
        pytest.param([-1], 0, id="the past is now"),
    ],
)
def test_earliest_of_the_delayed_adds_counts(adds: list[float], due: float) -> None:
    clock = FakeClock()
    queue = WorkQueue[str](clock=clock.clock)
    for seconds in adds:
        queue.add_after("a", seconds)
    seen: list[float] = []
    for second in range(20):
        clock.time = float(second)
        seen += [second for _ in taken(queue)]
    assert seen == [due]


def test_failures_wait_twice_as_long_each_time_until_forgotten() -> None:
    queue = WorkQueue[str](clock=FakeClock(random=lambda: 0.999999999).clock, base_s=1, most_s=10)
    waits = [queue.add_backed_off("a") for _ in range(6)]
    assert [round(wait) for wait in waits] == [1, 2, 4, 8, 10, 10]
    assert queue.failures("a") == 6
    assert round(queue.add_backed_off("b")) == 1
    queue.forget("a")
    assert round(queue.add_backed_off("a")) == 1


@given(st.integers(min_value=1, max_value=100_000), st.floats(min_value=0, max_value=1, exclude_max=True))
def test_wait_is_never_over_the_most_nor_under_half_of_it(failures: int, chance: float) -> None:
    from controllers.runtime.clock import backoff_s

    full = min(30.0, 0.2 * 2.0 ** min(failures - 1, 60))
    assert full / 2 <= backoff_s(failures, 0.2, 30, Clock(random=lambda: chance)) <= full


class Queue(RuleBasedStateMachine):
    """Against a model: for each key when it is due, and who works on it."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.queue = WorkQueue[str](clock=self.clock.clock)
        self.due: dict[str, float] = {}
        self.again: set[str] = set()
        self.ready: set[str] = set()
        self.working: list[str] = []

    def ripen(self) -> None:
        for key in [key for key, at in self.due.items() if at <= self.clock.time]:
            del self.due[key]
            self.note(key)

    def note(self, key: str) -> None:
        (self.again if key in self.working else self.ready).add(key)

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.note(key)

    @rule(key=KEYS, seconds=st.integers(min_value=-1, max_value=20))
    def add_after(self, key: str, seconds: int) -> None:
        self.queue.add_after(key, seconds)
        if seconds <= 0:
            self.note(key)
        else:
            self.due[key] = min(self.clock.time + seconds, self.due.get(key, math.inf))

    @rule(seconds=st.integers(min_value=1, max_value=15))
    def wait(self, seconds: int) -> None:
        # What ripens does so when the queue is looked at: at the latest with the next take, and under the work of that time.
        self.clock.time += seconds
        len(self.queue)
        self.ripen()

    @rule()
    def take(self) -> None:
        key = self.queue.take()
        assert (key is None) == (not self.ready)
        if key is not None:
            self.ready.remove(key)
            self.working.append(key)

    @precondition(lambda self: bool(self.working))
    @rule(which=st.integers(min_value=0))
    def done(self, which: int) -> None:
        key = self.working.pop(which % len(self.working))
        self.queue.done(key)
        if key in self.again:
            self.again.remove(key)
            self.ready.add(key)

    @invariant()
    def one_worker_a_key(self) -> None:
        assert len(set(self.working)) == len(self.working)

    @invariant()
    def nothing_is_lost(self) -> None:
        assert len(self.queue) == len(self.ready) + len(self.again)
        wait_s = self.queue.next_due_s()
        assert wait_s == (min(self.due.values()) - self.clock.time if self.due else None)


TestQueue = Queue.TestCase


@pytest.mark.anyio
async def test_worker_is_woken_by_an_add_and_by_time() -> None:
    clock = FakeClock()
    queue = WorkQueue[str](clock=clock.clock)
    worked: list[tuple[str, float]] = []

    async def work(key: str) -> None:
        worked.append((key, clock.time))

    task = asyncio.create_task(queue.run(work, 2))
    queue.add_after("late", 10)
    await settle()
    queue.add("now")
    await settle()
    assert worked == [("now", 0)]
    await clock.advance(9)
    queue.add_after("late", 0.5)
    await clock.advance(5)
    assert worked == [("now", 0), ("late", 9.5)]
    task.cancel()


@pytest.mark.anyio
async def test_keys_are_worked_on_side_by_side_but_each_by_one() -> None:
    queue = WorkQueue[str](clock=FakeClock().clock)
    at_work: list[str] = []
    most = 0
    release = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal most
        assert key not in at_work
        at_work.append(key)
        most = max(most, len(at_work))
        await release.wait()
        at_work.remove(key)

    task = asyncio.create_task(queue.run(work, 3))
    for _ in range(3):
        for key in "abcde":
            queue.add(key)
        await settle()
    assert sorted(at_work) == ["a", "b", "c"]
    release.set()
    await settle()
    assert (at_work, len(queue), most) == ([], 0, 3)
    task.cancel()


@pytest.mark.anyio
async def test_error_of_a_worker_ends_the_queue_s_task() -> None:
    queue = WorkQueue[str](clock=FakeClock().clock)

    async def work(key: str) -> None:
        raise ZeroDivisionError

    queue.add("a")
    with pytest.raises(ExceptionGroup) as caught:
        await queue.run(work, 2)
    assert caught.group_contains(ZeroDivisionError)
