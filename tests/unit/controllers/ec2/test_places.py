"""The program asks EC2 (moto) where machines are in its network, and labels their Kubernetes nodes as EKS would."""

from pathlib import Path

import pytest

from configs.models.topology import PRESETS
from controllers.ec2.client import MOST_IDS, Ec2, Ec2Refused
from controllers.ec2.places import plan_labels
from controllers.runtime.structs import KUBE_NODES
from tests.support.controllers.ec2.site import site

pytestmark = pytest.mark.anyio
NODES = ("nn-1", "nn-2", "nn-3")
LABELS = dict(zip(PRESETS["ec2"], NODES, strict=True))


@pytest.mark.parametrize(
    ("network_nodes", "present", "labels"),
    [
        pytest.param(NODES, {}, LABELS, id="a machine without labels"),
        pytest.param(NODES, {**LABELS, "other": "label"}, None, id="a machine that has them"),
        pytest.param(NODES, {**LABELS, PRESETS["ec2"][-1]: "nn-9"}, LABELS, id="a machine that was started elsewhere"),
        pytest.param((), LABELS, None, id="a type without a place, or an instance that does not run"),
        pytest.param((*NODES, "nn-4"), LABELS, {**LABELS, "topology.k8s.aws/network-node-layer-4": "nn-4"}, id="four layers"),
    ],
)
def test_labels_are_those_of_the_preset(network_nodes: tuple[str, ...], present: dict[str, str], labels: dict[str, str] | None) -> None:
    assert plan_labels(network_nodes, present) == labels


async def test_machines_get_their_places_and_follow_them_within_the_hour(tmp_path: Path) -> None:
    async with site(tmp_path, 3, labels_places=True) as (made, instances):
        made.amazon.place(instances[0], *NODES)
        made.amazon.place(instances[1], "nn-1", "nn-2", "nn-7")
        assert await made.look()
        assert [made.layers(number) for number in range(3)] == [list(NODES), ["nn-1", "nn-2", "nn-7"], []]
        writes = len(made.server.writes())
        made.amazon.place(instances[0], "nn-1", "nn-8", "nn-9")
        assert await made.look()
        assert len(made.server.writes()) == writes, "an answer holds for an hour"
        made.later_s = 3600
        assert await made.look()
        assert made.layers(0) == ["nn-1", "nn-8", "nn-9"]
        [other] = made.amazon.launch()
        made.amazon.place(other, *NODES)
        made.put_machine(3, other)
        assert await made.look()
        assert made.layers(3) == list(NODES), "a machine that joins is asked about at once"


async def test_labels_of_others_stay(tmp_path: Path) -> None:
    async with site(tmp_path, labels_places=True) as (made, instances):
        node = made.server.get(KUBE_NODES, ("", "m0"))
        theirs = {"metadata": {"name": "m0", "labels": {PRESETS["ec2"][0]: "theirs"}}}
        await made.api.apply(KUBE_NODES, theirs, field_manager="eks")
        made.amazon.place(instances[0], *NODES)
        assert await made.look()
        assert made.layers(0) == ["theirs"], node
        assert made.source.fault() == ""


async def test_more_machines_than_one_question_may_name_and_one_that_is_gone(tmp_path: Path) -> None:
    async with site(tmp_path, MOST_IDS + 2, labels_places=True) as (made, instances):
        for each in instances:
            made.amazon.place(each, *NODES)
        made.amazon.forget(instances[0])
        assert await made.look()
        assert [made.layers(number) for number in range(len(instances))] == [[], *[list(NODES)] * (MOST_IDS + 1)]


async def test_silence_about_places_is_a_fault_and_hides_no_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(_: Ec2, instances: list[str]) -> list[dict[str, str]]:
        raise Ec2Refused(f"DescribeInstanceTopology: RequestLimitExceeded: {len(instances)}")

    async with site(tmp_path, labels_places=True) as (made, instances):
        made.amazon.schedule(instances[0], ("system-reboot", "scheduled reboot"))
        made.amazon.place(instances[0], *NODES)
        with monkeypatch.context() as patched:
            patched.setattr(Ec2, "topology", refused)  # moto refuses nothing on demand
            assert await made.look()
        assert "RequestLimitExceeded" in made.source.fault()
        assert made.told(0)
        assert made.layers(0) == []
        assert await made.look()
        assert (made.source.fault(), made.layers(0)) == ("", list(NODES))
