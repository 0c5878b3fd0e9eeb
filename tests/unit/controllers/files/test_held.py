"""What the NodeSet controller's process knows of nodes that keep their size: which came or went, and how long the last word holds."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from controllers.files.progress import DAEMON_PODS, FileProgress, Report
from controllers.runtime.api import connect
from controllers.runtime.informer import Informer
from controllers.runtime.structs import CONFIG_MAPS, PODS
from controllers.runtime.writer import Writer
from controllers.slurm.connections import Broken
from names import conditions
from programs.config_sync import report as sidecar
from slurm.files import content_hash
from slurm.hostlists import expand
from tests.support.fakes.clock import FakeClock, eventually
from tests.support.fakes.kubernetes import FakeKubernetes

POD = ("slurm", "dev-slurmctld-0")
CONFIG = ("slurm", "dev-slurm-config")
FILES = content_hash({"slurm.conf": b"a"})
FRESH_S = 60
"""Seconds after which no file is new any more."""


class Lab:
    """A FileProgress whose looks the test takes one by one."""

    def __init__(self, server: FakeKubernetes) -> None:
        self.server, self.clock = server, FakeClock()
        self.report: Report | None = None
        self.changes: list[frozenset[str]] = []
        self.held_then: list[frozenset[str]] = []
        """What was noted when each change was told."""
        self._api = connect(server.config())
        self._maps = Informer(self._api, CONFIG_MAPS, namespace="slurm")
        self.pods = Informer(self._api, DAEMON_PODS, namespace="slurm")
        self._tasks: list[asyncio.Task[None]] = []
        self.progress = FileProgress(self._maps, self.pods, Writer(self._api), self.clock.clock, "pod", self._ask, held_changed=self._hear)

    def _hear(self, changed: frozenset[str]) -> None:
        self.changes.append(changed)
        self.held_then.append(self.progress.held)

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(informer.run()) for informer in (self._maps, self.pods)]
        await self._maps.synced.wait()
        await self.pods.synced.wait()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._api.close()

    async def say(self, held: str = "", state: str = sidecar.LIVE, files: str = FILES) -> float:
        """The sidecar says so; gives the seconds until the next look."""
        self.report = Report(files, state, "words", held)
        return await self.progress.look()

    async def silence(self) -> float:
        self.report = None
        return await self.progress.look()

    def reason(self) -> str:
        return next(
            (
                each["reason"]
                for each in self.server.get(PODS, POD)["status"].get("conditions", [])
                if each["type"] == conditions.FILES_LIVE
            ),
            "",
        )

    async def _ask(self, address: str) -> Report:
        assert address == "10.0.0.1"
        if self.report is None:
            raise Broken("no route")
        return self.report


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with FakeKubernetes() as server:
        server.put(CONFIG_MAPS, {"metadata": {"namespace": "slurm", "name": CONFIG[1]}, "data": {"slurm.conf": "a"}})
        server.put(PODS, {"metadata": {"namespace": "slurm", "name": POD[1]}, "spec": {}, "status": {"podIP": "10.0.0.1"}})
        made = Lab(server)
        async with contextlib.AsyncExitStack() as stack:
            await made.start()
            stack.push_async_callback(made.stop)
            yield made


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("words", "held", "changes"),
    [
        pytest.param([""], "", list[str](), id="none"),
        pytest.param(["a-[0-2]"], "a-[0-2]", ["a-[0-2]"], id="all-new"),
        pytest.param(["a-[0-2]", "a-[0-2]"], "a-[0-2]", ["a-[0-2]"], id="the-same-again"),
        pytest.param(["a-[0-2]", "a-2,a-1,a-0"], "a-[0-2]", ["a-[0-2]"], id="the-same-in-other-words"),
        pytest.param(["a-[0-2]", "a-[1-3]"], "a-[1-3]", ["a-[0-2]", "a-[0,3]"], id="some-come-and-some-go"),
        pytest.param(["a-0,b-0", "b-0", ""], "", ["a-0,b-0", "a-0", "b-0"], id="one-after-the-other"),
        pytest.param(["a-0", "", "a-0"], "a-0", ["a-0", "a-0", "a-0"], id="back-again"),
    ],
)
async def test_exactly_the_nodes_that_come_or_go_are_told(lab: Lab, words: list[str], held: str, changes: list[str]) -> None:
    for each in words:
        await lab.say(each)
    assert lab.progress.held == frozenset(expand(held))
    assert lab.changes == [frozenset(expand(each)) for each in changes]


@pytest.mark.anyio
async def test_nodes_are_noted_before_they_are_told(lab: Lab) -> None:
    """Whoever hears of them looks at them at once."""
    await lab.say("a-0")
    await lab.say("a-1")
    assert lab.held_then == [{"a-0"}, {"a-1"}]


@pytest.mark.anyio
async def test_sidecar_is_asked_every_few_seconds_while_nodes_keep_their_size(lab: Lab) -> None:
    settled_s = await lab.say()
    lab.clock.pass_time(FRESH_S)
    held_s = await lab.say("a-0")
    assert held_s < 5 < settled_s
    assert await lab.say() == settled_s


@pytest.mark.anyio
@pytest.mark.parametrize("state", [sidecar.LIVE, sidecar.SPREADING, sidecar.BEHIND])
async def test_nodes_count_whatever_the_slurmds_do(lab: Lab, state: str) -> None:
    await lab.say("a-0", state)
    assert lab.progress.held == {"a-0"}


@pytest.mark.anyio
async def test_live_files_are_live_while_nodes_keep_their_size(lab: Lab) -> None:
    await lab.say("a-0")
    assert lab.reason() == "Live"


@pytest.mark.anyio
async def test_sidecar_that_falls_silent_keeps_its_last_word(lab: Lab) -> None:
    await lab.say("a-0")
    lab.clock.pass_time(FRESH_S)
    wait_s = await lab.silence()
    assert (lab.progress.held, lab.reason(), wait_s < 5) == ({"a-0"}, "Delivering", True)
    await lab.say("a-0")
    assert lab.changes == [{"a-0"}]


@pytest.mark.anyio
async def test_sidecar_that_has_just_started_has_no_word_of_nodes_yet(lab: Lab) -> None:
    """It serves before it has looked at any file, and slurmctld may take minutes to start: until then, the last word holds."""
    await lab.say("a-0")
    fresh = sidecar.Report()
    await lab.say(fresh.held, fresh.state, fresh.files)
    assert (lab.progress.held, lab.changes) == ({"a-0"}, [{"a-0"}])


@pytest.mark.anyio
async def test_pod_that_goes_keeps_its_last_word(lab: Lab) -> None:
    await lab.say("a-0")
    lab.server.remove(PODS, POD)
    await eventually(lambda: not lab.pods.store)
    await lab.say()
    assert lab.progress.held == {"a-0"}


@pytest.mark.anyio
async def test_hostlist_that_makes_no_sense_changes_nothing(lab: Lab) -> None:
    await lab.say("a-0")
    for text in ("a-[", "a-[3-1]", "a-0,", "a[0-1]b[0-1]"):
        await lab.say(text)
    assert (lab.progress.held, lab.changes) == ({"a-0"}, [{"a-0"}])


@pytest.mark.anyio
async def test_files_of_which_the_sidecar_knows_nothing_yet_take_no_node_away(lab: Lab) -> None:
    """slurmctld still runs with the files before, against which these nodes keep their size."""
    await lab.say("a-0")
    lab.server.patch(CONFIG_MAPS, CONFIG, {"data": {"slurm.conf": "b"}})
    await lab.say("a-0")
    assert (lab.progress.held, lab.changes) == ({"a-0"}, [{"a-0"}])


@pytest.mark.parametrize(
    ("body", "held"),
    [
        pytest.param(b'{"files": "x", "state": "live", "message": "all"}', "", id="old-sidecar"),
        pytest.param(b'{"files": "x", "state": "live", "message": "all", "held": "a-[0-1]"}', "a-[0-1]", id="this-one"),
        pytest.param(b'{"files": "x", "state": "live", "message": "all", "held": "", "more": 1}', "", id="newer-sidecar"),
    ],
)
def test_report_of_any_sidecar_is_read(body: bytes, held: str) -> None:
    assert msgspec.json.decode(body, type=Report) == Report("x", "live", "all", held)
