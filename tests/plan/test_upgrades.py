"""Upgrades from every kept release to the present code, with the stack files unchanged: no state is lost, and what rolls is written down.

`rolls.txt` of each release is written again by `make golden`: its diff says which workloads a commit makes an upgrade roll.
"""

import copy
import functools
import os
from collections.abc import Callable
from typing import Any

import pytest

from engine import project, record
from engine.plan import as_json
from tests.plan.upgrades import losses, refusals, rolls
from tests.support.configs.stacks import EXAMPLES
from tests.support.project import ROOT
from tests.support.releases import KEPT, kept_plan, keys, releases, stack_file, without_sources

SEEDS = [f"RandomBytes h100-{name} is protected" for name in ("jwt-key", "login-host-keys-seed", "munge-key", "node-host-keys-seed")]
REFUSED = {("2026-11-20", "h100"): SEEDS[:3], ("2026-11-21", "h100"): SEEDS}
"""What has to lose its protection before an upgrade: docs/start/pulumi.md says how, and that the keys stay, in their Secrets."""


@functools.cache
def present_plan(release: str, stack: str) -> dict[str, Any]:
    """The plan that the present code makes of a release's stack file."""
    file = stack_file(release, stack)
    return without_sources(as_json(record.record(project.load(ROOT, stack, tuple(keys(file)), file)).plan))


@pytest.mark.parametrize("stack", EXAMPLES)
@pytest.mark.parametrize("release", releases())
def test_upgrade_loses_no_state(release: str, stack: str) -> None:
    assert losses(kept_plan(release, stack), present_plan(release, stack)) == []


@pytest.mark.parametrize("stack", EXAMPLES)
@pytest.mark.parametrize("release", releases())
def test_upgrade_deletes_nothing_protected_but_what_is_known(release: str, stack: str) -> None:
    assert refusals(kept_plan(release, stack), present_plan(release, stack)) == REFUSED.get((release, stack), [])


@pytest.mark.parametrize("release", releases())
def test_what_an_upgrade_rolls_is_written_down(release: str) -> None:
    lines: list[str] = []
    for stack in EXAMPLES:
        found = rolls(kept_plan(release, stack), present_plan(release, stack))
        lines += [f"{stack}:", *(f"  {line}" for line in found or ["nothing rolls"])]
    file = KEPT / release / "rolls.txt"
    text = "\n".join(lines) + "\n"
    if os.environ.get("SLIPWAY_GOLDEN") == "write":
        file.write_text(text)
    assert file.read_text() == text, f"{file} differs; `make golden` if an upgrade from {release} should roll this"


Plan = dict[str, Any]


def inputs_of(plan: Plan, type_: str, name: str) -> dict[str, Any]:
    """The inputs of a resource, to be changed."""
    return resource(plan, type_, name)["inputs"]


def resource(plan: Plan, type_: str, name: str) -> dict[str, Any]:
    """A resource of a plan, by the end of its type and its name."""
    [found] = [each for each in plan["resources"] if each["custom"] and each["type"].endswith(f":{type_}") and each["name"] == name]
    return found


def rename(plan: Plan, old: str, new: str) -> None:
    """Gives a resource another URN, wherever the plan has it."""
    for each in plan["resources"]:
        each["urn"] = each["urn"].replace(old, new)
        each["dependencies"] = [urn.replace(old, new) for urn in each.get("dependencies", [])]


def claim_is_renamed(plan: Plan) -> None:
    inputs_of(plan, "PersistentVolumeClaim", "h100-home")["metadata"]["name"] = "h100-homes"


def claim_is_not_declared(plan: Plan) -> None:
    plan["resources"].remove(resource(plan, "PersistentVolumeClaim", "h100-home"))


def claim_has_another_class(plan: Plan) -> None:
    inputs_of(plan, "PersistentVolumeClaim", "h100-home")["spec"]["storageClassName"] = "other"


def component_is_renamed_without_an_alias(plan: Plan) -> None:
    rename(plan, "slipway:index:Accounting$", "slipway:index:Database$")


def key_is_longer(plan: Plan) -> None:
    inputs_of(plan, "RandomPassword", "h100-jwt-key")["length"] += 1
    resource(plan, "Secret", "h100-jwt")["options"].pop("ignoreChanges")


def key_comes_from_another_value(plan: Plan) -> None:
    secret = resource(plan, "Secret", "h100-munge")
    secret["options"].pop("ignoreChanges")
    secret["dependencies"] = [urn.replace("h100-munge-key", "h100-munge-key-2") for urn in secret["dependencies"]]


