import asyncio

import pytest

from controllers.runtime.api import Api
from controllers.runtime.informer import Informer, Pace
from controllers.runtime.structs import PODS, Pod, Resource
from tests.support.fakes.clock import FakeClock, eventually
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.fakes.objects import Fault
from tests.support.fakes.requests import Failure
from tests.support.patience import patience
from tests.unit.controllers.runtime.examples import pod
from tests.unit.controllers.runtime.watched import QUICK, Watched, agrees

pytestmark = pytest.mark.anyio


def node_of(item: Pod) -> list[str]:
    """An index."""
    return [item.spec.node_name] if item.spec.node_name else []


async def test_list_in_pages_then_watch(server: FakeKubernetes, api: Api) -> None:
    for number in range(5):
        server.put(PODS, pod(f"gpu-{number}"))
    async with Watched(api).running() as watched:
        await watched.informer.synced.wait()
        assert watched.heard == [f"+gpu-{number}" for number in range(5)]
        server.put(PODS, pod("gpu-0", phase="Running"))
        server.put(PODS, pod("gpu-5"))
        server.remove(PODS, ("slurm", "gpu-1"))
        await eventually(lambda: watched.heard[5:] == ["~gpu-0", "+gpu-5", "-gpu-1"])
    assert [request.verb for request in server.requests] == ["list", "list", "list", "watch"]


async def test_synced_waits_for_the_whole_list(server: FakeKubernetes, api: Api) -> None:
    for number in range(5):
        server.put(PODS, pod(f"gpu-{number}"))
    server.fail(Failure("hang", continued=True))
    async with Watched(api).running() as watched:
        await eventually(lambda: len(watched.heard) == 2)
        assert not watched.informer.synced.is_set()
        server.heal()
        await watched.informer.synced.wait()
        assert len(watched.names) == 5


async def test_only_what_is_selected_is_held_and_what_leaves_the_selection_goes(server: FakeKubernetes, api: Api) -> None:
    server.put(PODS, pod("gpu-0", labels={"set": "gpu"}))
    server.put(PODS, pod("cpu-0", labels={"set": "cpu"}))
    server.put(PODS, pod("gpu-9", labels={"set": "gpu"}, namespace="other"))
    async with Watched(api, namespace="slurm", labels="set=gpu").running() as watched:
        await eventually(lambda: server.watching == 1)
        server.put(PODS, pod("cpu-0", labels={"set": "gpu"}))
        server.put(PODS, pod("gpu-0", labels={"set": "cpu"}))
        await eventually(lambda: watched.heard == ["+gpu-0", "+cpu-0", "-gpu-0"])


async def test_replaced_object_is_told_as_gone_and_new(server: FakeKubernetes, api: Api) -> None:
    server.put(PODS, pod("gpu-0"))
    async with Watched(api).running() as watched:
        await eventually(lambda: server.watching == 1)
        server.expire()
        server.cut_watches()
        server.remove(PODS, ("slurm", "gpu-0"))
        server.put(PODS, pod("gpu-0"))
        await eventually(lambda: watched.heard == ["+gpu-0", "-gpu-0", "+gpu-0"])


async def test_index_follows_changes(server: FakeKubernetes, api: Api) -> None:
    server.put(PODS, pod("gpu-0", node="m-0"))
    server.put(PODS, pod("gpu-1"))
    async with Watched(api, indexes={"node": node_of}).running() as watched:
        await eventually(lambda: server.watching == 1)

        def on(node: str) -> list[str]:
            return [item.metadata.name for item in watched.informer.by_index("node", node)]

        assert (on("m-0"), on("m-1")) == (["gpu-0"], [])
        server.put(PODS, pod("gpu-1", node="m-1"))
        server.put(PODS, pod("gpu-0", node="m-1"))
        await eventually(lambda: sorted(on("m-1")) == ["gpu-0", "gpu-1"] and on("m-0") == [])


async def test_bookmark_moves_the_place_where_the_next_watch_begins(server: FakeKubernetes, api: Api) -> None:
    async with Watched(api).running() as watched:
        await eventually(lambda: server.watching == 1)
        server.objects.version += 1000
        contact = watched.informer.last_contact
        server.bookmark()
        await eventually(lambda: watched.informer.last_contact != contact)
        server.cut_watches()
        await eventually(lambda: [request.verb for request in server.requests] == ["list", "watch", "watch"])
        assert server.requests[-1].query["resourceVersion"] == str(server.objects.version)
        assert watched.heard == []


async def test_slow_list_is_given_up_at_its_deadline(server: FakeKubernetes, api: Api) -> None:
    server.fail(Failure("hang", verb="list"))
    async with Watched(api, Pace(list_deadline_s=0.05 * patience(), backoff_base_s=0.001)).running() as watched:
        async with asyncio.timeout(5 * patience()):
            await watched.informer.synced.wait()


async def test_silent_watch_is_broken_off_and_begun_again(server: FakeKubernetes, api: Api) -> None:
    async with Watched(api, Pace(silence_s=0.1, backoff_base_s=0.001)).running() as watched:
        await eventually(lambda: server.watching == 1)
        server.freeze()
        server.put(PODS, pod("gpu-0"))
        await eventually(lambda: sum(request.verb == "watch" for request in server.requests) >= 2)
        assert watched.names == set()
        server.freeze(False)
        await eventually(agrees(watched, server))


