"""Pulumi.yaml and the example stack files, as files: declared keys only, and the project that the CLI wants."""

import pytest
import yaml

from tests.support.configs.stacks import EXAMPLES, ROOT


def test_project_declares_its_config_and_runs_in_the_virtual_environment() -> None:
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    assert project["name"] == "slipway"
    assert project["runtime"] == {"name": "python", "options": {"toolchain": "pip", "virtualenv": ".venv"}}
    assert set(project["config"]["slipway:cluster"]) == {"description"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_stack_file_says_declared_keys_only(name: str) -> None:
    declared = set(yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"])
    said = set(yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text())["config"])
    assert {key for key in said if key.startswith("slipway:")} <= declared
    assert {key.split(":")[0] for key in said} <= {"slipway", "aws", "kubernetes"}
