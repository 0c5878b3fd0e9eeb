"""The plugin as an engine meets it, over gRPC: its schema, a whole cluster with the resources of the stack file, and wrong arguments."""

import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from tests.plan.plugin_engine import GOLDEN_SCHEMA, Plugin, RefusedError, running
from tests.support.components import program
from tests.support.configs.stacks import GONE, edited
from tests.support.project import KEY, ROOT

MARK = "4dabf18193072939515e22adb298388d"
"""The key that marks an object on the wire as a secret or an output."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project, in which the CLI starts plugins."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "alice.pub").write_text(f"{KEY}\n")
    return folder


@pytest.fixture(scope="module")
def plugin(project: Path) -> Iterator[Plugin]:
    """The plugin of this checkout."""
    with running([sys.executable, ROOT / "provider"], project) as started:
        yield started


@pytest.fixture(scope="module")
def schema(plugin: Plugin) -> dict[str, Any]:
    return json.loads(plugin.schema())


def described(schema: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Every resource, type and property with its description."""
    for name, made in (schema["resources"] | schema["types"]).items():
        yield name, made.get("description")
        for key, about in [*made.get("inputProperties", {}).items(), *made["properties"].items()]:
            yield f"{name}.{key}", about.get("description")


def test_schema_is_the_golden_one(schema: dict[str, Any]) -> None:
    if os.environ.get("SLIPWAY_GOLDEN") == "write":
        GOLDEN_SCHEMA.write_text(json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    assert schema == json.loads(GOLDEN_SCHEMA.read_text()), "the interface changed; read the diff after `make golden`"


def test_everything_in_the_schema_is_described_on_one_line(schema: dict[str, Any]) -> None:
    assert [path for path, text in described(schema) if not text or "\n" in text] == []


def test_every_key_of_a_stack_file_is_in_the_schema(schema: dict[str, Any]) -> None:
    definitions = json.loads((ROOT / "docs" / "reference" / "stack.schema.json").read_text())["definitions"]
    keys = {name: set(model["properties"]) for name, model in definitions.items()}
    required = {name: set(model["required"]) for name, model in definitions.items()}
    cluster = schema["resources"]["slipway:index:SlurmCluster"]
    types = {name.rpartition(":")[2]: made for name, made in schema["types"].items()}
    published = {"Cluster": set(cluster["inputProperties"]), **{name: set(made["properties"]) for name, made in types.items()}}
    assert published == keys
    needed = {"Cluster": set(cluster["requiredInputs"]), **{name: set(made.get("required", ())) for name, made in types.items()}}
    assert needed == required


def test_cluster_has_the_resources_of_the_stack_file(plugin: Plugin) -> None:
    config = edited("dev", {})
    outputs, registered = plugin.construct("dev", config)
    expected = program.run("dev", config)
    assert len(registered) == len(expected) > 70
    assert {one.urn: one.inputs for one in registered} == {one.urn: one.inputs for one in expected}
    assert {one.urn: one.dependencies for one in registered} == {one.urn: one.dependencies for one in expected}
    assert outputs["namespace"] == "slurm"
    assert outputs["slurmctldAddress"] == "dev-slurmctld.slurm:6817"
    assert set(outputs) == {"namespace", "sshCommand", "slurmctldAddress", "restUrl"}


def test_key_files_are_relative_to_the_users_project(plugin: Plugin) -> None:
    users = [{"name": "alice", "uid": 10001, "sshKeyFiles": ["alice.pub"]}]
    _, registered = plugin.construct("dev", edited("dev", {"login.users": users}))
    [keys] = [one.inputs["data"] for one in registered if one.name == "dev-user-keys"]
    assert KEY in keys["alice"]


@pytest.mark.parametrize("preview", [pytest.param(True, id="preview"), pytest.param(False, id="up")])
def test_wrong_arguments_are_all_told_with_place_and_remedy(plugin: Plugin, preview: bool) -> None:
    config = edited("dev", {"nodeSets[0].pool": "nowhere", "nodeSets[1].size": 2.5, "storage.hom": {"hostPath": "/x"}, "partitions": GONE})
    with pytest.raises(RefusedError) as caught:
        plugin.construct("dev", config, preview)
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.message == "4 mistakes in the arguments of SlurmCluster"
    told = caught.value.properties
    assert set(told) == {"nodeSets[0].pool", "nodeSets[1].size", "storage.hom", "partitions"}
    assert '"nowhere"' in told["nodeSets[0].pool"]
    assert "2.5" in told["nodeSets[1].size"]
    assert 'Did you mean "home"?' in told["storage.hom"]
    assert told["partitions"].startswith("is missing.")
    assert plugin.monitor.registered == []


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"nodeSets": "gpu"}, id="text-for-a-list"),
        pytest.param({"nodeSets": ["gpu", None, 7]}, id="items-of-other-kinds"),
        pytest.param({"name": {"first": "ml"}}, id="object-for-text"),
        pytest.param({"keys": {"spreadS": float("inf")}}, id="infinite-number"),
    ],
)
def test_no_argument_gives_a_stack_trace(plugin: Plugin, given: dict[str, Any]) -> None:
    with pytest.raises(RefusedError) as caught:
        plugin.construct("dev", given)
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "Traceback" not in caught.value.message
    assert ".py" not in caught.value.message
    assert caught.value.properties


@pytest.mark.parametrize(
    ("value", "path"),
    [
        pytest.param("04da6b54-80e4-46f7-96ec-b56ff0331ba9", "storage.home.claim", id="unknown"),
        pytest.param({MARK: "1b47061264138c4ac30d75fd1eb44270", "value": "homes"}, "storage", id="secret"),
        pytest.param({MARK: "d0e6a833031e9bbcd3f4e8bde6ca49a4", "value": "x"}, "storage.home.claim", id="output"),
    ],
)
def test_output_of_another_resource_is_refused_in_words(plugin: Plugin, value: Any, path: str) -> None:
    with pytest.raises(RefusedError) as caught:
        plugin.construct("dev", edited("dev", {"storage.home": {"claim": value}}), preview=True)
    assert set(caught.value.properties) == {path}
    assert "Give the value itself" in caught.value.properties[path]


def test_yaml_program_of_the_page_is_accepted(plugin: Plugin, project: Path) -> None:
    (project / "id_ed25519.pub").write_text(f"{KEY}\n")
    [block] = re.findall(r"^    resources:\n(?:    .*\n)+", (ROOT / "docs" / "start" / "package.md").read_text(), re.MULTILINE)
    written = yaml.safe_load(textwrap.dedent(block))
    outputs, registered = plugin.construct("lab", written["resources"]["cluster"]["properties"])
    assert len(registered) > 50
    assert written["outputs"]["login"].strip("${}").removeprefix("cluster.") in outputs


def test_only_the_cluster_is_published(schema: dict[str, Any]) -> None:
    assert set(schema["resources"]) == {"slipway:index:SlurmCluster"}
