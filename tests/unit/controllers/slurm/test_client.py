"""The client against a server that plays slurmrestd over real HTTP: each bad answer is an error of its own kind, never an empty list."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from controllers.slurm.client import SlurmClient, SlurmError, SlurmRefused, SlurmUnauthorized, SlurmUnreachable
from controllers.slurm.snapshot import Poller
from controllers.slurm.structs import Jobs
from controllers.slurm.tokens import TokenSource
from tests.fakes.clock import eventually

NODE = {"name": "gpu-0", "state": ["IDLE", "CLOUD"], "reason": "", "partitions": ["main"]}
NODES = {"nodes": [NODE], "last_update": {"set": True, "infinite": False, "number": 100}, "errors": []}
JOBS: dict[str, Any] = {"jobs": [], "errors": []}
JOB = {"job_id": 7, "job_state": ["RUNNING"], "nodes": "gpu-[0-1]", "end_time": {"set": True, "infinite": False, "number": 500}}
FAULT = {"errors": [{"description": "Failure to update node x", "error_number": 2018, "error": "Invalid node name specified"}]}


@dataclass
class FakeRest:
    """Answers by path; `answer` may give a status and a body, None to cut the connection, or wait for ever."""

    versions: tuple[str, ...] = ("v0.0.45",)
    answers: dict[str, tuple[int, Any]] = field(default_factory=lambda: {"nodes/": (200, NODES), "jobs/": (200, JOBS)})
    behave: Callable[[str], str] = lambda _: ""
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list[Any])
    wall: float = 1_800_000_000.0
    tokens: list[str] = field(default_factory=list[str])
    delays: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    """By target, what an answer waits for."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                method, target, _ = lines[0].split(" ")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.tokens.append(headers.get("x-slurm-user-token", ""))
                self.asked.append((method, target, json.loads(body) if body else {}))
                what = self.behave(target)
                if what == "cut":
                    return
                if what == "hang":
                    await asyncio.Event().wait()
                if target in self.delays:
                    await self.delays[target].wait()
                status, content = self.answer(target)
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(raw)}\r\nContent-Type: application/json\r\n\r\n".encode() + raw)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, target: str) -> tuple[int, Any]:
        if target == "/jobs/":
            return self.answers["jobs/"]
        _, _, version, rest = target.split("/", 3)
        if version not in self.versions:
            return 404, b"Unable to find requested URL"
        path = rest.partition("?")[0]
        if path == "ping/":
            return 200, {"pings": [{"hostname": "c", "responding": True}], "errors": []}
        return self.answers.get(path, (200, {"errors": []}))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def rest() -> FakeRest:
    return FakeRest()


@pytest.fixture
async def client(rest: FakeRest, tmp_path: Path) -> AsyncIterator[SlurmClient]:
    key = tmp_path / "key"
    key.write_bytes(b"key")
    server = await asyncio.start_server(rest.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with SlurmClient(url, TokenSource(key, lambda: rest.wall), deadline_s=0.5, jobs_url=url) as client:
        yield client
    server.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("versions", "used"),
    [pytest.param(("v0.0.44", "v0.0.45"), "v0.0.45", id="both"), pytest.param(("v0.0.44",), "v0.0.44", id="only-the-older")],
)
async def test_best_version_that_the_server_has_is_used(client: SlurmClient, rest: FakeRest, versions: tuple[str, ...], used: str) -> None:
    rest.versions = versions
    await client.nodes()
    assert rest.asked[-1][1] == f"/slurm/{used}/nodes/"


@pytest.mark.anyio
async def test_server_without_a_version_that_is_read_here_is_said(client: SlurmClient, rest: FakeRest) -> None:
    rest.versions = ("v0.0.39",)
    with pytest.raises(SlurmUnreachable, match=r"none of v0\.0\.45, v0\.0\.44"):
        await client.nodes()


