"""What EC2's answer means for a Kubernetes node: which conditions it gets, keeps and loses."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controllers.ec2.statuses import instance_of, plan_conditions, read_status, to_text
from controllers.runtime.structs import NodeCondition
from slurm.causes import EC2_INSTANCE, EC2_MAINTENANCE, EC2_RETIREMENT, EC2_SYSTEM

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC).timestamp()
GRACE_S = 300
AT = to_text(NOW)
BEFORE = "2026-02-01T00:00:00Z"
READY = NodeCondition("Ready", "True")
INSTANCE = "i-0abc"


def answer(events: tuple[tuple[str, str], ...] = (), state: str = "running", **checks: tuple[str, int | None]) -> dict[str, Any]:
    """One element of EC2's answer; a check is its status, and how long it fails, in seconds."""
    found: dict[str, Any] = {"InstanceId": INSTANCE, "InstanceState": {"Name": state}}
    found["Events"] = [{"Code": code, "Description": words, "NotBefore": datetime(2026, 2, 8, tzinfo=UTC)} for code, words in events]
    for name in ("SystemStatus", "InstanceStatus"):
        status, for_s = checks.get(name, ("ok", None))
        since = {"ImpairedSince": datetime.fromtimestamp(NOW - for_s, UTC)} if for_s is not None else {}
        found[name] = {"Status": status, "Details": [{"Name": "reachability", **since}]}
    return found


def given(type_: str, status: str, since: str = BEFORE) -> NodeCondition:
    return NodeCondition(type_, status, "Old", "old", since)


STOP, REBOOT = ("instance-stop", "hardware degradation"), ("system-reboot", "scheduled reboot")
CASES = [
    pytest.param(answer(), (), None, id="nothing-is-said-of-a-good-machine"),
    pytest.param(answer((STOP,)), (), {EC2_RETIREMENT: ("True", "InstanceStop", AT)}, id="stop"),
    pytest.param(answer((("instance-retirement", ""),)), (), {EC2_RETIREMENT: ("True", "InstanceRetirement", AT)}, id="retirement"),
    pytest.param(answer((("instance-reboot", ""),)), (), {EC2_MAINTENANCE: ("True", "InstanceReboot", AT)}, id="reboot"),
    pytest.param(answer((REBOOT,)), (), {EC2_MAINTENANCE: ("True", "SystemReboot", AT)}, id="system-reboot"),
    pytest.param(answer((("system-maintenance", ""),)), (), {EC2_MAINTENANCE: ("True", "SystemMaintenance", AT)}, id="maintenance"),
    pytest.param(answer((("new-thing", ""),)), (), {EC2_MAINTENANCE: ("True", "NewThing", AT)}, id="event-that-nobody-knows-yet"),
    pytest.param(
        answer((STOP, REBOOT)),
        (),
        {EC2_RETIREMENT: ("True", "InstanceStop", AT), EC2_MAINTENANCE: ("True", "SystemReboot", AT)},
        id="two-sorts",
    ),
    pytest.param(answer((("system-reboot", "[Completed] scheduled reboot"),)), (), None, id="event-that-is-over"),
    pytest.param(answer((("instance-stop", "[Canceled] hardware"),)), (), None, id="event-that-is-called-off"),
    pytest.param(
        answer((("system-reboot", "[Completed] scheduled reboot"),)),
        (given(EC2_MAINTENANCE, "True"),),
        {EC2_MAINTENANCE: ("False", "NoEvent", AT)},
        id="completed-ends-it",
    ),
    pytest.param(answer(), (given(EC2_RETIREMENT, "True"),), {EC2_RETIREMENT: ("False", "NoEvent", AT)}, id="gone-ends-it"),
    pytest.param(answer((STOP,)), (given(EC2_RETIREMENT, "True"),), {EC2_RETIREMENT: ("True", "InstanceStop", BEFORE)}, id="time-stays"),
    pytest.param(answer((STOP,)), (given(EC2_RETIREMENT, "False"),), {EC2_RETIREMENT: ("True", "InstanceStop", AT)}, id="again"),
    pytest.param(answer(SystemStatus=("impaired", 300)), (), {EC2_SYSTEM: ("True", "Impaired", AT)}, id="system-impaired"),
    pytest.param(answer(InstanceStatus=("impaired", 300)), (), {EC2_INSTANCE: ("True", "Impaired", AT)}, id="instance-impaired"),
    pytest.param(answer(SystemStatus=("impaired", 299)), (), {EC2_SYSTEM: ("Unknown", "Impaired", AT)}, id="impaired-for-too-short"),
    pytest.param(answer(SystemStatus=("impaired", None)), (), {EC2_SYSTEM: ("Unknown", "Impaired", AT)}, id="impaired-since-nobody-knows"),
    pytest.param(
        answer(SystemStatus=("impaired", None)),
        (given(EC2_SYSTEM, "Unknown"),),
        {EC2_SYSTEM: ("True", "Impaired", AT)},
        id="impaired-as-first-seen",
    ),
    pytest.param(
        answer(SystemStatus=("impaired", 10)), (given(EC2_SYSTEM, "True"),), {EC2_SYSTEM: ("True", "Impaired", BEFORE)}, id="again-impaired"
    ),
    pytest.param(answer(), (given(EC2_SYSTEM, "True"),), {EC2_SYSTEM: ("False", "Passed", AT)}, id="ok-ends-it"),
    pytest.param(answer(SystemStatus=("insufficient-data", None)), (given(EC2_SYSTEM, "True"),), None, id="insufficient-data-ends-nothing"),
    pytest.param(answer(InstanceStatus=("initializing", None)), (given(EC2_INSTANCE, "True"),), None, id="initializing-ends-nothing"),
    pytest.param(answer(SystemStatus=("initializing", None)), (), None, id="initializing-is-no-fault"),
    pytest.param(answer(state="stopped"), (given(EC2_SYSTEM, "True"),), None, id="stopped-has-no-checks"),
    pytest.param(answer(state="shutting-down", SystemStatus=("impaired", 999)), (), None, id="ending-has-no-checks"),
]


