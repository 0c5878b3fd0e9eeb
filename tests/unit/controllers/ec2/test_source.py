"""The program asks EC2 (moto) about machines, and their Kubernetes nodes get what it says. Without an answer, nothing changes."""

import asyncio
from pathlib import Path

import pytest

from controllers.ec2 import metrics
from controllers.ec2.client import MOST_IDS, Ec2
from controllers.ec2.source import Source
from controllers.runtime.structs import KUBE_NODES
from names import writers
from slurm.causes import EC2_INSTANCE, EC2_MAINTENANCE, EC2_RETIREMENT, EC2_SYSTEM
from tests.support.controllers.ec2.site import NOW, REGION, Site, over_the_network, site
from tests.support.fakes.requests import Failure
from tests.unit.controllers.ec2.answers import CREDENTIALS, other_ec2, refusal

pytestmark = pytest.mark.anyio
REBOOT = ("system-reboot", "scheduled reboot")


async def test_event_is_told_and_taken_back(tmp_path: Path) -> None:
    async with site(tmp_path, 2) as (made, instances):
        made.amazon.schedule(instances[1], REBOOT)
        assert await made.look()
        assert (made.told(0), made.told(1)) == ({}, {EC2_MAINTENANCE: ("True", "SystemReboot")})
        assert made.conditions(1)["Ready"]["status"] == "True", "conditions of others stay"
        assert instances[1] in made.conditions(1)[EC2_MAINTENANCE]["message"]
        assert (made.begin(0), made.begin(1)) == (None, "2026-02-08T00:00:00Z")
        writes = len(made.server.writes())
        made.later_s = 3600
        assert await made.look()
        assert len(made.server.writes()) == writes, "what has not changed is not written"
        made.amazon.schedule(instances[1], (REBOOT[0], f"[Completed] {REBOOT[1]}"))
        assert await made.look()
        assert made.told(1) == {EC2_MAINTENANCE: ("False", "NoEvent")}
        assert made.begin(1) is None
        assert made.conditions(1)[EC2_MAINTENANCE]["lastTransitionTime"] == "2026-02-03T05:05:06Z"
        assert {one.query["fieldManager"] for one in made.server.writes()} == {writers.EC2}


async def test_failed_checks_are_told_after_the_grace(tmp_path: Path) -> None:
    async with site(tmp_path, 2, grace_s=300) as (made, instances):
        made.amazon.impair(instances[0], "system_status", since=NOW - 200)
        made.amazon.impair(instances[1], "instance_status")
        assert await made.look()
        assert (made.told(0), made.told(1)) == ({EC2_SYSTEM: ("Unknown", "Impaired")}, {EC2_INSTANCE: ("Unknown", "Impaired")})
        made.later_s = 100
        assert await made.look()
        assert (made.told(0)[EC2_SYSTEM], made.told(1)[EC2_INSTANCE]) == (("True", "Impaired"), ("Unknown", "Impaired"))
        made.later_s = 300
        made.amazon.impair(instances[0], "system_status", "insufficient-data")
        assert await made.look()
        assert (made.told(0)[EC2_SYSTEM], made.told(1)[EC2_INSTANCE]) == (("True", "Impaired"), ("True", "Impaired"))


async def test_instance_that_ec2_does_not_know_hides_no_other(tmp_path: Path) -> None:
    async with site(tmp_path, 3) as (made, instances):
        for each in instances:
            made.amazon.schedule(each, REBOOT)
        assert await made.look()
        made.amazon.schedule(instances[2], ("instance-stop", "hardware"))
        made.amazon.forget(instances[0])
        assert await made.look()
        assert made.told(0) == {EC2_MAINTENANCE: ("True", "SystemReboot")}, "what was known of it stays"
        assert made.told(2)[EC2_RETIREMENT] == ("True", "InstanceStop")