@pytest.mark.anyio
async def test_unchanged_is_none_and_asks_with_the_time(client: SlurmClient, rest: FakeRest) -> None:
    rest.answers["nodes/"] = (304, b"")
    assert await client.nodes(100) is None
    assert rest.asked[-1][1].endswith("nodes/?update_time=100")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        pytest.param(200, {**NODES, "nodes": []}, SlurmUnreachable, id="empty-list"),
        pytest.param(404, {"errors": []}, SlurmRefused, id="not-found"),
        pytest.param(500, {"errors": []}, SlurmUnreachable, id="server-error"),
        pytest.param(502, b"<html>bad gateway</html>", SlurmUnreachable, id="proxy"),
        pytest.param(511, {"errors": []}, SlurmUnauthorized, id="token-refused"),
        pytest.param(200, b"<html>hello</html>", SlurmUnreachable, id="no-json"),
        pytest.param(200, {**NODES, "nodes": [{"name": 7}]}, SlurmUnreachable, id="other-shape"),
        pytest.param(200, {**NODES, **FAULT}, SlurmRefused, id="errors-in-a-good-answer"),
    ],
)
async def test_bad_answer_is_never_a_list(client: SlurmClient, rest: FakeRest, status: int, body: Any, kind: type[SlurmError]) -> None:
    rest.answers["nodes/"] = (status, body)
    with pytest.raises(kind):
        await client.nodes()


@pytest.mark.anyio
async def test_reason_that_is_not_utf8_costs_its_bad_byte_only(client: SlurmClient, rest: FakeRest) -> None:
    """`reason="$(dmesg | tail -1 | cut -c1-60)"` cuts a character in two; slurmrestd hands the byte on (measured on 26.05)."""
    text = json.dumps({**NODES, "nodes": [{**NODE, "reason": "fan *is loud"}]})
    rest.answers["nodes/"] = (200, text.encode().replace(b"*", b"\xc3"))
    found = await client.nodes()
    assert found is not None
    assert [one.reason for one in found.nodes] == ["fan \ufffdis loud"]


@pytest.mark.anyio
@pytest.mark.parametrize("what", ["hang", "cut"])
async def test_no_answer_ends_within_the_deadline(client: SlurmClient, rest: FakeRest, what: str) -> None:
    rest.behave = lambda target: what if "nodes" in target else ""
    with pytest.raises(SlurmUnreachable):
        await asyncio.wait_for(client.nodes(), 5)


@pytest.mark.anyio
async def test_refused_token_is_not_used_again(client: SlurmClient, rest: FakeRest) -> None:
    await client.nodes()
    rest.answers["nodes/"] = (511, {"errors": []})
    with pytest.raises(SlurmUnauthorized):
        await client.nodes()
    rest.wall += 2  # far from the end of the token's life: only the refusal makes a new one
    rest.answers["nodes/"] = (200, NODES)
    await client.nodes()
    assert len(set(rest.tokens)) == 2
    assert rest.tokens[-1] != rest.tokens[0]


@pytest.mark.anyio
async def test_many_nodes_are_changed_by_one_request(client: SlurmClient, rest: FakeRest) -> None:
    await client.update_nodes(["gpu-1", "gpu-0"], "DRAIN", "slipway: nodeset update")
    posts = [one for one in rest.asked if one[0] == "POST"]
    assert posts == [("POST", "/slurm/v0.0.45/nodes/", {"name": ["gpu-[0-1]"], "state": ["DRAIN"], "reason": "slipway: nodeset update"})]


@pytest.mark.anyio
async def test_refused_change_says_what_slurm_said(client: SlurmClient, rest: FakeRest) -> None:
    rest.answers["nodes/"] = (422, FAULT)
    with pytest.raises(SlurmRefused, match="Invalid node name specified"):
        await client.update_nodes(["x"], "DRAIN", "r")


def refusing(*numbers: int) -> tuple[int, Any]:
    """What slurmrestd says of jobs that it does not requeue."""
    return 422, {"errors": [{"description": f"Requeue JobId={at} failed", "error_number": number} for at, number in enumerate(numbers)]}


@pytest.mark.anyio
@pytest.mark.parametrize("number", [2017, 2020, 2021, 2024], ids=["unknown", "completing", "done", "waiting"])
async def test_job_that_has_left_needs_no_requeue(client: SlurmClient, rest: FakeRest, number: int) -> None:
    rest.answers["jobs/requeue"] = refusing(number)
    await client.requeue_jobs(["7"])


@pytest.mark.anyio
@pytest.mark.parametrize("numbers", [(2037,), (2039,), (2017, 2039), ()], ids=["no-requeue", "no-batch-job", "one-of-two", "no-reason"])
async def test_job_that_slurm_does_not_requeue_is_an_error(client: SlurmClient, rest: FakeRest, numbers: tuple[int, ...]) -> None:
    rest.answers["jobs/requeue"] = refusing(*numbers)
    with pytest.raises(SlurmRefused):
        await client.requeue_jobs(["7", "8"])


