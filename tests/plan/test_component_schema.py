"""Every component: in a file of its own, short, documented, and typed so that Pulumi's analyser reads it.

The cluster alone is published to other languages; its schema is in test_plugin.py.
"""

import importlib
import inspect
import pkgutil
from pathlib import Path

import pulumi
import pytest
from pulumi.provider.experimental.analyzer import Analyzer, PropertyDefinition

import components


def component_classes() -> list[type[pulumi.ComponentResource]]:
    modules = [importlib.import_module(f"components.{module.name}") for module in pkgutil.iter_modules(components.__path__)]
    found = {
        member
        for module in modules
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, pulumi.ComponentResource) and member.__module__.startswith("components.")
    }
    return sorted(found, key=lambda one: one.__name__)


def test_every_part_is_a_component() -> None:
    names = {component.__name__ for component in component_classes()}
    assert names >= {"SlurmCluster", "MungeSecret", "SharedStorage", "SlurmControlPlane", "Accounting", "NodeSet", "LoginNodes"}
    assert names >= {"GpuNodePool", "HealthChecks"}


@pytest.mark.parametrize("component", [pytest.param(one, id=one.__name__) for one in component_classes()])
def test_every_argument_and_output_is_documented(component: type[pulumi.ComponentResource]) -> None:
    found = Analyzer("slipway").analyze([component])
    [made] = found["component_definitions"].values()
    groups = {"args": made.inputs, "outputs": made.outputs}
    groups |= {name: kind.properties for name, kind in found["type_definitions"].items()}
    documented: dict[str, PropertyDefinition] = {f"{name}.{key}": about for name, group in groups.items() for key, about in group.items()}
    assert documented
    assert [path for path, about in documented.items() if not about.description] == []


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
