from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controllers.runtime.expectations import Expectations
from controllers.runtime.structs import ObjectMeta, PartialObject
from tests.support.fakes.clock import FakeClock

LATER = "2024-01-01T00:00:00Z"


def one(uid: str, name: str = "gpu-0", *, terminating: bool = False) -> PartialObject:
    """An object as an informer has it."""
    return PartialObject(ObjectMeta(name=name, namespace="slurm", uid=uid, deletion_timestamp=LATER if terminating else None))


def test_creation_is_expected_until_seen() -> None:
    expectations = Expectations[str](clock=FakeClock().clock)
    expectations.expect_created("set", "gpu-0")
    expectations.expect_created("set", "gpu-1")
    expectations.seen("set", None, one("1"))
    assert expectations.creating("set") == {"gpu-1"}
    expectations.withdraw("set", "gpu-1")
    assert expectations.creating("set") == frozenset()


def test_creation_is_not_met_by_the_end_of_the_predecessor() -> None:
    expectations = Expectations[str](clock=FakeClock().clock)
    expectations.expect_created("set", "gpu-0")
    expectations.seen("set", one("1"), None)
    assert expectations.creating("set") == {"gpu-0"}


@pytest.mark.parametrize(
    ("old", "new", "is_met"),
    [
        pytest.param(one("1"), None, True, id="it is gone"),
        pytest.param(one("1"), one("1", terminating=True), True, id="it has a deletion time"),
        pytest.param(None, one("2"), True, id="there is another of its name"),
        pytest.param(one("1"), one("1"), False, id="it has changed otherwise"),
        pytest.param(one("0"), None, False, id="its predecessor is gone"),
        pytest.param(one("9", "gpu-9"), None, False, id="another is gone"),
        pytest.param(None, None, False, id="nothing"),
    ],
)
def test_deletion_is_expected_until_that_object_is_on_its_way(old: PartialObject | None, new: PartialObject | None, is_met: bool) -> None:
    expectations = Expectations[str](clock=FakeClock().clock)
    expectations.expect_deleted("set", "gpu-0", "1")
    expectations.seen("set", old, new)
    assert expectations.deleting("set") == (frozenset() if is_met else {"gpu-0"})


def test_owners_do_not_meet_each_other_s_expectations() -> None:
    expectations = Expectations[str](clock=FakeClock().clock)
    expectations.expect_created("a", "gpu-0")
    expectations.expect_created("b", "gpu-0")
    expectations.seen("a", None, one("1"))
    assert (expectations.creating("a"), expectations.creating("b")) == (frozenset(), {"gpu-0"})
    expectations.forget("b")
    assert expectations.creating("b") == frozenset()


def test_what_is_never_seen_is_given_up() -> None:
    clock = FakeClock()
    expectations = Expectations[str](clock=clock.clock, expire_s=60)
    expectations.expect_created("set", "gpu-0")
    clock.pass_time(30)
    expectations.expect_deleted("set", "gpu-1", "1")
    clock.pass_time(29.9)
    assert (expectations.creating("set"), expectations.deleting("set")) == ({"gpu-0"}, {"gpu-1"})
    clock.pass_time(0.1)
    assert (expectations.creating("set"), expectations.deleting("set")) == (frozenset(), {"gpu-1"})
    clock.pass_time(30)
    assert expectations.deleting("set") == frozenset()


class Sent(NamedTuple):
    uid: str
    at: float


class Cluster(RuleBasedStateMachine):
    """A server, a watch that is behind, and a controller that writes: what it expects is what was written lately and not yet heard."""

    NAMES = st.sampled_from(["gpu-0", "gpu-1", "gpu-2"])

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.expectations = Expectations[str](clock=self.clock.clock, expire_s=60)
        self.server: dict[str, PartialObject] = {}
        self.copy: dict[str, PartialObject] = {}
        self.events: list[tuple[PartialObject | None, PartialObject | None]] = []
        self.created: dict[str, Sent] = {}
        self.deleted: dict[str, Sent] = {}
        self.given_up: set[str] = set()
        self.count = 0

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        if name in self.copy or name in self.expectations.creating("set"):
            return
        # What it is for: nothing is made twice, unless the news took longer than the expectation lasts.
        assert name not in self.server or name in self.given_up
        if name in self.server:
            return
        self.count += 1
        self.expectations.expect_created("set", name)
        self.server[name] = one(str(self.count), name)
        self.created[name] = Sent(str(self.count), self.clock.time)
        self.events.append((None, self.server[name]))

    @rule(name=NAMES, stops_first=st.booleans())
    def delete(self, name: str, stops_first: bool) -> None:
        known = self.copy.get(name)
        if known is None or name in self.expectations.deleting("set"):
            return
        uid = known.metadata.uid
        self.expectations.expect_deleted("set", name, uid)
        now = self.server.get(name)
        if now is None or now.metadata.uid != uid:
            self.expectations.withdraw("set", name)
            return
        self.deleted[name] = Sent(uid, self.clock.time)
        if stops_first:
            self.server[name] = one(uid, name, terminating=True)
            self.events.append((now, self.server[name]))
        else:
            del self.server[name]
            self.events.append((now, None))

    @rule(name=NAMES)
    def end(self, name: str) -> None:
        """By itself, or by somebody else."""
        if name in self.server:
            self.events.append((self.server.pop(name), None))

    @rule(number=st.integers(min_value=1, max_value=4))
    def hear(self, number: int) -> None:
        for old, new in self.events[:number]:
            meta = (new or old or one("")).metadata
            if new is None:
                self.copy.pop(meta.name)
            else:
                self.copy[meta.name] = new
                self.created.pop(meta.name, None)
            is_begun = new is None or meta.deletion_timestamp is not None
            if is_begun and self.deleted.get(meta.name, Sent("", 0)).uid == meta.uid:
                del self.deleted[meta.name]
            self.expectations.seen("set", old, new)
        del self.events[:number]

    @rule(seconds=st.integers(min_value=1, max_value=40))
    def wait(self, seconds: int) -> None:
        self.clock.pass_time(seconds)
        self.given_up |= {name for name, sent in self.created.items() if self.clock.time - sent.at >= 60}
        self.created = {name: sent for name, sent in self.created.items() if self.clock.time - sent.at < 60}
        self.deleted = {name: sent for name, sent in self.deleted.items() if self.clock.time - sent.at < 60}

    @invariant()
    def expected_is_what_was_written_and_not_heard(self) -> None:
        assert self.expectations.creating("set") == self.created.keys()
        assert self.expectations.deleting("set") == self.deleted.keys()


TestCluster = Cluster.TestCase
