import asyncio
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.runtime.api import Api
from controllers.runtime.errors import ApiError, Conflict, NotFound, Refused, Unreachable
from controllers.runtime.structs import CONFIG_MAPS, PODS
from controllers.runtime.writer import Deletion, NotLeading, NotTried, Patch, TokenBucket, Writer
from tests.support.fakes.clock import FakeClock, eventually
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.fakes.requests import Failure
from tests.unit.controllers.runtime.examples import config_map, pod


def maps(number: int) -> list[dict[str, Any]]:
    """So many ConfigMaps."""
    return [config_map(f"map-{index}", {}) for index in range(number)]


@given(
    rate=st.sampled_from([0.5, 1.0, 10.0, 300.0]),
    burst=st.integers(min_value=1, max_value=50),
    waits=st.lists(st.floats(min_value=0, max_value=3), min_size=1, max_size=80),
)
def test_rate_holds_over_any_time(rate: float, burst: int, waits: list[float]) -> None:
    bucket = TokenBucket(rate, burst, 0)
    now, sent = 0.0, list[float]()
    for wait in waits:
        now += wait
        now += bucket.reserve(now)
        sent.append(now)
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            assert last - first + 1 <= burst + rate * (sent[last] - sent[first]) + 1 + 1e-6


def test_rested_bucket_gives_its_burst_at_once_and_no_more() -> None:
    bucket = TokenBucket(10, 3, 0)
    assert [round(bucket.reserve(100), 3) for _ in range(5)] == [0, 0, 0, 0.1, 0.2]


def test_bucket_that_is_held_gives_nothing_before_its_time() -> None:
    bucket = TokenBucket(10, 3, 0)
    bucket.hold(0, 5)
    assert [round(bucket.reserve(1), 3) for _ in range(4)] == [4, 4, 4, 4.1]
    bucket.hold(2, 1)
    assert bucket.reserve(2) > 3


@pytest.mark.anyio
async def test_every_write_carries_our_name(server: FakeKubernetes, api: Api) -> None:
    writer = Writer(api)
    made = await writer.create(CONFIG_MAPS, config_map("a", {"x": "1"}))
    await writer.apply(CONFIG_MAPS, config_map("b", {}))
    await writer.patch(CONFIG_MAPS, ("slurm", "a"), {"data": {"x": "2"}})
    server.put(PODS, pod("gpu-0"))
    status = await writer.patch_status(PODS, ("slurm", "gpu-0"), {"phase": "Running"})
    await writer.delete(CONFIG_MAPS, Deletion(("slurm", "a"), made.metadata.uid))
    assert status.status.phase == "Running"
    assert server.keys(CONFIG_MAPS) == {("slurm", "b")}
    assert [request.verb for request in server.requests] == ["create", "apply", "patch", "patch", "delete"]
    assert {request.query.get("fieldManager") for request in server.requests if request.verb != "delete"} == {"slipway"}
    assert server.requests[1].query["force"] == "true"


@pytest.mark.anyio
async def test_status_of_an_object_that_has_changed_is_a_conflict(server: FakeKubernetes, api: Api) -> None:
    version = server.put(PODS, pod("gpu-0"))["metadata"]["resourceVersion"]
    writer = Writer(api)
    await writer.patch_status(PODS, ("slurm", "gpu-0"), {"phase": "Running"}, version)
    with pytest.raises(Conflict):
        await writer.patch_status(PODS, ("slurm", "gpu-0"), {"phase": "Failed"}, version)


@pytest.mark.anyio
async def test_batch_gives_each_item_its_result_in_order(server: FakeKubernetes, api: Api) -> None:
    server.put(CONFIG_MAPS, config_map("map-3", {}))
    results = await Writer(api).create_many(CONFIG_MAPS, maps(20))
    assert [type(result) is Conflict for result in results] == [index == 3 for index in range(20)]
    names = [None if isinstance(result, ApiError) else result.metadata.name for result in results]
    assert names == [None if index == 3 else f"map-{index}" for index in range(20)]


@pytest.mark.anyio
async def test_empty_batch_is_no_work(server: FakeKubernetes, api: Api) -> None:
    assert await Writer(api).create_many(CONFIG_MAPS, []) == []
    assert server.requests == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("failure", "error"),
    [
        pytest.param(Failure("status", 403, reason="Forbidden", message="exceeded quota", times=math.inf), Refused, id="quota"),
        pytest.param(Failure("status", 500, times=math.inf), Refused, id="webhook fails"),
        pytest.param(Failure("status", 404, reason="NotFound", times=math.inf), NotFound, id="namespace is gone"),
        pytest.param(Failure("cut", times=math.inf), Unreachable, id="no answer"),
    ],
)
async def test_batch_that_fails_at_once_is_tried_with_one_item(
    server: FakeKubernetes, api: Api, failure: Failure, error: type[ApiError]
) -> None:
    server.fail(failure)
    results = await Writer(api).create_many(CONFIG_MAPS, maps(100))
    assert len(server.requests) == 1
    assert [type(result) for result in results] == [error] + [NotTried] * 99


