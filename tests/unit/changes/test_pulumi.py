"""The output of `pulumi preview --json`, in the form of the CLI's PreviewDigest, as steps."""

import json
from collections.abc import Mapping

import pytest

from changes.pulumi import PreviewError, read_preview
from changes.story import Level, Queue, tell
from tests.unit.changes.lab import CONF, NODE_SET

URN = "urn:pulumi:dev::lab::slipway:index:SlurmCluster$kubernetes:{}::{}"


def digest(*steps: dict[str, object]) -> str:
    return json.dumps({"config": {"slipway:cluster": "{}"}, "steps": list(steps), "changeSummary": {"update": len(steps)}})


def pulumi_step(op: str, type_: str, name: str, old: Mapping[str, object] | None, new: Mapping[str, object] | None) -> dict[str, object]:
    states: dict[str, object] = {
        side: {"urn": URN.format(type_, name), "custom": True, "type": f"kubernetes:{type_}", "inputs": inputs, "outputs": {}}
        for side, inputs in (("oldState", old), ("newState", new))
        if inputs is not None
    }
    return {"op": op, "urn": URN.format(type_, name), "provider": "urn:x", "detailedDiff": None, **states}


def config_map(conf: str) -> dict[str, object]:
    about = {"name": "lab-slurm-config", "namespace": "slurm"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"slurm.conf": conf}}


def test_story_of_a_pulumi_preview_is_that_of_its_objects() -> None:
    smaller = {**NODE_SET, "spec": {**NODE_SET["spec"], "replicas": 2}}
    text = digest(
        {"op": "same", "urn": "urn:pulumi:dev::lab::pulumi:pulumi:Stack::lab-dev", "oldState": {"type": "pulumi:pulumi:Stack"}},
        pulumi_step("update", "core/v1:ConfigMap", "c", config_map(CONF), config_map(CONF.replace("cpu-[0-3]", "cpu-[0-1]"))),
        pulumi_step("update", "slipway.dev/v1alpha1:NodeSet", "cpu", NODE_SET, smaller),
    )
    steps = read_preview(text)
    told = tell(steps, Queue(unknown="not asked"))
    assert [(each.op, each.kind, each.name, each.namespace) for each in steps] == [
        ("update", "ConfigMap", "lab-slurm-config", "slurm"),
        ("update", "NodeSet", "cpu", "slurm"),
    ]
    assert told.level == Level.DANGEROUS
    assert [item.subject for item in told.items] == ["cpu-[2-3]", "partition main"]
    assert "NodeSet cpu: 4 to 2 nodes; those that go are drained first" in told.consequences


def test_replacement_is_one_step() -> None:
    steps = [
        pulumi_step(op, "slipway.dev/v1alpha1:NodeSet", "cpu", NODE_SET, NODE_SET)
        for op in ("create-replacement", "replace", "delete-replaced")
    ]
    assert [each.op for each in read_preview(digest(*steps))] == ["replace"]


def test_preview_without_steps_changes_nothing() -> None:
    assert tell(read_preview(digest()), Queue()).level == Level.NOTHING


REFUSED = {
    "no JSON": ("Previewing update (dev)", "no JSON"),
    "another JSON": ("[]", "there is no list `steps`"),
    "a failed preview": (
        json.dumps({"diagnostics": [{"severity": "error", "message": "cluster.nodeSets: is empty\n"}]}),
        "the preview failed: cluster.nodeSets: is empty",
    ),
    "steps of another form": ('{"steps": [{"urn": 3}]}', "does not have the form that the Pulumi CLI gives it"),
}


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_text_that_is_no_preview_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(PreviewError, match=words):
        read_preview(text)
