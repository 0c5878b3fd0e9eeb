"""No secret is told by a plan or by the state that a deployment of it leaves: not as an id, a name, an annotation or a hash in any of them.
And the keys of a stack from before that was so stay as they are.

tests/plan/fixtures/state_before_0_2.json is what the version before that one declared, of both example stacks.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest

from engine import project, random_values, record
from engine.plan import Plan, Secret, as_json
from tests.plan.engine import continued, kept_inputs
from tests.plan.examples import plan_of
from tests.support.configs.stacks import EXAMPLES
from tests.support.project import KEYS, ROOT

ID_IS_SAFE = {"random:index/randomPassword:RandomPassword"}
"""Types of random values whose id is no secret: it is the word "none" (pulumi-random #39). Of RandomBytes, RandomId, RandomString and
RandomUuid it is the value (pulumi-random #190)."""
BEFORE: Mapping[str, list[dict[str, Any]]] = json.loads((ROOT / "tests/plan/fixtures/state_before_0_2.json").read_text())
OLD_DATA = {"some": Secret("key of before")}


@functools.cache
def drawn(stack: str, salt: str) -> Plan:
    """The plan of a stack with random values of its own."""

    def value_of(key: str, _others: tuple[str, ...], type_: str, inputs: Mapping[str, Any]) -> bytes:
        return random_values.make(type_, inputs, random_values.placeholder(hashlib.sha256(f"{salt} {key}".encode()).hexdigest()))

    return record.record(project.load(ROOT, stack, KEYS), value_of).plan


@pytest.mark.parametrize("stack", EXAMPLES)
def test_all_random_values_have_an_id_that_tells_nothing(stack: str) -> None:
    types = {one.type for one in plan_of(stack).resources if one.type.startswith("random:")}
    assert types
    assert types <= ID_IS_SAFE


@pytest.mark.parametrize("stack", EXAMPLES)
def test_other_random_values_change_nothing_that_a_plan_shows(stack: str) -> None:
    """Names, annotations and hashes in them are shown; what is masked is encrypted in the state, too."""
    one, other = drawn(stack, "one"), drawn(stack, "other")
    assert as_json(one) == as_json(other)
    secrets = [[each.inputs for each in plan.resources if each.inputs.get("kind") == "Secret"] for plan in (one, other)]
    # The record of a large stack is several Secrets, and not each has a copy of another one.
    data = [[each["data"] for each in found if "-deployed" not in each["metadata"]["name"]] for found in secrets]
    assert len(data[0]) == {"dev": 5, "h100": 6}[stack]  # h100 has a token for EC2
    assert all(first != second for first, second in zip(*data, strict=True))
    records = [[each["data"] for each in found if "-deployed" in each["metadata"]["name"]] for found in secrets]
    assert any(first != second for first, second in zip(*records, strict=True))


@pytest.mark.parametrize("stack", EXAMPLES)
def test_keys_of_a_stack_from_before_stay_as_they_are(stack: str) -> None:
    plan = plan_of(stack)
    new = continued(plan, [one["urn"] for one in BEFORE[stack]])
    old_secrets = [one["urn"] for one in BEFORE[stack] if ":Secret::" in one["urn"]]
    assert len(old_secrets) == 5
    drawn_before = [urn for urn in old_secrets if not urn.endswith("-mariadb")]  # whose password was a RandomPassword already
    assert [urn for urn in drawn_before if kept_inputs(new[urn], {"data": OLD_DATA})["data"] != OLD_DATA] == []


@pytest.mark.parametrize("stack", EXAMPLES)
def test_of_protected_resources_only_old_random_values_go(stack: str) -> None:
    new = continued(plan_of(stack), [one["urn"] for one in BEFORE[stack]])
    gone = {one["urn"] for one in BEFORE[stack] if one["urn"] not in new and (one.get("protect") or "$random:" in one["urn"])}
    assert {urn.rpartition("::")[2] for urn in gone} == {
        f"{stack}-{end}" for end in ("munge-key", "jwt-key", "login-host-keys-seed", "node-host-keys-seed")
    }
    assert all(":RandomBytes::" in urn for urn in gone)


@pytest.mark.parametrize("stack", EXAMPLES)
def test_what_was_protected_in_a_stack_from_before_still_is(stack: str) -> None:
    new = continued(plan_of(stack), [one["urn"] for one in BEFORE[stack]])
    assert [
        one["urn"] for one in BEFORE[stack] if one.get("protect") and one["urn"] in new and not new[one["urn"]].options.get("protect")
    ] == []


@pytest.mark.parametrize(
    ("overrides", "is_kept"),
    [
        pytest.param((), True, id="first-generation"),
        pytest.param(("cluster.keys.munge=2",), False, id="rotated"),
        pytest.param(("cluster.keys.munge=2", 'cluster.keys.keep=["munge"]'), True, id="rotated-before-and-kept"),
    ],
)
def test_munge_key_changes_only_by_a_rotation(overrides: tuple[str, ...], is_kept: bool) -> None:
    [munge] = [one for one in plan_of("dev", *overrides).resources if one.name == "dev-munge" and one.inputs.get("kind") == "Secret"]
    assert (kept_inputs(munge, {"data": OLD_DATA})["data"] == OLD_DATA) == is_kept
