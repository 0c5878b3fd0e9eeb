"""Watches and lists that break: whatever happens to the connection, the copy agrees with the server again."""

import asyncio
import random
from collections.abc import Callable

import pytest

from controllers.runtime.api import Api
from controllers.runtime.structs import PODS
from tests.support.fakes.clock import eventually, settle
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.fakes.objects import Fault
from tests.support.fakes.requests import Failure
from tests.unit.controllers.runtime.examples import pod
from tests.unit.controllers.runtime.watched import Watched, agrees, phase_of

pytestmark = pytest.mark.anyio


def cut(server: FakeKubernetes) -> None:
    server.cut_watches()


def expire_while_cut(server: FakeKubernetes) -> None:
    server.expire()
    server.cut_watches()


def gone_in_watch(server: FakeKubernetes) -> None:
    server.end_watches(Fault(410, "Expired", "too old"))


def error_in_watch(server: FakeKubernetes) -> None:
    server.end_watches(Fault(504, "Timeout", "Too large resource version"))


def end(server: FakeKubernetes) -> None:
    server.end_watches()


def nonsense(server: FakeKubernetes) -> None:
    server.say(b"<html>\n")


def half_an_event(server: FakeKubernetes) -> None:
    server.say(b'{"type":"ADDED","object":{"metadata"')
    server.cut_watches()


def refuse_for_a_while(server: FakeKubernetes) -> None:
    server.cut_watches()
    server.fail(Failure("status", 503, times=5))


def too_many_for_a_while(server: FakeKubernetes) -> None:
    server.cut_watches()
    server.fail(Failure("status", 429, reason="TooManyRequests", times=5))


def gone_in_list(server: FakeKubernetes) -> None:
    server.end_watches(Fault(410, "Expired", "too old"))
    server.fail(Failure("status", 410, reason="Expired", continued=True))


def gone_in_the_first_page(server: FakeKubernetes) -> None:
    server.end_watches(Fault(410, "Expired", "too old"))
    server.fail(Failure("status", 410, reason="Expired", verb="list", times=3))


def cut_between_pages(server: FakeKubernetes) -> None:
    server.end_watches(Fault(410, "Expired", "too old"))
    server.fail(Failure("cut", continued=True, times=3))


BREAKS: dict[str, tuple[Callable[[FakeKubernetes], None], bool]] = {
    "connection cut in the watch": (cut, False),
    "watch ended by the server": (end, False),
    "connection cut in an event": (half_an_event, False),
    "429 for a while": (too_many_for_a_while, False),
    "410 when the watch begins": (expire_while_cut, True),
    "410 in the watch": (gone_in_watch, True),
    "504 in the watch": (error_in_watch, True),
    "a line without sense": (nonsense, True),
    "503 for a while": (refuse_for_a_while, True),
    "410 in a list page": (gone_in_list, True),
    "410 in the first page": (gone_in_the_first_page, True),
    "connection cut between pages": (cut_between_pages, True),
}
"""How it breaks, and whether only a list can mend it."""


@pytest.mark.parametrize(("breaks", "lists_again"), [pytest.param(*case, id=name) for name, case in BREAKS.items()])
async def test_nothing_is_missed(server: FakeKubernetes, api: Api, breaks: Callable[[FakeKubernetes], None], lists_again: bool) -> None:
    for number in range(5):
        server.put(PODS, pod(f"gpu-{number}"))
    async with Watched(api).running() as watched:
        await eventually(lambda: server.watching == 1)
        lists = sum(request.verb == "list" for request in server.requests)
        breaks(server)
        server.remove(PODS, ("slurm", "gpu-1"))
        server.put(PODS, pod("gpu-2", phase="Running"))
        server.put(PODS, pod("gpu-7"))
        await eventually(agrees(watched, server))

        def has_listed() -> bool:
            return sum(request.verb == "list" for request in server.requests) > lists

        await eventually(lambda: has_listed() == lists_again and server.watching == 1)
        assert sorted(watched.heard[5:]) == ["+gpu-7", "-gpu-1", "~gpu-2"]


async def test_server_that_refuses_connections_is_found_again(server: FakeKubernetes, api: Api) -> None:
    async with Watched(api).running() as watched:
        await eventually(lambda: server.watching == 1)
        await server.refuse()
        server.put(PODS, pod("gpu-0"))
        await settle()
        assert watched.names == set()
        await server.accept()
        await eventually(agrees(watched, server))


async def test_start_without_a_server_waits_for_it(server: FakeKubernetes, api: Api) -> None:
    await server.refuse()
    async with Watched(api).running() as watched:
        await settle()
        assert (watched.informer.last_contact, watched.informer.silent_s()) == (None, float("inf"))
        await server.accept()
        await watched.informer.synced.wait()
        assert watched.informer.silent_s() < 60


@pytest.mark.parametrize("seed", range(20))
async def test_copy_agrees_after_any_history(server: FakeKubernetes, api: Api, seed: int) -> None:
    chance = random.Random(seed)
    breaks = [break_it for break_it, _ in BREAKS.values()]
    async with Watched(api, indexes={"phase": phase_of}).running() as watched:
        for _ in range(60):
            name = f"gpu-{chance.randrange(8)}"
            what = chance.random()
            if what < 0.5:
                server.put(PODS, pod(name, phase=chance.choice(["Pending", "Running"])))
            elif what < 0.75 and ("slurm", name) in server.keys(PODS):
                server.remove(PODS, ("slurm", name))
            elif what < 0.85:
                chance.choice(breaks)(server)
            else:
                for _ in range(chance.choice([1, 10, 100])):
                    await asyncio.sleep(0)
        server.heal()
        await eventually(agrees(watched, server))
        informer = watched.informer
        indexed = {item.metadata.name: phase for phase in ("Pending", "Running") for item in informer.by_index("phase", phase)}
        assert indexed == {item.metadata.name: item.status.phase for item in informer.store.values()}
        # What the handler was told adds up to what is there.
        told: set[str] = set()
        for line in watched.heard:
            assert (line[1:] in told) == (line[0] != "+")
            told = told - {line[1:]} if line[0] == "-" else told | {line[1:]}
        assert told == watched.names
