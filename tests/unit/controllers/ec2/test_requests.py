"""Whether EC2 is asked for a step: whose machine it is, what was asked for before, and how much in an hour."""

from dataclasses import replace
from http import HTTPStatus

import msgspec
import pytest

from controllers.ec2.requests import HOUR_S, KEPT_S, Answer, Ask, Record, key_of, plan_request
from controllers.runtime.step_request import StepRequest
from controllers.runtime.structs import KubeNode, KubeNodeSpec, ObjectMeta, Pod, PodSpec

NOW = 1_770_091_506.0
REBOOT = StepRequest("uid/gpu-3/RebootMachine/1", "RebootMachine", "dev", "gpu", "gpu-3", "m3", "aws:///eu-west-1a/i-0abc")
REPLACE = msgspec.structs.replace(REBOOT, id="uid/gpu-3/ReplaceMachine/1", step="ReplaceMachine")
NODE = KubeNode(ObjectMeta("m3"), KubeNodeSpec(provider_id="aws:///eu-west-1a/i-0abc"))
OTHER = KubeNode(ObjectMeta("m3"), KubeNodeSpec(provider_id="aws:///eu-west-1a/i-0def"))
LABELS = {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": "gpu"}
WORKER = Pod(ObjectMeta("gpu-3", "slurm", labels=LABELS), PodSpec("m3"))
BOTH = ("RebootMachine", "ReplaceMachine")


def of(request: StepRequest, at: float = NOW - 60) -> dict[str, Record]:
    return {key_of(request): Record(request.id, request.step, "i-0abc", int(at))}


def others(number: int, at: float = NOW - 60) -> dict[str, Record]:
    return {f"k{each}": Record(f"id{each}", "ReplaceMachine", f"i-{each}", int(at)) for each in range(number)}


def changed(**fields: str) -> StepRequest:
    return msgspec.structs.replace(REBOOT, **fields)


@pytest.mark.parametrize(
    ("request_", "steps", "node", "pod", "records", "wanted"),
    [
        pytest.param(REBOOT, BOTH, NODE, WORKER, {}, "RebootInstances, recorded", id="reboot"),
        pytest.param(REPLACE, BOTH, NODE, WORKER, {}, "TerminateInstances, recorded", id="replace"),
        pytest.param(REBOOT, BOTH, NODE, WORKER, of(REBOOT), "OK", id="reboot-is-never-asked-for-twice"),
        pytest.param(REPLACE, BOTH, NODE, WORKER, of(REPLACE), "TerminateInstances", id="termination-may-be-asked-for-twice"),
        pytest.param(REPLACE, BOTH, NODE, WORKER, of(REBOOT), "TerminateInstances, recorded", id="another-step-is-another-request"),
        pytest.param(REPLACE, BOTH, None, None, of(REPLACE), "OK", id="replaced-meanwhile"),
        pytest.param(REPLACE, BOTH, OTHER, WORKER, of(REPLACE), "OK", id="replaced-under-the-same-name"),
        pytest.param(REBOOT, BOTH, OTHER, WORKER, of(REBOOT), "OK", id="reboot-then-replaced"),
        pytest.param(REBOOT, BOTH, OTHER, WORKER, {}, "CONFLICT", id="another-machine-of-that-name"),
        pytest.param(REBOOT, BOTH, None, WORKER, {}, "CONFLICT", id="no-such-machine"),
        pytest.param(REBOOT, BOTH, NODE, None, {}, "CONFLICT", id="no-such-worker"),
        pytest.param(REBOOT, BOTH, NODE, Pod(WORKER.metadata, PodSpec("m4")), {}, "CONFLICT", id="worker-is-elsewhere"),
        pytest.param(REBOOT, BOTH, NODE, Pod(WORKER.metadata, PodSpec()), {}, "CONFLICT", id="worker-is-nowhere"),
        pytest.param(REBOOT, BOTH, NODE, Pod(ObjectMeta("gpu-3", "slurm"), PodSpec("m3")), {}, "CONFLICT", id="pod-of-somebody-else"),
        pytest.param(changed(node_set="cpu"), BOTH, NODE, WORKER, {}, "CONFLICT", id="worker-of-another-set"),
        pytest.param(changed(cluster="prod"), BOTH, NODE, WORKER, {}, "FORBIDDEN", id="another-cluster"),
        pytest.param(REBOOT, ("ReplaceMachine",), NODE, WORKER, {}, "FORBIDDEN", id="step-that-no-set-has"),
        pytest.param(changed(step="RecreatePod"), BOTH, NODE, WORKER, {}, "FORBIDDEN", id="step-that-is-not-for-machines"),
        pytest.param(REBOOT, BOTH, NODE, WORKER, others(9), "RebootInstances, recorded", id="under-the-cap"),
        pytest.param(REBOOT, BOTH, NODE, WORKER, others(10), "TOO_MANY_REQUESTS", id="at-the-cap"),
        pytest.param(REBOOT, BOTH, NODE, WORKER, others(10, NOW - HOUR_S), "RebootInstances, recorded", id="cap-of-one-hour"),
        pytest.param(REPLACE, BOTH, NODE, WORKER, {**others(9), **of(REPLACE)}, "TerminateInstances", id="repetition-is-under-no-cap"),
    ],
)
def test_ec2_is_asked_for_the_machine_of_a_worker_and_no_other(
    request_: StepRequest, steps: tuple[str, ...], node: KubeNode | None, pod: Pod | None, records: dict[str, Record], wanted: str
) -> None:
    found = plan_request(request_, "dev", "eu-west-1", steps, 10, node, pod, records, NOW)
    if isinstance(found, Answer):
        assert found.status.name == wanted, found.words
    else:
        assert found.instance == "i-0abc"
        assert f"{found.action}{', recorded' if found.record is not None else ''}" == wanted


@pytest.mark.parametrize("provider_id", ["aws:///us-east-1a/i-0abc", "gce://project/zone/name", ""])
def test_machine_that_is_no_instance_of_the_region_is_refused(provider_id: str) -> None:
    node = KubeNode(ObjectMeta("m3"), KubeNodeSpec(provider_id=provider_id))
    found = plan_request(changed(provider_id=provider_id), "dev", "eu-west-1", BOTH, 10, node, WORKER, {}, NOW)
    assert isinstance(found, Answer)
    assert found.status is HTTPStatus.UNPROCESSABLE_ENTITY


def test_old_records_go_with_the_next_one() -> None:
    records = {**others(2, NOW - KEPT_S - 1), "new": Record("id", "RebootMachine", "i-9", int(NOW))}
    found = plan_request(REBOOT, "dev", "eu-west-1", BOTH, 10, NODE, WORKER, records, NOW)
    assert isinstance(found, Ask)
    assert set(found.expired) == {"k0", "k1"}
    assert found == replace(found, record=Record(REBOOT.id, "RebootMachine", "i-0abc", int(NOW)))


def test_records_of_two_days_at_the_highest_cap_fit_into_one_config_map() -> None:
    """A ConfigMap has 1 MiB. Source: Kubernetes' documentation of ConfigMaps."""
    id_ = f"{'0' * 36}/{'s' * 30}-65535/ReplaceMachine/1770091506"
    record = msgspec.json.encode(Record(id_, "ReplaceMachine", f"i-{'0' * 17}", int(NOW)))
    assert 60 * (KEPT_S // HOUR_S) * (len(record) + 32) < 1024 * 1024 * 0.9
