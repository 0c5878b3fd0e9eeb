"""The poller and its snapshot, against a slurmrestd in this process."""

import asyncio
import time

import pytest

from controllers.slurm.client import SlurmClient, SlurmUnreachable
from controllers.slurm.snapshot import Poller
from controllers.slurm.structs import Jobs
from tests.support.controllers.slurm.fake_rest import JOB, JOBS, NODE, NODES, FakeRest
from tests.support.fakes.clock import eventually
from tests.support.patience import patience


@pytest.mark.anyio
async def test_poller_keeps_the_last_reading_through_an_outage(client: SlurmClient, rest: FakeRest) -> None:
    changed: list[frozenset[str]] = []
    now = 1000.0
    poller = Poller(client, lambda: now, changed.append, jobs_wait_s=60 * patience())
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
    poller = Poller(client, lambda: now, changed.append, jobs_wait_s=60 * patience())
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
    poller = Poller(client, time.monotonic, wants_jobs=lambda: wanted, jobs_wait_s=60 * patience())
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
async def test_nodes_are_known_without_the_job_list_which_is_requested_again(
    client: SlurmClient, rest: FakeRest, what: str, said: str
) -> None:
    now = 1000.0
    poller = Poller(client, lambda: now, jobs_wait_s=60 * patience())
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
async def test_slow_job_list_delays_no_reading_of_nodes_and_runs_alone(client: SlurmClient, rest: FakeRest) -> None:
    """As with 50,000 waiting jobs: the nodes stay fresh, and slurmctld is not asked for a second list meanwhile."""
    poller = Poller(client, time.monotonic, jobs_wait_s=0.05)
    rest.answers["jobs/"] = (200, {**JOBS, "jobs": [JOB]})
    rest.delays["/jobs/"] = listed = asyncio.Event()
    for _ in range(20):
        snapshot = await asyncio.wait_for(poller.fresh(), 5 * patience())
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
async def test_full_lists_are_requested_before_an_action_and_periodically(client: SlurmClient, rest: FakeRest) -> None:
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