async def test_more_machines_than_one_question_may_name(tmp_path: Path) -> None:
    async with site(tmp_path, MOST_IDS + 1) as (made, instances):
        for each in instances:
            made.amazon.schedule(each, REBOOT)
        assert await made.look()
        assert all(made.told(number) == {EC2_MAINTENANCE: ("True", "SystemReboot")} for number in range(len(instances)))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(refusal("503 Unavailable", "RequestLimitExceeded", "Request limit exceeded."), "RequestLimitExceeded", id="throttled"),
        pytest.param(refusal("500 Error", "InternalError", "An internal error has occurred"), "InternalError", id="internal-error"),
        pytest.param(refusal("403 Forbidden", "UnauthorizedOperation", "Not authorized"), "ec2:DescribeInstanceStatus", id="no-right"),
        pytest.param(refusal("401 Unauthorized", "AuthFailure", "AWS was not able to validate"), "AuthFailure", id="bad-credentials"),
        pytest.param(b"", "DescribeInstanceStatus", id="connection-cut"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "DescribeInstanceStatus", id="no-xml"),
    ],
)
async def test_without_an_answer_nothing_changes_and_readiness_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, words: str
) -> None:
    async with site(tmp_path) as (made, instances):
        made.amazon.schedule(instances[0], REBOOT)
        assert await made.look()
        assert made.source.fault() == ""
        writes = len(made.server.writes())
        await assert_silence_changes_nothing(made, monkeypatch, answer, words)
        assert len(made.server.writes()) == writes


async def assert_silence_changes_nothing(made: Site, monkeypatch: pytest.MonkeyPatch, answer: bytes, words: str) -> None:
    async with other_ec2(monkeypatch, answer) as ec2:
        source = Source(made.settings, made.api, ec2, made.clock)
        following = asyncio.create_task(source.machines.run())
        await source.machines.synced.wait()
        with over_the_network():
            assert not await source.look()
        following.cancel()
        assert words in source.fault()


async def test_missing_credentials_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(tmp_path) as (made, _):
        for name in CREDENTIALS:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        source = Source(made.settings, made.api, Ec2(REGION), made.clock)
        following = asyncio.create_task(source.machines.run())
        await source.machines.synced.wait()
        assert not await source.look()
        following.cancel()
        assert "no AWS credentials: give cluster.ec2.roleArn" in source.fault()


def answered_at() -> float:
    return next(sample.value for each in metrics.ANSWERED.collect() for sample in each.samples)


async def test_missing_right_to_a_step_is_a_fault_and_no_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def missing_rights(_: Ec2, instance: str, actions: list[str]) -> list[str]:
        return [f"ec2:{action}" for action in actions if action == "RebootInstances"]

    monkeypatch.setattr(Ec2, "missing_rights", missing_rights)  # moto's accounts may do everything
    async with site(tmp_path) as (made, _):
        metrics.ANSWERED.set(0)
        assert await made.look()
        assert "does not allow ec2:RebootInstances" in made.source.fault()
        assert answered_at() == NOW


async def test_refused_write_is_tried_again(tmp_path: Path) -> None:
    async with site(tmp_path) as (made, instances):
        made.amazon.schedule(instances[0], REBOOT)
        made.server.on_request = lambda one: Failure("status", 403) if one.is_write else None
        metrics.ANSWERED.set(0)
        assert await made.look(), "EC2 has answered, so the next look is due as ever"
        assert "could not be written" in made.source.fault()
        assert answered_at() == NOW
        made.server.on_request = None
        assert await made.look()
        assert made.told(0) == {EC2_MAINTENANCE: ("True", "SystemReboot")}


async def test_machine_replaced_while_ec2_answers_inherits_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as (made, instances):
        made.amazon.schedule(instances[0], REBOOT)
        await made.look()
        [other] = made.amazon.launch()
        made.server.remove(KUBE_NODES, ("", "m0"))
        made.put_machine(0, other)
        assert await made.source.look()  # it may have heard of either; the old one's uid is refused
        assert await made.look()
        assert made.told(0) == {}