async def test_list_is_read_anew_every_so_often(server: FakeKubernetes, api: Api) -> None:
    clock = FakeClock()
    async with Watched(api, Pace(relist_s=600), clock=clock.clock).running() as watched:
        await eventually(lambda: server.watching == 1)
        assert int(server.requests[-1].query["timeoutSeconds"]) <= 480
        # Watches that lose every event: nothing but a list tells.
        server.freeze()
        server.put(PODS, pod("gpu-0"))
        for second in range(0, 700, 10):
            await clock.advance(10)
            server.cut_watches()
            await eventually(lambda: server.watching == 1 or clock.sleeping == 1)
            if second < 500:
                assert watched.heard == []
        assert agrees(watched, server)()
    assert sum(request.verb == "list" for request in server.requests) == 2


async def test_failures_are_waited_out_longer_each_time(server: FakeKubernetes, api: Api) -> None:
    clock = FakeClock(random=lambda: 0.999999)
    server.fail(Failure("status", 500, times=7))
    waits: list[float] = []
    async with Watched(api, Pace(backoff_base_s=1, backoff_most_s=10), clock=clock.clock).running() as watched:
        for _ in range(7):
            await eventually(lambda: clock.sleeping == 1)
            waits.append(round(clock.next_s(), 3))
            await clock.advance(clock.next_s())
        await watched.informer.synced.wait()
    assert waits == [1, 2, 4, 8, 10, 10, 10]


async def test_watch_that_is_refused_after_each_list_does_not_hammer(server: FakeKubernetes, api: Api) -> None:
    clock = FakeClock()
    server.fail(Failure("status", 403, reason="Forbidden", verb="watch", times=1000))
    async with Watched(api, Pace(backoff_base_s=1, backoff_most_s=64), clock=clock.clock).running():
        for _ in range(100):
            await eventually(lambda: clock.sleeping == 1)
            await clock.advance(1)
    assert 4 <= sum(request.verb == "list" for request in server.requests) <= 9


async def test_server_says_how_long_to_wait(server: FakeKubernetes, api: Api) -> None:
    clock = FakeClock()
    server.fail(Failure("status", 429, reason="TooManyRequests", retry_after_s=30))
    async with Watched(api, Pace(backoff_base_s=1), clock=clock.clock).running() as watched:
        await eventually(lambda: clock.sleeping == 1)
        await clock.advance(29)
        assert len(server.requests) == 1
        await clock.advance(1)
        await watched.informer.synced.wait()


async def test_unfit_object_keeps_its_last_fit_state(server: FakeKubernetes, api: Api) -> None:
    server.put(PODS, pod("gpu-0", phase="Running"))
    server.put(PODS, pod("gpu-1"))
    unfit = {**pod("gpu-0"), "status": {"phase": 7}}
    async with Watched(api).running() as watched:
        await eventually(lambda: server.watching == 1)
        server.put(PODS, unfit)
        server.put(PODS, pod("gpu-2"))
        await eventually(lambda: "gpu-2" in watched.names)
        held = watched.informer.get(("slurm", "gpu-0"))
        assert held is not None
        assert held.status.phase == "Running"
        server.end_watches(Fault(410, "Expired", "too old"))
        await eventually(lambda: sum(request.verb == "watch" for request in server.requests) == 2)
        assert watched.names == {"gpu-0", "gpu-1", "gpu-2"}
        assert "-gpu-0" not in watched.heard


async def test_error_in_a_handler_ends_the_informer(server: FakeKubernetes, api: Api) -> None:
    def fail(old: Pod | None, new: Pod | None) -> None:
        raise ZeroDivisionError

    informer = Informer(api, PODS)
    informer.on_change(fail)
    server.put(PODS, pod("gpu-0"))
    with pytest.raises(ZeroDivisionError):
        await informer.run()


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "watched"])
async def test_undecodable_object_is_reported_once_until_it_is_good_or_gone(server: FakeKubernetes, api: Api, listed: bool) -> None:
    watched = Watched(api)
    told: list[str] = []
    watched.informer.on_unread(lambda unread: told.append(f"{unread.metadata.name}: {unread.fault}"))
    odd = {**pod("gpu-0"), "spec": {"nodeName": 7}}
    if listed:
        server.put(PODS, odd)
    async with watched.running():
        await watched.informer.synced.wait()
        server.put(PODS, pod("gpu-1"))
        if not listed:
            server.put(PODS, odd)
        await eventually(lambda: watched.names == {"gpu-1"} and len(told) == 1)
        assert "gpu-0: Expected `str | null`, got `int` - at `$.spec.nodeName`" in told
        server.expire()
        server.end_watches()
        server.put(PODS, pod("gpu-2"))
        await eventually(lambda: watched.names == {"gpu-1", "gpu-2"})
        assert len(told) == 1, "another list brings no news of it"
        server.put(PODS, pod("gpu-0"))
        await eventually(lambda: watched.names == {"gpu-0", "gpu-1", "gpu-2"})
        assert watched.informer.unread == {}
        server.put(PODS, odd)
        await eventually(lambda: len(told) == 2 and watched.names == {"gpu-0", "gpu-1", "gpu-2"})
        server.remove(PODS, ("slurm", "gpu-0"))
        await eventually(lambda: watched.names == {"gpu-1", "gpu-2"})
        assert watched.informer.unread == {}


async def test_kind_that_does_not_exist_yet_is_waited_for(server: FakeKubernetes, api: Api) -> None:
    unknown = Resource("slipway.dev/v1alpha1", "nodesets", "NodeSet", Pod)
    server.fail(Failure("status", 404, reason="NotFound", plural="nodesets", times=3))
    informer = Informer(api, unknown, pace=QUICK)
    task = asyncio.create_task(informer.run())
    await informer.synced.wait()
    task.cancel()
