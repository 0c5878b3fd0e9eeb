"""The real program recorded for both example stacks, once each, with users' keys that do not depend on the machine; and the wheel."""

import functools
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from engine import project, record
from engine.plan import Plan
from tests.support.project import KEYS, ROOT

STACKS = ("dev", "h100")


@functools.cache
def plan_of(stack: str, *overrides: str) -> Plan:
    """The plan of an example stack, with further `KEY.PATH=VALUE`."""
    return record.record(project.load(ROOT, stack, (*KEYS, *overrides))).plan


@pytest.fixture(params=STACKS)
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


def built_wheel(folder: Path, **variables: str) -> Path:
    """A wheel of this checkout, built into the folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=True)
    [built] = folder.glob("*.whl")
    return built


def packages(environment: Path) -> Path:
    """Where a virtual environment has its packages."""
    [found] = environment.glob("lib/python*/site-packages")
    return found