@pytest.mark.anyio
async def test_batch_grows_and_stops_where_it_fails(server: FakeKubernetes, api: Api) -> None:
    server.on_request = lambda request: Failure("status", 403) if request.content()["metadata"]["name"] == "map-9" else None
    results = await Writer(api).create_many(CONFIG_MAPS, maps(100))
    assert len(server.keys(CONFIG_MAPS)) == 14
    assert [type(result) for result in results[15:]] == [NotTried] * 85
    assert type(results[9]) is Refused


@pytest.mark.anyio
async def test_what_is_gone_already_does_not_stop_a_batch_of_deletions(server: FakeKubernetes, api: Api) -> None:
    uids = [server.put(CONFIG_MAPS, one)["metadata"]["uid"] for one in maps(10)]
    server.remove(CONFIG_MAPS, ("slurm", "map-0"))
    server.remove(CONFIG_MAPS, ("slurm", "map-4"))
    server.put(CONFIG_MAPS, config_map("map-4", {"a": "successor"}))
    results = await Writer(api).delete_many(CONFIG_MAPS, [Deletion(("slurm", f"map-{at}"), uid) for at, uid in enumerate(uids)])
    assert [type(result) for result in results if result] == [NotFound, Conflict]
    assert server.keys(CONFIG_MAPS) == {("slurm", "map-4")}


@pytest.mark.anyio
async def test_batch_of_patches(server: FakeKubernetes, api: Api) -> None:
    for one in maps(5):
        server.put(CONFIG_MAPS, one)
    patches = [Patch(("slurm", f"map-{at}"), {"data": {"n": str(at)}}) for at in range(6)]
    results = await Writer(api).patch_many(CONFIG_MAPS, patches)
    assert type(results[5]) is NotFound
    assert [server.get(CONFIG_MAPS, ("slurm", f"map-{at}"))["data"]["n"] for at in range(5)] == ["0", "1", "2", "3", "4"]


@pytest.mark.anyio
async def test_no_more_writes_at_once_than_allowed(server: FakeKubernetes, api: Api) -> None:
    at_once = most = 0
    post = api.create

    async def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            return await post(*arguments, **options)
        finally:
            at_once -= 1

    api.create = counted  # pyright: ignore[reportAttributeAccessIssue]
    await Writer(api, at_once=4, rate_per_s=10_000, burst=10_000).create_many(CONFIG_MAPS, maps(40))
    assert most == 4


@pytest.mark.anyio
async def test_writes_wait_for_the_rate(server: FakeKubernetes, api: Api) -> None:
    clock = FakeClock()
    writer = Writer(api, rate_per_s=1, burst=3, at_once=50, clock=clock.clock)
    batch = asyncio.gather(*(writer.create(CONFIG_MAPS, one) for one in maps(6)))
    await eventually(lambda: len(server.requests) == 3 and clock.sleeping == 3)
    await clock.advance(1)
    await eventually(lambda: len(server.requests) == 4)
    await clock.advance(2)
    await batch


@pytest.mark.anyio
async def test_all_writes_wait_when_the_server_asks_for_it(server: FakeKubernetes, api: Api) -> None:
    clock = FakeClock()
    writer = Writer(api, clock=clock.clock)
    server.fail(Failure("status", 429, reason="TooManyRequests", retry_after_s=5))
    with pytest.raises(Refused):
        await writer.create(CONFIG_MAPS, config_map("a", {}))
    waiting = asyncio.create_task(writer.create(CONFIG_MAPS, config_map("b", {})))
    await eventually(lambda: clock.sleeping == 1)
    await clock.advance(4.9)
    assert len(server.requests) == 1
    await clock.advance(0.1)
    await waiting


@pytest.mark.anyio
async def test_nothing_is_sent_by_a_process_that_does_not_lead(server: FakeKubernetes, api: Api) -> None:
    clock = FakeClock()
    leads = True
    writer = Writer(api, rate_per_s=1, burst=1, may_write=lambda: leads, clock=clock.clock)
    await writer.create(CONFIG_MAPS, config_map("a", {}))
    waiting = asyncio.create_task(writer.create(CONFIG_MAPS, config_map("b", {})))
    await eventually(lambda: clock.sleeping == 1)
    leads = False
    await clock.advance(1)
    with pytest.raises(NotLeading):
        await waiting
    assert server.keys(CONFIG_MAPS) == {("slurm", "a")}


@pytest.mark.anyio
async def test_batch_of_applies_makes_what_is_missing_and_changes_what_is_there(server: FakeKubernetes, api: Api) -> None:
    server.put(CONFIG_MAPS, config_map("map-1", {"theirs": "1"}))
    results = await Writer(api).apply_many(CONFIG_MAPS, [config_map(f"map-{index}", {"ours": "2"}) for index in range(3)])
    assert [result.metadata.name for result in results if not isinstance(result, ApiError)] == ["map-0", "map-1", "map-2"]
    assert server.get(CONFIG_MAPS, ("slurm", "map-1"))["data"] == {"theirs": "1", "ours": "2"}


@pytest.mark.anyio
async def test_batch_of_applies_ends_with_the_first_that_is_refused(server: FakeKubernetes, api: Api) -> None:
    server.fail(Failure("status", 403, reason="Forbidden", verb="apply", times=100))
    results = await Writer(api).apply_many(CONFIG_MAPS, maps(10))
    assert (len(server.requests), len(results)) == (1, 10)
    assert all(isinstance(result, NotTried) for result in results[1:])