@pytest.mark.anyio
async def test_server_that_cannot_requeue_is_said(client: SlurmClient, rest: FakeRest) -> None:
    rest.versions = ("v0.0.44",)
    rest.answers["jobs/requeue"] = (404, b"Unable to find requested URL")
    with pytest.raises(SlurmRefused, match=r"serves v0\.0\.44, which cannot requeue jobs"):
        await client.requeue_jobs(["7"])


@pytest.mark.anyio
async def test_poller_keeps_the_last_reading_through_an_outage(client: SlurmClient, rest: FakeRest) -> None:
    changed: list[frozenset[str]] = []
    now = 1000.0
    poller = Poller(client, lambda: now, changed.append)
    first = await poller.fresh()
    assert changed == [frozenset({"gpu-0"})]
    now += 1
    rest.answers["nodes/"] = (304, b"")
    second = await poller.poll()
    assert (second.nodes, second.asked_at) == (first.nodes, 1001.0)
    rest.answers["nodes/"] = (500, {"errors": []})
    now += 20
    with pytest.raises(SlurmUnreachable):
        await poller.fresh()
    kept = poller.snapshot
    assert kept is not None
    assert (kept.nodes, kept.asked_at, kept.jobs) == (second.nodes, second.asked_at, second.jobs)
    assert poller.age_s() == 20
    assert "500" in poller.error
    rest.answers["nodes/"] = (200, {**NODES, "nodes": [{**NODE, "state": ["IDLE", "CLOUD", "DRAIN"]}]})
    assert "DRAIN" in (await poller.fresh()).nodes["gpu-0"].state.flags
    assert changed[-1] == frozenset({"gpu-0"})
    assert poller.error == ""


