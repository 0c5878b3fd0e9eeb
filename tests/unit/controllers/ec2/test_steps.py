"""Requests over HTTP, as the NodeSet controller sends them, against moto: done once, refused in words, and survived at any write."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from controllers.ec2.client import Ec2
from controllers.ec2.steps import Steps
from controllers.runtime.errors import ApiError
from controllers.runtime.structs import CONFIG_MAPS, KUBE_NODES
from tests.support.controllers.ec2.site import TOKEN, Site, over_the_network, site
from tests.support.fakes.clock import eventually
from tests.support.fakes.requests import Failure
from tests.support.patience import patience
from tests.unit.controllers.ec2.answers import other_ec2, refusal

pytestmark = pytest.mark.anyio
RECORDS = ("slurm", "dev-ec2-requests")


def records(made: Site) -> dict[str, str]:
    return made.server.get(CONFIG_MAPS, RECORDS).get("data", {}) if RECORDS in made.server.keys(CONFIG_MAPS) else {}


async def test_reboot_is_done_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    async with site(tmp_path) as (made, [instance]):
        answers = [await made.ask(0, instance) for _ in range(3)]
        assert [status for status, _ in answers] == [200, 200, 200], answers
        assert made.amazon.reboots == [instance]
        made.steps = Steps(made.settings, made.api, made.ec2, made.clock)  # another process
        assert (await made.ask(0, instance))[0] == 200
        assert made.amazon.reboots == [instance]
        assert (await made.ask(0, instance, id="the next repair"))[0] == 200
        assert made.amazon.reboots == [instance, instance]


async def test_machine_is_terminated(tmp_path: Path) -> None:
    async with site(tmp_path, 2) as (made, [instance, other]):
        assert (await made.ask(0, instance, step="ReplaceMachine"))[0] == 200
        assert (await made.ask(0, instance, step="ReplaceMachine"))[0] == 200
        assert (made.amazon.state(instance), made.amazon.state(other)) == ("terminated", "running")
        made.server.remove(KUBE_NODES, ("", "m0"))
        assert (await made.ask(0, instance, step="ReplaceMachine"))[0] == 200, "it is replaced"
        assert (made.amazon.reboots, len(records(made))) == ([], 1)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({"token": "another"}, 401, id="another-token"),
        pytest.param({"token": ""}, 401, id="no-token"),
        pytest.param({"machine": "m1"}, 409, id="another-machine"),
        pytest.param({"node": "gpu-1"}, 409, id="another-worker"),
        pytest.param({"cluster": "prod"}, 403, id="another-cluster"),
        pytest.param({"step": 7}, 400, id="nonsense"),
    ],
)
async def test_what_is_refused_touches_no_machine(tmp_path: Path, changes: dict[str, Any], status: int) -> None:
    async with site(tmp_path, 2) as (made, [instance, _]):
        found, words = await made.ask(0, instance, **changes)
        assert (found, made.amazon.reboots, records(made)) == (status, [], {}), words


async def test_token_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    async with site(tmp_path) as (made, [instance]):
        made.settings.token.write_text("\n")
        assert (await made.ask(0, instance, token=""))[0] == 401
        made.settings.token.unlink()
        assert (await made.ask(0, instance, token=TOKEN))[0] == 401


async def test_cap_of_an_hour_holds_over_processes_and_ends(tmp_path: Path) -> None:
    async with site(tmp_path, 3, max_per_hour=2) as (made, instances):
        assert [(await made.ask(number, instances[number]))[0] for number in range(2)] == [200, 200]
        made.steps = Steps(made.settings, made.api, made.ec2, made.clock)
        status, words = await made.ask(2, instances[2])
        assert (status, made.amazon.reboots) == (429, instances[:2])
        assert "cluster.ec2.maxPerHour" in words
        made.later_s = 3601
        assert (await made.ask(2, instances[2]))[0] == 200


async def test_request_that_ec2_refuses_may_be_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(tmp_path) as (made, [instance]):
        unauthorized = refusal("403 Forbidden", "UnauthorizedOperation", "You are not authorized to perform this operation.")
        status, words = await ask_other(made, monkeypatch, unauthorized, instance)
        assert (status, records(made)) == (502, {})
        assert "docs/operate/remedies.md" in words
        assert (await made.ask(0, instance))[0] == 200
        assert made.amazon.reboots == [instance]


@pytest.mark.parametrize(
    "answer", [pytest.param(b"", id="cut"), pytest.param(refusal("500 Error", "InternalError", "An internal error"), id="internal-error")]
)
async def test_reboot_whose_answer_is_lost_is_accepted_and_never_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    """It may come at any time, so the controller has to hold the drain; a second one might come under a job."""
    async with site(tmp_path) as (made, [instance]):
        assert (await ask_other(made, monkeypatch, answer, instance))[0] == 202
        assert (await made.ask(0, instance))[0] == 200
        assert made.amazon.reboots == []


async def test_two_requests_at_once_are_one_reboot(tmp_path: Path) -> None:
    async with site(tmp_path) as (made, [instance]):
        answers = await asyncio.gather(*(made.ask(0, instance) for _ in range(5)))
        assert (made.amazon.reboots, {status for status, _ in answers}) == ([instance], {200})


async def test_api_server_that_does_not_answer_in_time_means_no_reboot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.ec2.steps.DECIDED_S", 0.2)
    async with site(tmp_path) as (made, [instance]):
        made.server.fail(Failure("hang", plural="pods"))
        assert (await made.ask(0, instance))[0] == 503
        assert (made.amazon.reboots, records(made)) == ([], {})


async def test_record_that_cannot_be_read_means_no_reboot(tmp_path: Path) -> None:
    async with site(tmp_path) as (made, [instance]):
        made.server.put(CONFIG_MAPS, {"metadata": {"namespace": "slurm", "name": RECORDS[1]}, "data": {"a": "b"}})
        status, words = await made.ask(0, instance)
        assert (status, made.amazon.reboots) == (503, [])
        assert RECORDS[1] in words


@pytest.mark.parametrize("what", ["cut_after", "slow"])
async def test_record_whose_answer_is_lost_is_followed_by_one_reboot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: Any) -> None:
    async with site(tmp_path) as (made, [instance]):
        await made.look()  # the connection is there
        slow = patience()
        with monkeypatch.context() as patched:
            patched.setattr("controllers.ec2.steps.DECIDED_S", slow if what == "slow" else 3 * slow)
            made.server.fail(Failure(what, verb="create", plural="configmaps", seconds=1.5 * slow if what == "slow" else 0))
            assert (await made.ask(0, instance))[0] == 503
        await eventually(lambda: len(records(made)) == 1)
        assert made.amazon.reboots == []
        assert [(await made.ask(0, instance))[0] for _ in range(2)] == [200, 200]
        assert made.amazon.reboots == [instance]


@pytest.mark.parametrize("step", ["RebootMachine", "ReplaceMachine"])
@pytest.mark.parametrize("what", ["cut", "cut_after"])
@pytest.mark.parametrize("at", range(3))
async def test_process_that_ends_at_any_write_never_reboots_twice(tmp_path: Path, step: str, what: Any, at: int) -> None:
    """The writes of a request are the record and EC2's call. Whatever was lost, a repetition ends it, and once at most."""
    async with site(tmp_path) as (made, [instance]):
        if at == 2:
            made.steps = Steps(made.settings, made.api, EndsAfterwards(made.ec2), made.clock)
            await made.ask(0, instance, step=step)
        else:
            made.server.fail(Failure(what, verb="create", plural="configmaps"))
            assert (await made.ask(0, instance, step=step))[0] == 503
        made.steps = Steps(made.settings, made.api, made.ec2, made.clock)
        assert (await made.ask(0, instance, step=step))[0] == 200
        if step == "ReplaceMachine":
            assert made.amazon.state(instance) == "terminated"
        else:
            assert made.amazon.reboots == ([] if (what, at != 2) == ("cut_after", True) else [instance])


class EndsAfterwards(Ec2):
    """EC2 is asked, and then the process ends."""

    def __init__(self, ec2: Ec2) -> None:
        self._ec2 = ec2

    async def reboot(self, instance: str) -> None:
        await self._ec2.reboot(instance)
        raise ApiError("the process has ended")

    async def terminate(self, instance: str) -> None:
        await self._ec2.terminate(instance)
        raise ApiError("the process has ended")


async def ask_other(made: Site, monkeypatch: pytest.MonkeyPatch, answer: bytes, instance: str) -> tuple[int, str]:
    """Asks while EC2 gives this answer."""
    with monkeypatch.context() as patched:
        async with other_ec2(patched, answer) as ec2:
            steps, made.steps = made.steps, Steps(made.settings, made.api, ec2, made.clock)
            with over_the_network():
                found = await made.ask(0, instance)
            made.steps = steps
            return found
