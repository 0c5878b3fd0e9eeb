"""The fixture stack of tests/unit/engine, recorded; and objects made by hand."""

from collections.abc import Callable
from typing import Any

import pytest

from engine import project, record
from engine.plan import Plan, Resource
from engine.record import ValueOf, placeholder_value
from tests.support.project import ROOT

SMALL = ROOT / "tests/unit/engine/fixtures/small"
Recorder = Callable[..., Plan]


@pytest.fixture
def recorded() -> Recorder:
    """Runs the fixture program with `KEY.PATH=VALUE` overrides and gives its plan."""

    def run(*overrides: str, value_of: ValueOf = placeholder_value, preview: bool = True) -> Plan:
        return record.record(project.load(SMALL, "dev", overrides), value_of, preview).plan

    return run


def by_name(plan: Plan, name: str, kind: str = "") -> Resource:
    """The resource of that logical name (and type tail)."""
    return next(resource for resource in plan.resources if resource.name == name and resource.type.endswith(kind))


def stateful_set(name: str = "gpu", replicas: int = 2, **more: Any) -> dict[str, Any]:
    """A live, ready StatefulSet; `spec_` and `status_` keywords change a field each."""
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}}}
    status = {"observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas}
    spec |= {key.removeprefix("spec_"): value for key, value in more.items() if key.startswith("spec_")}
    status |= {key.removeprefix("status_"): value for key, value in more.items() if key.startswith("status_")}
    about = {"name": name, "namespace": "slurm", "generation": 1}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": about, "spec": spec, "status": status}
