"""The wheel, installed away from the checkout: it has all that the plugin, a Python program and the template for `pulumi new` need."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from engine import project, record
from engine.plan import as_json
from images import store
from provider import __version__
from tests.plan.plugin_engine import GOLDEN_SCHEMA, running
from tests.plan.wheels import built_wheel, packages
from tests.support.components import program
from tests.support.configs.stacks import edited
from tests.support.project import KEY, ROOT

ROOMS = (
    *("changes", "components", "configs", "controllers", "docs/use", "examples", "images", "policies"),
    *("cli", "engine", "names", "programs", "provider", "slurm"),
)
TEMPLATE = ROOT / "templates" / "slurm-python"
RECORD = """
import json, pathlib, sys
from engine import project, record
from engine.plan import as_json
print(json.dumps(as_json(record.record(project.load(pathlib.Path.cwd(), "dev")).plan)))
"""


def ran(environment: Path, program: str, folder: Path, **variables: str) -> str:
    """What a Python program prints that runs in the environment, in a folder of its own."""
    command = [environment / "bin" / "python", "-c", program]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_is_one_folder_with_every_file_of_its_rooms(wheel: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z", *ROOMS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name == f"slipway-{__version__}-py3-none-any.whl"
    assert {name.partition("/")[0] for name in names} == {"slipway", f"slipway-{__version__}.dist-info"}
    held = {name.removeprefix("slipway/") for name in names if name.startswith("slipway/")}
    assert held == {*listed.split("\0"), "__init__.py", "requirements.txt"} - {"", "provider/library.py"}


def test_wheel_has_the_license_by_its_spdx_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        about = file.read(f"slipway-{__version__}.dist-info/METADATA").decode().splitlines()
        assert file.read(f"slipway-{__version__}.dist-info/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert {"License-Expression: Apache-2.0", "License-File: LICENSE"} <= set(about)


def test_plugin_of_the_wheel_makes_what_the_checkout_makes(installed: Path, tmp_path: Path) -> None:
    """Images too are called the same: their content tags come from the wheel's copies of the folders that they are made from."""
    config = edited("dev", {})
    with running([installed / "bin" / "pulumi-resource-slipway"], tmp_path) as plugin:
        assert json.loads(plugin.schema()) == json.loads(GOLDEN_SCHEMA.read_text())
        _, registered = plugin.construct("dev", config)
    assert {one.urn: one.inputs for one in registered} == {one.urn: one.inputs for one in program.run("dev", config)}


def test_folder_of_the_wheel_is_a_plugin_too(installed: Path) -> None:
    folder = packages(installed) / "slipway" / "provider"
    assert (folder / "PulumiPlugin.yaml").read_text() == "runtime: python\n"
    [further] = [line.removeprefix("-r ") for line in (folder / "requirements.txt").read_text().splitlines() if line.startswith("-r ")]
    assert (folder / further).read_text() == (ROOT / "requirements.txt").read_text()


def test_wheel_of_a_release_runs_its_images(tmp_path: Path) -> None:
    published = {name: f"registry.example/slipway/{name}:0123@sha256:{at:064x}" for at, name in enumerate(store.names())}
    record = tmp_path / "record.json"
    record.write_text(json.dumps(published))
    with zipfile.ZipFile(built_wheel(tmp_path, SLIPWAY_IMAGES=str(record))) as file:
        file.extractall(tmp_path)
    with running([sys.executable, tmp_path / "slipway" / "provider"], tmp_path) as plugin:
        _, registered = plugin.construct("dev", edited("dev", {"images": {"controllers": "own.example/controllers:1"}}))
    named = set(re.findall(r'"image": "(.+?)"', json.dumps([one.inputs for one in registered])))
    assert named == {published["slurm"], published["root"], published["observability"], "own.example/controllers:1"}


def test_python_program_may_have_packages_of_the_same_names(installed: Path, tmp_path: Path) -> None:
    for name in ("components", "configs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OWN = {name!r}\n")
    (tmp_path / "configs" / "models.py").write_text("OWN = 'models'\n")
    source = """
import configs
from slipway import SlurmCluster, parse_cluster
import components, configs.models
from slipway import ConfigFaults
assert (configs.OWN, components.OWN, configs.models.OWN) == ("configs", "components", "models")
try:
    SlurmCluster("x", parse_cluster('{"name": "x"}', "Pulumi.x.yaml"))
except ConfigFaults as found:
    print(found)
"""
    told = ran(installed, source, tmp_path).splitlines()
    assert told[0] == "SlurmCluster x: 4 mistakes"
    assert told[1].startswith("  cluster.nodePools: is missing.")


def test_template_is_a_project_whose_plan_is_that_of_the_stack_file(installed: Path, tmp_path: Path) -> None:
    folder, tools = tmp_path / "lab", tmp_path / "tools"
    shutil.copytree(TEMPLATE, folder)
    about = folder / "Pulumi.yaml"
    about.write_text(about.read_text().replace("${PROJECT}", "lab").replace("${DESCRIPTION}", "A lab"))
    tools.mkdir()
    for room in ("cli", "engine", "changes", "names", "policies", "slurm"):
        (tools / room).symlink_to(ROOT / room)
    keys = (f'cluster.login.users[0].sshKeys=["{KEY}"]', "cluster.login.users[0].sshKeyFiles=[]")
    (folder / "id_ed25519.pub").write_text(f"{KEY}\n")
    made = json.loads(ran(installed, RECORD, folder, PYTHONPATH=str(tools)))
    wanted = as_json(record.record(project.load(ROOT, "dev", keys, TEMPLATE / "Pulumi.dev.yaml")).plan)
    assert made["outputs"]["login"] == wanted["outputs"]["login"]
    assert made["resources"] == json.loads(json.dumps(wanted["resources"]).replace("::slipway::", "::lab::"))


def test_template_says_what_pulumi_new_shows_and_asks_for_this_version() -> None:
    assert "${PROJECT}" in (TEMPLATE / "Pulumi.yaml").read_text()
    assert (TEMPLATE / "requirements.txt").read_text().endswith(f"\n./slipway-{__version__}-py3-none-any.whl\n")
