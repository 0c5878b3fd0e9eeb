import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controllers.runtime.api import Api, connect
from controllers.runtime.holders import has_ended
from controllers.runtime.lease import Election, LeaseLost, Terms
from controllers.runtime.structs import LEASES, PODS, Lease
from tests.support.fakes.clock import FakeClock, eventually
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.fakes.requests import Failure, Request
from tests.support.patience import patience

pytestmark = pytest.mark.anyio

KEY = ("slurm", "nodeset")
TERMS = Terms(duration_s=15, renew_s=10, pause_s=2, retry_s=2)


def _ended(api: Api) -> Callable[[Lease], Awaitable[bool]]:
    return lambda lease: has_ended(api, KEY[0], lease, "controller")


class Candidate:
    """A process that waits for the lease, then holds it. With a clock of its own, as each machine has."""

    def __init__(self, api: Api, name: str, clock: FakeClock, terms: Terms = TERMS, container: str = "", asks: bool = False) -> None:
        self.clock = clock
        self.election = Election(
            api, KEY, name, container=container, terms=terms, clock=clock.clock, has_ended=_ended(api) if asks else None
        )
        self.leads_from: float | None = None
        self.lost_at: float | None = None
        self.why = ""
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self.election.acquire()
        self.leads_from = self.clock.time
        try:
            await self.election.hold()
        except LeaseLost as error:
            self.lost_at, self.why = self.clock.time, str(error)

    async def advance(self, seconds: float) -> None:
        """Time passes for it, half a second at a time; requests take none of it."""
        for _ in range(round(seconds * 2)):
            await self.rest()
            await self.clock.advance(0.5)
        await self.rest()

    async def rest(self) -> None:
        """Until it sleeps, or has ended."""
        await eventually(lambda: self.clock.sleeping == 1 or self.task.done())


@asynccontextmanager
async def candidates(api: Api, *names: str) -> AsyncGenerator[list[Candidate]]:
    started = [Candidate(api, name, FakeClock()) for name in names]
    try:
        for one in started:
            await one.rest()
        yield started
    finally:
        for one in started:
            one.task.cancel()
        await asyncio.wait([one.task for one in started])


async def together(started: list[Candidate], seconds: float) -> None:
    """Time passes for all alike; at no moment do two lead."""
    for _ in range(round(seconds * 2)):
        for one in started:
            await one.advance(0.5)
        assert sum(one.election.is_held() for one in started) <= 1


def holder(server: FakeKubernetes) -> str:
    return server.get(LEASES, KEY)["spec"]["holderIdentity"]


