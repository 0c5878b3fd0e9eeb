"""The package's interface as other languages see it: Pulumi's own analyser over every component, against a golden file."""

import importlib
import inspect
import json
import os
import pkgutil
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.provider.experimental.analyzer import Analyzer
from pulumi.provider.experimental.schema import generate_schema

import components

GOLDEN = Path(__file__).parents[1] / "golden" / "schema.json"


def component_classes() -> list[type[pulumi.ComponentResource]]:
    modules = [importlib.import_module(f"components.{module.name}") for module in pkgutil.iter_modules(components.__path__)]
    found = {
        member
        for module in modules
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, pulumi.ComponentResource) and member.__module__.startswith("components.")
    }
    return sorted(found, key=lambda one: one.__name__)


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found = Analyzer("slipway").analyze(component_classes())
    dependencies = sorted(found["dependencies"], key=str)
    spec = generate_schema("slipway", "0.1.0", None, found["component_definitions"], found["type_definitions"], dependencies)
    return json.loads(json.dumps(spec.to_json(), sort_keys=True))


def test_schema_is_the_golden_one(schema: dict[str, Any]) -> None:
    if os.environ.get("SLIPWAY_GOLDEN") == "write":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(schema, indent=2, sort_keys=True) + "\n")
    assert schema == json.loads(GOLDEN.read_text()), "the interface changed; read the diff after `make golden`"


def test_every_part_is_a_component(schema: dict[str, Any]) -> None:
    names = {name.rpartition(":")[2] for name in schema["resources"]}
    assert names >= {"SlurmCluster", "MungeSecret", "SharedStorage", "SlurmControlPlane", "Accounting", "NodeSet", "LoginNodes"}
    assert names >= {"GpuNodePool", "HealthChecks"}


def test_every_argument_and_output_is_documented(schema: dict[str, Any]) -> None:
    documented = {
        **{f"{name}.{key}": one for name, made in schema["resources"].items() for key, one in made["inputProperties"].items()},
        **{f"{name}.{key}": one for name, made in schema["resources"].items() for key, one in made["properties"].items()},
        **{f"{name}.{key}": one for name, made in schema["types"].items() for key, one in made["properties"].items()},
    }
    assert [path for path, one in documented.items() if not one.get("description")] == []


@pytest.mark.parametrize("component", [pytest.param(one, id=one.__name__) for one in component_classes()])
def test_component_is_in_a_file_of_its_own_with_a_short_constructor(component: type[pulumi.ComponentResource]) -> None:
    others = [one for one in component_classes() if one.__module__ == component.__module__]
    assert others == [component]
    assert len(inspect.getsource(component.__init__).splitlines()) < 60
    assert inspect.getsource(component).count("self.register_outputs(") == 1


@pytest.mark.parametrize("file", sorted(Path(components.__path__[0]).glob("*.py")), ids=lambda file: file.name)
def test_no_component_reads_config_or_breaks_the_analyser(file: Path) -> None:
    text = file.read_text()
    for banned in ("from __future__ import annotations", "Literal[", "pulumi.Config", "pulumi.dynamic", "ResourceOptions.merge"):
        assert banned not in text
