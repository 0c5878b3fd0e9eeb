"""Every component: in a file of its own, short, documented. The one that is published to other languages is in test_plugin.py."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pulumi
import pytest

import components

FILES = sorted(Path(components.__path__[0]).glob("*.py"))


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
    assert names >= {"SlurmCluster", "MungeSecret", "SharedStorage", "SlurmControlPlane", "Accounting", "NodeSetComponent", "LoginNodes"}
    assert names >= {"GpuNodePool", "HealthChecks"}


def undocumented(source: str) -> Iterator[str]:
    """The attributes of classes, which are arguments and outputs, without a docstring below them."""
    for made in ast.parse(source).body:
        if isinstance(made, ast.ClassDef):
            for at, line in enumerate(made.body):
                after = made.body[at + 1] if at + 1 < len(made.body) else None
                is_told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and not is_told:
                    yield f"{made.name}.{line.target.id}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_argument_and_output_is_documented(file: Path) -> None:
    assert list(undocumented(file.read_text())) == []


def test_a_missing_description_is_found() -> None:
    assert list(undocumented('class A(TypedDict):\n    x: int\n    """Said."""\n    y: int\n    z: str')) == ["A.y", "A.z"]


@pytest.mark.parametrize("component", [pytest.param(one, id=one.__name__) for one in component_classes()])
def test_component_is_in_a_file_of_its_own_with_a_short_constructor(component: type[pulumi.ComponentResource]) -> None:
    others = [one for one in component_classes() if one.__module__ == component.__module__]
    assert others == [component]
    assert len(inspect.getsource(component.__init__).splitlines()) < 60
    assert inspect.getsource(component).count("self.register_outputs(") == 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_component_reads_config(file: Path) -> None:
    text = file.read_text()
    for banned in ("pulumi.Config", "pulumi.dynamic", "ResourceOptions.merge"):
        assert banned not in text


def test_the_published_component_can_be_analysed() -> None:
    text = Path(components.__path__[0], "cluster.py").read_text()
    for banned in ("from __future__ import annotations", "Literal["):
        assert banned not in text