async def test_only_candidate_gets_the_lease_and_keeps_it(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a") as (a,):
        assert (a.leads_from, holder(server)) == (0, "a")
        await a.advance(60)
        assert a.election.is_held()
        spec = server.get(LEASES, KEY)["spec"]
        assert spec["leaseDurationSeconds"] == 15
        assert spec["acquireTime"] == "2023-11-14T22:13:20.000000Z"
        assert spec["renewTime"] > "2023-11-14T22:14:16"
        assert spec["leaseTransitions"] == 0


async def test_second_waits_and_takes_over_after_the_duration(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a", "b") as (a, b):
        await together([a, b], 30)
        assert (a.election.is_held(), b.leads_from) == (True, None)
        a.task.cancel()
        await b.advance(14)
        assert b.leads_from is None
        await b.advance(6)
        assert b.election.is_held()
        spec = server.get(LEASES, KEY)["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


def ended_pod(name: str, finished_at: str, state: str) -> dict[str, Any]:
    """The pod of a controller whose container has ended; its present state, or the one before a restart."""
    terminated = {"terminated": {"finishedAt": finished_at}}
    return {"metadata": {"namespace": KEY[0], "name": name}, "status": {"containerStatuses": [{"name": "controller", state: terminated}]}}


@pytest.mark.parametrize(
    ("finished_at", "state", "is_taken"),
    [
        pytest.param("2023-11-14T22:13:25Z", "state", True, id="ended"),
        pytest.param("2023-11-14T22:13:25Z", "lastState", True, id="started-anew"),
        pytest.param("2023-11-14T22:13:20Z", "state", False, id="ended-before-it-took-the-lease"),
        pytest.param("", "state", False, id="no-word-of-it"),
    ],
)
async def test_lease_of_a_holder_that_surely_ended_is_taken_within_five_seconds(
    server: FakeKubernetes, api: Api, finished_at: str, state: str, is_taken: bool
) -> None:
    a, b = Candidate(api, "pod-a_x", FakeClock()), Candidate(api, "pod-b_y", FakeClock(), Terms(), asks=True)
    for one in (a, b):
        await one.rest()
    await together([a, b], 10)
    assert (a.election.is_held(), b.leads_from) == (True, None)
    a.task.cancel()
    if finished_at:
        server.put(PODS, ended_pod("pod-a", finished_at, state))
    await b.advance(5)
    assert b.election.is_held() == is_taken
    b.task.cancel()


async def test_holder_that_renews_is_not_taken_from_whatever_its_pod_says(server: FakeKubernetes, api: Api) -> None:
    a, b = Candidate(api, "pod-a_x", FakeClock()), Candidate(api, "pod-b_y", FakeClock(), Terms(), asks=True)
    for one in (a, b):
        await one.rest()
    server.put(PODS, ended_pod("pod-a", "2023-11-14T22:13:25Z", "lastState"))
    await together([a, b], 60)
    assert (a.election.is_held(), b.leads_from) == (True, None)
    for one in (a, b):
        one.task.cancel()


async def test_next_process_in_the_same_container_takes_the_lease_at_once(api: Api) -> None:
    """Its predecessor has ended: the kubelet starts a container again only then. One in another container waits."""
    first = Candidate(api, "pod-1_x", FakeClock(), container="pod-1_")
    await first.rest()
    first.task.cancel()
    other = Candidate(api, "pod-10_y", FakeClock(), container="pod-10_")
    await other.rest()
    assert other.leads_from is None
    again = Candidate(api, "pod-1_z", FakeClock(), container="pod-1_")
    await again.rest()
    assert again.leads_from == 0
    assert again.election.is_held()
    for one in (other, again):
        one.task.cancel()


async def test_released_lease_is_taken_at_once(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a", "b") as (a, b):
        a.task.cancel()
        await a.election.release()
        assert (a.election.is_held(), holder(server)) == (False, "")
        await b.advance(3)
        assert b.election.is_held()


async def test_release_of_what_is_not_held_changes_nothing(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a", "b") as (_, b):
        writes = len(server.writes())
        await b.election.release()
        assert (holder(server), len(server.writes())) == ("a", writes)


async def test_release_without_an_answer_is_no_error(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a") as (a,):
        a.task.cancel()
        server.fail(Failure("cut"))
        await a.election.release()
        assert not a.election.is_held()


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Failure("status", 500, times=1000), id="500"),
        pytest.param(Failure("cut", times=1000), id="cut"),
        pytest.param(Failure("status", 403, reason="Forbidden", times=1000), id="forbidden"),
    ],
)
async def test_holder_that_cannot_renew_gives_up_before_others_may_take_over(server: FakeKubernetes, api: Api, failure: Failure) -> None:
    async with candidates(api, "a") as (a,):
        await a.advance(4)
        renewed_at = a.clock.time
        server.fail(failure)
        await a.advance(20)
        assert a.lost_at is not None
        assert renewed_at + 10 - 2 <= a.lost_at <= renewed_at + 10
        assert not a.election.is_held()


async def test_holder_that_gets_no_answer_at_all_gives_up_in_time(server: FakeKubernetes) -> None:
    api = connect(server.config())
    slow = patience()
    election = Election(api, KEY, "a", terms=Terms(duration_s=round(2 * slow), renew_s=0.4 * slow, pause_s=0.05, retry_s=0.05))
    await election.acquire()
    server.fail(Failure("hang", times=1000))
    begun = asyncio.get_running_loop().time()
    with pytest.raises(LeaseLost):
        await election.hold()
    assert asyncio.get_running_loop().time() - begun < 1.5 * slow
    await api.close()


async def test_outage_shorter_than_the_deadline_is_survived(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a", "b") as (a, b):
        await together([a, b], 4)
        server.fail(Failure("cut", times=1000))
        await together([a, b], 7)
        server.heal()
        await together([a, b], 60)
        assert (a.lost_at, b.leads_from) == (None, None)


async def test_never_two_lead_when_writes_are_not_answered(server: FakeKubernetes) -> None:
    apis = [connect(server.config()) for _ in range(2)]
    started = [Candidate(one, name, FakeClock()) for one, name in zip(apis, "ab", strict=True)]
    unanswered = False

    def fail(request: Request) -> Failure | None:
        # Both can read; what they write is done, and they do not hear of it.
        return Failure("cut_after") if unanswered and request.is_write else None

    server.on_request = fail
    await together(started, 10)
    unanswered = True
    await together(started, 9)
    unanswered = False
    await together(started, 60)
    assert sum(one.election.is_held() for one in started) == 1
    for one in started:
        one.task.cancel()
    for api in apis:
        await api.close()


async def test_lease_counts_from_before_the_request(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a") as (a,):

        def take_long(request: Request) -> None:
            a.clock.pass_time(4)

        server.on_request = take_long
        await a.clock.advance(2)
        await a.rest()
        assert (a.clock.time, a.lost_at) == (6, None)
        a.clock.pass_time(5.9)
        assert a.election.is_held()
        a.clock.pass_time(0.2)
        assert not a.election.is_held()


async def test_renewal_whose_answer_was_lost_is_no_loss(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a") as (a,):
        server.fail(Failure("cut_after", verb="patch"))
        await a.advance(30)
        assert a.lost_at is None
        assert a.election.is_held()


async def test_holder_that_was_stopped_for_long_does_not_act_when_it_wakes(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a", "b") as (a, b):
        await together([a, b], 5)
        a.clock.pass_time(40)
        assert not a.election.is_held()
        await b.advance(40)
        assert b.election.is_held()
        await a.advance(1)
        assert a.lost_at is not None
        assert holder(server) == "b"


async def test_lease_that_somebody_else_has_taken_is_lost_at_the_next_renewal(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a") as (a,):
        server.patch(LEASES, KEY, {"spec": {"holderIdentity": "intruder"}})
        await a.advance(3)
        assert a.lost_at is not None
        assert "intruder has it" in a.why
        assert holder(server) == "intruder"


async def test_lease_that_was_deleted_is_made_anew(server: FakeKubernetes, api: Api) -> None:
    async with candidates(api, "a") as (a,):
        server.remove(LEASES, KEY)
        await a.advance(6)
        assert (a.lost_at, holder(server)) == (None, "a")


async def test_other_machine_s_clock_does_not_matter(server: FakeKubernetes, api: Api) -> None:
    server.put(
        LEASES,
        {
            "metadata": {"namespace": KEY[0], "name": KEY[1]},
            "spec": {"holderIdentity": "old", "leaseDurationSeconds": 15, "renewTime": "1999-01-01T00:00:00.000000Z"},
        },
    )
    async with candidates(api, "a") as (a,):
        await a.advance(14)
        assert a.leads_from is None
        await a.advance(5)
        assert a.election.is_held()


async def test_acquiring_waits_out_an_outage(server: FakeKubernetes, api: Api) -> None:
    server.fail(Failure("status", 503, times=5))
    async with candidates(api, "a") as (a,):
        await a.advance(20)
        assert a.election.is_held()


@pytest.mark.parametrize(
    ("duration", "renew", "retry"),
    [
        pytest.param(10, 10, 2, id="renews for the whole duration"),
        pytest.param(15, 2, 2, id="one try"),
        pytest.param(15, 10, 0, id="no pause"),
    ],
)
def test_unsafe_times_are_refused(duration: int, renew: float, retry: float) -> None:
    with pytest.raises(ValueError, match="retry_s <= pause_s < renew_s < duration_s"):
        Terms(duration_s=duration, renew_s=renew, pause_s=retry, retry_s=retry)