def database_s_disk_is_renamed(plan: Plan) -> None:
    [template] = inputs_of(plan, "StatefulSet", "h100-mariadb")["spec"]["volumeClaimTemplates"]
    template["metadata"]["name"] = "database"


def database_has_another_service(plan: Plan) -> None:
    inputs_of(plan, "StatefulSet", "h100-mariadb")["spec"]["serviceName"] = "database"


def workers_lose_their_homes(plan: Plan) -> None:
    volumes = inputs_of(plan, "NodeSet", "h100-h100")["spec"]["template"]["spec"]["volumes"]
    volumes[:] = [each for each in volumes if each.get("persistentVolumeClaim", {}).get("claimName") != "h100-home"]


def namespace_has_another_name(plan: Plan) -> None:
    inputs_of(plan, "Namespace", "slurm")["metadata"]["name"] = "hpc"


def cluster_has_another_identifier(plan: Plan) -> None:
    inputs_of(plan, "kubernetes", "h100")["clusterIdentifier"] = "other"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(claim_is_renamed, "PersistentVolumeClaim h100-home is replaced: metadata.name", id="claim-is-renamed"),
        pytest.param(claim_is_not_declared, "PersistentVolumeClaim h100-home is deleted", id="claim-is-not-declared"),
        pytest.param(claim_has_another_class, "PersistentVolumeClaim h100-home is replaced: spec.storageClassName", id="claim-s-class"),
        pytest.param(component_is_renamed_without_an_alias, "StatefulSet h100-mariadb is deleted", id="no-alias"),
        pytest.param(
            component_is_renamed_without_an_alias, "RandomPassword h100-mariadb-password is deleted", id="no-alias-for-a-password"
        ),
        pytest.param(key_is_longer, "RandomPassword h100-jwt-key is replaced: length", id="longer-key"),
        pytest.param(key_comes_from_another_value, "Secret h100-munge gets another key", id="another-key"),
        pytest.param(database_s_disk_is_renamed, "StatefulSet h100-mariadb no longer has the claim data", id="claim-template"),
        pytest.param(database_has_another_service, "StatefulSet h100-mariadb is replaced: spec.serviceName", id="service-of-a-set"),
        pytest.param(workers_lose_their_homes, "NodeSet h100 no longer mounts the claim h100-home", id="volume-of-workers"),
        pytest.param(namespace_has_another_name, "Namespace slurm is replaced: metadata.name", id="namespace"),
        pytest.param(cluster_has_another_identifier, "cluster identifiers: ", id="cluster-identifier"),
    ],
)
def test_lost_state_is_found(change: Callable[[Plan], None], said: str) -> None:
    before = present_plan(releases()[-1], "h100")
    after = copy.deepcopy(before)
    change(after)
    assert any(line.startswith(said) for line in losses(before, after)), losses(before, after)


def test_an_alias_keeps_what_a_rename_would_lose() -> None:
    before = present_plan(releases()[-1], "h100")
    after = copy.deepcopy(before)
    component_is_renamed_without_an_alias(after)
    for was, each in zip(before["resources"], after["resources"], strict=True):
        if was["urn"] != each["urn"]:
            each["aliases"] = [was["urn"]]
    assert losses(before, after) == []


def test_a_longer_key_is_no_loss_where_its_secret_keeps_the_old_one() -> None:
    before = present_plan(releases()[-1], "h100")
    after = copy.deepcopy(before)
    inputs_of(after, "RandomPassword", "h100-jwt-key")["length"] += 1
    assert losses(before, after) == []


def test_a_change_of_a_pod_rolls_its_workload_and_no_other() -> None:
    before = present_plan(releases()[-1], "h100")
    after = copy.deepcopy(before)
    container = inputs_of(after, "StatefulSet", "h100-slurmctld")["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "other"
    assert rolls(before, before) == []
    assert rolls(before, after) == ["StatefulSet h100-slurmctld rolls", f"  containers[{container['name']}]: image"]


@pytest.mark.parametrize("stack", EXAMPLES)
def test_a_kept_plan_holds_no_secret(stack: str) -> None:
    for release in releases():
        for each in kept_plan(release, stack)["resources"]:
            if each["type"].endswith(":Secret"):
                assert set(each["inputs"]["data"].values()) == {"[secret]"}, f"{release}: {each['name']}"
