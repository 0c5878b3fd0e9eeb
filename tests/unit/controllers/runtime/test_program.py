import asyncio
import os
import signal

import pytest
from structlog.testing import capture_logs

from controllers.runtime import program
from controllers.runtime.api import Api
from controllers.runtime.lease import Election, Terms
from controllers.runtime.structs import LEASES
from tests.support.fakes.clock import FakeClock, eventually, settle
from tests.support.fakes.kubernetes import FakeKubernetes

pytestmark = pytest.mark.anyio

KEY = ("slurm", "nodeset")


class Steps:
    """What happened, in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.fail = asyncio.Event()

    def task(self, name: str) -> program.Task:
        """A task that runs until it is cancelled."""

        async def run() -> None:
            self.seen.append(f"+{name}")
            try:
                await asyncio.Event().wait()
            finally:
                self.seen.append(f"-{name}")

        return run

    async def failing(self) -> None:
        """A task that fails when told to."""
        await self.fail.wait()
        raise ZeroDivisionError("the reason")

    async def ending(self) -> None:
        """A task that just ends when told to."""
        await self.fail.wait()

    async def cancelling(self) -> None:
        """A task that something in it has cancelled."""
        await self.fail.wait()
        raise asyncio.CancelledError


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, id="SIGTERM"), pytest.param(signal.SIGINT, id="SIGINT")])
async def test_signal_ends_it_clean_and_in_order(number: int) -> None:
    steps = Steps()
    process = asyncio.create_task(program.run({"informer": steps.task("informer")}, {"worker": steps.task("worker")}))
    await eventually(lambda: len(steps.seen) == 2)
    os.kill(os.getpid(), number)
    assert await process == 0
    assert steps.seen == ["+informer", "+worker", "-worker", "-informer"]


@pytest.mark.parametrize("where", ["always", "leading"])
@pytest.mark.parametrize("how", ["failing", "ending", "cancelling"])
async def test_task_that_ends_ends_all_and_says_so(where: str, how: str) -> None:
    steps = Steps()
    bad: dict[str, program.Task] = {"bad": getattr(steps, how)}
    always = {"informer": steps.task("informer"), **(bad if where == "always" else {})}
    leading = {"worker": steps.task("worker"), **(bad if where == "leading" else {})}
    process = asyncio.create_task(program.run(always, leading))
    await eventually(lambda: len(steps.seen) == 2)
    with capture_logs() as logs:
        steps.fail.set()
        assert await process == 1
    assert steps.seen[2:] == ["-worker", "-informer"]
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert line["task"] == "bad"
    assert (how == "failing") == ("failed" in line["event"])
    assert isinstance(line.get("exc_info"), ZeroDivisionError) == (how == "failing")


async def test_lease_is_released_after_the_work_has_stopped(server: FakeKubernetes, api: Api) -> None:
    steps = Steps()
    stop = asyncio.Event()
    release = asyncio.Event()

    async def worker() -> None:
        steps.seen.append("+worker")
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()

    election = Election(api, KEY, "a")
    process = asyncio.create_task(program.run({"informer": steps.task("informer")}, {"worker": worker}, election=election, stop=stop))
    await eventually(lambda: "+worker" in steps.seen)
    stop.set()
    await settle()
    assert server.get(LEASES, KEY)["spec"]["holderIdentity"] == "a"
    assert steps.seen == ["+informer", "+worker"]
    release.set()
    assert await process == 0
    assert server.get(LEASES, KEY)["spec"]["holderIdentity"] == ""
    assert steps.seen == ["+informer", "+worker", "-informer"]


async def test_lease_that_is_won_at_the_end_is_given_back(server: FakeKubernetes, api: Api) -> None:
    steps = Steps()
    stop = asyncio.Event()

    class Late(Election):
        async def acquire(self) -> None:
            await super().acquire()
            stop.set()

    election = Late(api, KEY, "a")
    with capture_logs() as logs:
        assert await program.run({}, {"worker": steps.task("worker")}, election=election, stop=stop) == 0
    assert [line["event"] for line in logs if line["log_level"] == "error"] == []
    assert (steps.seen, server.get(LEASES, KEY)["spec"]["holderIdentity"]) == ([], "")


async def test_work_that_does_not_stop_keeps_the_lease(server: FakeKubernetes, api: Api) -> None:
    stop = asyncio.Event()
    started = asyncio.Event()
    release = asyncio.Event()

    async def stubborn() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()

    election = Election(api, KEY, "a")
    process = asyncio.create_task(program.run({}, {"stubborn": stubborn}, election=election, stop=stop, stop_s=0.02))
    await started.wait()
    stop.set()
    with capture_logs() as logs:
        assert await process == 0
    assert server.get(LEASES, KEY)["spec"]["holderIdentity"] == "a"
    assert "a task does not stop" in [line["event"] for line in logs]
    release.set()


async def test_standby_process_runs_only_its_informers_and_can_be_stopped(server: FakeKubernetes, api: Api) -> None:
    steps = Steps()
    stop = asyncio.Event()
    await Election(api, KEY, "other").acquire()
    process = asyncio.create_task(
        program.run({"informer": steps.task("informer")}, {"worker": steps.task("worker")}, election=Election(api, KEY, "me"), stop=stop)
    )
    await eventually(lambda: sum(request.verb == "get" for request in server.requests) == 2)
    stop.set()
    assert await process == 0
    assert steps.seen == ["+informer", "-informer"]
    assert server.get(LEASES, KEY)["spec"]["holderIdentity"] == "other"


async def test_lost_lease_ends_the_process(server: FakeKubernetes, api: Api) -> None:
    steps = Steps()
    clock = FakeClock()
    election = Election(api, KEY, "a", terms=Terms(), clock=clock.clock)
    process = asyncio.create_task(program.run({}, {"worker": steps.task("worker")}, election=election))
    await eventually(lambda: clock.sleeping == 1)
    server.patch(LEASES, KEY, {"spec": {"holderIdentity": "intruder"}})
    with capture_logs() as logs:
        await clock.advance(2)
        assert await process == 1
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["ending: the lease is lost"]
    assert steps.seen == ["+worker", "-worker"]
    assert server.get(LEASES, KEY)["spec"]["holderIdentity"] == "intruder"
