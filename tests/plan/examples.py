"""The real program recorded for the example stacks, once each, with users' keys that do not depend on the machine; and its objects."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from engine import project, record
from engine.plan import Plan, Resource
from tests.support.project import KEYS, ROOT


@functools.cache
def plan_of(stack: str, *overrides: str) -> Plan:
    """The plan of an example stack, with further `KEY.PATH=VALUE`."""
    return record.record(project.load(ROOT, stack, (*KEYS, *overrides))).plan


def objects(plan: Plan) -> list[Resource]:
    """The plan's Kubernetes objects."""
    return [one for one in plan.resources if one.is_object]


def pod_specs(plan: Plan) -> Iterator[tuple[Resource, Mapping[str, Any], Mapping[str, Any]]]:
    """Every pod template: the workload, the template's metadata, its spec."""
    for one in objects(plan):
        spec: Mapping[str, Any] = one.inputs.get("spec", {})
        if one.inputs["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            yield one, spec["template"].get("metadata", {}), spec["template"]["spec"]
