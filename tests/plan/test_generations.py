"""Rotation of keys in the plan: one number more is a new value beside the old ones, and nothing of a worker changes."""

import pytest

from engine.plan import Plan, as_json, compare
from tests.plan.examples import plan_of

UPDATED = {
    "munge": {"h100-munge"},
    "jwt": {"h100-jwt", "h100-slurmctld", "h100-slurmdbd"},
    "database": {"h100-mariadb", "h100-slurmdbd"},
}


def changed(before: Plan, after: Plan) -> dict[str, str]:
    """Name of each resource that differs, with what becomes of it."""
    return {change.name: change.op for change in compare(as_json(before), as_json(after)) if change.op != "same"}


@pytest.mark.parametrize("key", [*UPDATED])
def test_rotation_of_a_protected_stack_changes_only(key: str) -> None:
    found = changed(plan_of("h100"), plan_of("h100", f"cluster.keys.{key}=2"))
    made = {name for name, op in found.items() if op == "create"}
    assert len(made) == 1
    assert next(iter(made)).endswith("-2")
    updated = {name for name, op in found.items() if op == "update" and not name.startswith("h100-deployed")}
    assert updated == UPDATED[key]  # of Secrets by their marks: their data is masked
    assert set(found.values()) <= {"create", "update"}