@pytest.mark.anyio
async def test_poller_asks_half_as_often_at_rest(client: SlurmClient, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    is_at_rest = False

    async def sleep(seconds: float) -> None:
        nonlocal is_at_rest
        pauses.append(seconds)
        is_at_rest = len(pauses) == 1
        if len(pauses) == 3:
            raise asyncio.CancelledError

    monkeypatch.setattr("controllers.slurm.snapshot.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await Poller(client, lambda: 1000.0, wants_jobs=lambda: False, is_at_rest=lambda: is_at_rest).run()
    assert pauses == [0.5, 1.0, 0.5]


def lists_of_jobs(rest: FakeRest) -> int:
    """How many were asked for."""
    return sum(target == "/jobs/" for _, target, _ in rest.asked)


@pytest.mark.anyio
async def test_nodes_whose_jobs_change_are_told(client: SlurmClient, rest: FakeRest) -> None:
    now = 1000.0
    changed: list[frozenset[str]] = []
    poller = Poller(client, lambda: now, changed.append)
    await poller.fresh()
    rest.answers["jobs/"] = (200, {**JOBS, "jobs": [JOB, {"job_id": 8, "job_state": ["PENDING"], "nodes": ""}]})
    rest.answers["nodes/"] = (304, b"")
    now += 30
    snapshot = await poller.fresh()
    assert changed[-1] == frozenset({"gpu-0", "gpu-1"})
    assert snapshot.last_job_end("gpu-1") == 500
    assert snapshot.last_job_end("gpu-9") is None
    told = len(changed)
    now += 30
    again = await poller.fresh()
    assert (again.jobs, again.jobs_asked_at) == (snapshot.jobs, now), "the list is newer, although it says the same"
    assert len(changed) == told


@pytest.mark.anyio
async def test_jobs_are_asked_for_while_somebody_wants_them(client: SlurmClient, rest: FakeRest) -> None:
    wanted = False
    poller = Poller(client, time.monotonic, wants_jobs=lambda: wanted)
    rest.answers["jobs/"] = (200, {**JOBS, "jobs": [JOB]})
    assert (await poller.fresh()).jobs == ()
    assert lists_of_jobs(rest) == 0
    wanted = True
    assert [job.job_id for job in (await poller.fresh()).jobs] == [7]
    wanted = False
    assert (await poller.poll()).jobs == ()
    wanted = True
    assert [job.job_id for job in (await poller.fresh()).jobs] == [7]
    assert lists_of_jobs(rest) == 2


@pytest.mark.anyio
@pytest.mark.parametrize(("what", "said"), [("cut", "slurmrestd at"), ("", "answered 500")], ids=["cut", "500"])
async def test_nodes_are_known_without_the_list_of_jobs_which_is_asked_for_again(
    client: SlurmClient, rest: FakeRest, what: str, said: str
) -> None:
    now = 1000.0
    poller = Poller(client, lambda: now)
    rest.answers["jobs/"] = (200, {**JOBS, "jobs": [JOB]})
    assert (await poller.fresh()).jobs
    rest.answers["jobs/"] = (500, {"errors": []})
    rest.behave = lambda target: what if target == "/jobs/" else ""
    now += 30
    snapshot = await poller.fresh()
    assert (snapshot.jobs, bool(snapshot.nodes), poller.error) == ((), True, "")
    assert said in snapshot.jobs_error
    rest.answers["jobs/"] = (200, {**JOBS, "jobs": [JOB]})
    rest.behave = lambda _: ""
    asked = lists_of_jobs(rest)
    now += 29
    assert (await poller.fresh()).jobs_error == snapshot.jobs_error, "not at every turn"
    assert lists_of_jobs(rest) == asked
    now += 1
    snapshot = await poller.fresh()
    assert ([job.job_id for job in snapshot.jobs], snapshot.jobs_error) == ([7], "")


@pytest.mark.anyio
async def test_list_of_jobs_that_takes_long_holds_up_no_reading_of_nodes_and_is_the_only_one(client: SlurmClient, rest: FakeRest) -> None:
    """As with 50,000 waiting jobs: the nodes stay fresh, and slurmctld is not asked for a second list meanwhile."""
    poller = Poller(client, time.monotonic, jobs_wait_s=0.05)
    rest.answers["jobs/"] = (200, {**JOBS, "jobs": [JOB]})
    rest.delays["/jobs/"] = listed = asyncio.Event()
    for _ in range(20):
        snapshot = await asyncio.wait_for(poller.fresh(), 5)
        assert (set(snapshot.nodes), snapshot.jobs, snapshot.jobs_error) == ({"gpu-0"}, (), "")
        await poller.poll()
    assert lists_of_jobs(rest) == 1
    listed.set()
    await eventually(lambda: poller.snapshot is not None and bool(poller.snapshot.jobs))


@pytest.mark.anyio
async def test_list_of_jobs_takes_one_part_in_sixty_of_the_time(client: SlurmClient, rest: FakeRest) -> None:
    now = 1000.0
    poller = Poller(client, lambda: now)

    class Slow(SlurmClient):
        async def jobs(self) -> Jobs:
            nonlocal now
            now += 0.2
            return Jobs()

    client.__class__ = Slow
    await poller.fresh()
    again_at = poller._jobs_again_at  # pyright: ignore[reportPrivateUsage]
    assert again_at == pytest.approx(now + 12)


@pytest.mark.anyio
async def test_reading_survives_a_restart_of_slurmrestd_and_a_change_is_not_made_twice(client: SlurmClient, rest: FakeRest) -> None:
    await client.nodes()
    cuts = 2

    def behave(target: str) -> str:
        nonlocal cuts
        cuts -= 1
        return "cut" if cuts >= 0 else ""

    client._deadline_s = 10  # pyright: ignore[reportPrivateUsage]
    rest.behave = behave
    assert await client.nodes() is not None
    cuts = 1
    posts = len([one for one in rest.asked if one[0] == "POST"])
    with pytest.raises(SlurmUnreachable):
        await client.update_nodes(["gpu-0"], "DRAIN", "slipway: a test")
    assert len([one for one in rest.asked if one[0] == "POST"]) == posts + 1


@pytest.mark.anyio
async def test_everything_is_asked_for_before_something_is_done_and_after_a_while(client: SlurmClient, rest: FakeRest) -> None:
    now = 1000.0
    changed: list[frozenset[str]] = []
    poller = Poller(client, lambda: now, changed.append, wants_jobs=lambda: False)

    def since() -> list[str]:
        """Of the lists that were asked for since the last call."""
        asked = [target.rpartition("/")[2] for _, target, _ in rest.asked if target.partition("?")[0].endswith("nodes/")]
        rest.asked.clear()
        return asked

    await poller.poll()
    assert since() == [""]
    now += 1
    await poller.poll()
    assert since() == ["?update_time=100"]
    now += 1
    await poller.fresh()
    assert since() == [""]
    now += poller.whole_s - 1
    await poller.poll()
    assert since() == ["?update_time=100"]
    now += 1
    await poller.poll()
    assert since() == [""]
    assert changed == [frozenset({"gpu-0"})], "the same once more is no change"


@pytest.mark.anyio
async def test_readings_asked_for_at_the_same_time_are_one(client: SlurmClient, rest: FakeRest) -> None:
    poller = Poller(client, time.monotonic)
    await asyncio.gather(*(poller.fresh() for _ in range(5)))
    assert sum("nodes" in target for _, target, _ in rest.asked) <= 2
