"""The plans of both example stacks; and the wheel, built and installed once."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from engine.plan import Plan
from tests.plan.examples import plan_of
from tests.plan.wheels import built_wheel, packages
from tests.support.configs.stacks import EXAMPLES


@pytest.fixture(params=EXAMPLES)
def stack(request: pytest.FixtureRequest) -> str:
    """Each example stack in turn."""
    return str(request.param)


@pytest.fixture
def plan(stack: str) -> Plan:
    """The plan of each example stack in turn."""
    return plan_of(stack)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path) -> Path:
    """A virtual environment with the wheel; its dependencies come from that of this run."""
    folder = wheel.parent / "venv"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    install = ["pip", "install", "--quiet", "--offline", "--no-deps", "--python", folder / "bin" / "python", wheel]
    subprocess.run([uv, *install], check=True)
    packages(folder).joinpath("dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    return folder