@pytest.mark.parametrize(("raw", "present", "wanted"), CASES)
def test_conditions_are_what_ec2_says(
    raw: dict[str, Any], present: tuple[NodeCondition, ...], wanted: dict[str, tuple[str, str, str]] | None
) -> None:
    found = plan_conditions(read_status(raw), (READY, *present), GRACE_S, NOW)
    said = {each.type: (each.status, each.reason, each.last_transition_time) for each in found} if found is not None else None
    assert said == wanted
    if found is not None:
        assert plan_conditions(read_status(raw), (READY, *found), GRACE_S, NOW) is None, "nothing is written twice"


def test_condition_of_another_kind_is_brought_along() -> None:
    """A server-side apply takes away what it leaves out."""
    kept = given(EC2_RETIREMENT, "False")
    found = plan_conditions(read_status(answer((REBOOT,))), (READY, kept), GRACE_S, NOW)
    assert found is not None
    assert {each.type for each in found} == {EC2_RETIREMENT, EC2_MAINTENANCE}


def test_message_has_the_evidence() -> None:
    raw = answer((STOP, ("instance-retirement", "")))
    raw["Events"][1].pop("NotBefore")
    found = plan_conditions(read_status(raw), (), GRACE_S, NOW)
    assert found is not None
    assert found[0].message == (
        "instance-retirement of i-0abc; instance-stop of i-0abc not before 2026-02-08T00:00:00Z: hardware degradation"
    )


def test_order_of_events_in_the_answer_changes_nothing() -> None:
    """EC2 gives them in any order."""
    there, back = answer((STOP, ("instance-retirement", "b"))), answer((("instance-retirement", "b"), STOP))
    assert plan_conditions(read_status(there), (), GRACE_S, NOW) == plan_conditions(read_status(back), (), GRACE_S, NOW)


@pytest.mark.parametrize(
    ("provider_id", "instance"),
    [
        pytest.param("aws:///eu-west-1a/i-0abc", "i-0abc", id="zone"),
        pytest.param("aws:///eu-west-1-lon-1a/i-0abc", "i-0abc", id="local-zone"),
        pytest.param("aws:///us-east-1a/i-0abc", None, id="other-region"),
        pytest.param("aws:///eu-west-1a/fargate-ip-10-0-0-1", None, id="fargate"),
        pytest.param("gce://project/zone/i-0abc", None, id="other-cloud"),
        pytest.param("", None, id="none"),
    ],
)
def test_instance_is_read_from_the_provider_id(provider_id: str, instance: str | None) -> None:
    assert instance_of(provider_id, "eu-west-1") == instance
