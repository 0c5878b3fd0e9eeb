"""Both example stacks as the real program declares them: golden plans, and rules that hold for any plan.

`make golden` writes the golden files again; read their diff like code. tests/plan/golden.py explains what they show.
"""

import json
import re
from typing import Any, cast

import pytest

from engine.faults import SlipwayError
from engine.plan import Plan, as_json, compare, unknown_path
from engine.render import documents, yaml_text
from tests.plan.examples import objects, plan_of, pod_specs
from tests.plan.golden import render
from tests.support.configs.golden import GOLDEN, assert_golden
from tests.support.configs.stacks import EXAMPLES

MOST_RESOURCES = 500
PROTECTED = ("Namespace", "PersistentVolume", "PersistentVolumeClaim", "RandomPassword")


def named(plan: Plan, kind: str) -> set[str]:
    """The names of a kind's objects."""
    return {one.inputs["metadata"]["name"] for one in objects(plan) if one.inputs["kind"] == kind}


def test_golden_plan(stack: str, plan: Plan) -> None:
    assert_golden(f"plan/{stack}", render(as_json(plan)))


def test_each_stack_has_a_golden_plan_and_nothing_else_has() -> None:
    assert sorted(each.name for each in (GOLDEN / "plan").iterdir()) == sorted(EXAMPLES)


def test_a_plan_is_the_same_whichever_run(stack: str, plan: Plan) -> None:
    plan_of.cache_clear()
    assert as_json(plan_of(stack)) == as_json(plan)


def test_the_number_of_resources_does_not_grow_with_the_machines() -> None:
    def sized(machines: int) -> int:
        minimum = f"cluster.nodePools[0].eks.min={machines}"
        return len(plan_of("h100", f"cluster.nodePools[0].max={machines}", f"cluster.nodeSets[0].size={machines}", minimum).resources)

    assert sized(10) == sized(10_000) < MOST_RESOURCES


def test_nothing_is_read_back_from_the_cluster(plan: Plan) -> None:
    """A name computed from another resource's live output would be unknown before it is made, and differ between the two ways to deploy."""
    assert [f"{one.name}: {path}" for one in objects(plan) if (path := unknown_path(one.inputs)) is not None] == []


def test_pods_mount_only_what_the_stack_declares_or_the_user_has(plan: Plan) -> None:
    own = {
        "configMap": named(plan, "ConfigMap"),
        "secret": named(plan, "Secret"),
        "persistentVolumeClaim": named(plan, "PersistentVolumeClaim"),
    }
    theirs = {"fsx-scratch", "ldap-ca", "ldap-reader"}  # h100: storage.mounts[1].claim, and Secrets of login.ldap
    missing: list[str] = []
    for one, _, spec in pod_specs(plan):
        for volume in cast(list[dict[str, Any]], spec.get("volumes", [])):
            for source, names in own.items():
                about = volume.get(source, {})
                name = about.get("name") or about.get("secretName") or about.get("claimName")
                if name and name not in names | theirs:
                    missing.append(f"{one.name} mounts {source} {name}")
        account = spec.get("serviceAccountName")
        if account and account not in named(plan, "ServiceAccount") | {"default"}:
            missing.append(f"{one.name} runs as {account}")
    assert missing == []


def test_selectors_match_their_pods(plan: Plan) -> None:
    for one, about, _ in pod_specs(plan):
        chosen = one.inputs["spec"].get("selector", {}).get("matchLabels", {})
        assert chosen.items() <= about.get("labels", {}).items(), one.name


def test_services_select_pods_that_exist(plan: Plan) -> None:
    pods = [about.get("labels", {}) for _, about, _ in pod_specs(plan)]
    for one in objects(plan):
        if one.inputs["kind"] == "Service" and (chosen := one.inputs["spec"].get("selector")):
            assert any(chosen.items() <= labels.items() for labels in pods), one.name


def test_files_named_by_their_content_are_immutable_and_others_are_not(plan: Plan) -> None:
    for one in objects(plan):
        if one.inputs["kind"] == "ConfigMap":
            by_content = re.search(r"-[0-9a-f]{10}$", one.inputs["metadata"]["name"]) is not None
            assert bool(one.inputs.get("immutable")) == by_content, one.name


@pytest.mark.parametrize(("stack_name", "is_protected"), [pytest.param("dev", False, id="dev"), pytest.param("h100", True, id="h100")])
def test_deletion_protection_covers_storage_keys_and_their_namespace(stack_name: str, is_protected: bool) -> None:
    kept = [one for one in plan_of(stack_name).resources if one.type.rpartition(":")[2] in PROTECTED]
    assert kept
    assert {one.name: one.options.get("protect", False) for one in kept} == {one.name: is_protected for one in kept}


def test_every_object_says_whose_it_is(plan: Plan) -> None:
    for one in objects(plan):
        labels = one.inputs["metadata"].get("labels", {})
        assert labels.get("app.kubernetes.io/managed-by") == "slipway", one.name


def test_the_dev_stack_renders_to_plain_manifests() -> None:
    found = documents(plan_of("dev"))
    assert {one.key.namespace for one in found} <= {"", "slurm"}
    assert all(yaml_text(one.manifest) for one in found)


def test_rendering_h100_fails_and_names_what_only_pulumi_can_make() -> None:
    with pytest.raises(SlipwayError, match=r"(?s)run `pulumi up`:.*aws:eks/nodeGroup:NodeGroup") as caught:
        documents(plan_of("h100"))
    assert "kubernetes:helm.sh/v3:Release" in str(caught.value)


def test_a_renamed_component_without_an_alias_shows_as_a_replacement(stack: str) -> None:
    before = as_json(plan_of(stack))
    after = json.loads(json.dumps(before).replace("slipway:index:NodeSet$", "slipway:index:Renamed$"))
    ops = [one.op for one in compare(before, after) if one.op != "same"]
    assert sorted(set(ops)) == ["create", "delete"]
    assert ops.count("create") == ops.count("delete")


@pytest.mark.parametrize(
    ("override", "changed"),
    [
        pytest.param("cluster.partitions[0].maxTime=02:00:00", {"dev-slurm-config"}, id="partition-time-is-one-file"),
        pytest.param("cluster.nodeSets[0].features[0]=new", {"dev-slurm-config", "dev-cpu"}, id="feature-is-one-file-and-its-set"),
    ],
)
def test_a_change_touches_what_it_must_and_rolls_nothing(override: str, changed: set[str]) -> None:
    found = compare(as_json(plan_of("dev")), as_json(plan_of("dev", override)))
    assert {one.name for one in found if one.op != "same"} == changed
    assert {one.op for one in found} == {"same", "update"}
