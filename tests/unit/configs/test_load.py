"""Loading as a whole: the examples load, all faults come together and in order, key files are read, and it is quick."""

import stat
import time
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from configs.faults import ConfigFaults
from configs.load import load_cluster, parse_cluster
from configs.models.cluster import Cluster
from configs.render.slurm import render
from configs.rules.structure import read_structure
from tests.support.configs.stacks import EXAMPLES, KEY, ROOT, cluster, edited, example, places


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_loads(name: str) -> None:
    assert cluster(name).name == name


def test_faults_of_shape_and_rules_are_reported_together_in_file_order() -> None:
    edits = {
        "login.users[0].uid": 12,
        "nodeSets[0].size": 2000,
        "nodeSets[1].gpus.model": "h10",
        "partitions[0].nodeSets[0]": "cpus",
        "partitions[0].maxtime": "1-0",
        "slurm": {"raw": ["SlurmUser=root"], "cgroupVersion": "v9"},
    }
    with pytest.raises(ConfigFaults) as caught:
        load_cluster(edited("dev", edits), ROOT, "Pulumi.dev.yaml")
    assert str(caught.value).splitlines() == [
        "Pulumi.dev.yaml: 7 mistakes",
        '  cluster.nodeSets[0].size: 2000 is more than pool "workers" can hold (8). Raise nodePools[0].max or lower this.',
        '  cluster.nodeSets[1].gpus.model: "h10" does not match: a machine of pool "workers" has "h100".',
        '  cluster.partitions[0].maxtime: there is no such key. Did you mean "maxTime"?',
        '  cluster.partitions[0].nodeSets[0]: no node set is called "cpus". Did you mean "cpu"?',
        "  cluster.login.users[0].uid: 12 is not for people: ids below 1000 are the system's. Take one from 1000 to 2000000000.",
        '  cluster.slurm.cgroupVersion: "v9" is none of auto, v1, v2.',
        "  cluster.slurm.raw[0]: contradicts SlurmUser=slurm, which is rendered from the rest of this file. Drop the line.",
    ]


def test_broken_part_does_not_hide_or_multiply_the_faults_of_others() -> None:
    edits = {"nodePools[0].max": "two", "nodeSets[0].size": None, "healthChecks[0].nodeSets": ["cpu", "gpus"]}
    with pytest.raises(ConfigFaults) as caught:
        load_cluster(edited("dev", edits), ROOT, "Pulumi.dev.yaml")
    assert [fault.path for fault in caught.value.faults] == [
        "cluster.nodePools[0].max",
        "cluster.nodeSets[0].size",
        "cluster.healthChecks[0].nodeSets[1]",
    ]


def test_one_mistake_is_counted_in_the_singular() -> None:
    with pytest.raises(ConfigFaults, match=r"^Pulumi.dev.yaml: 1 mistake\n  cluster\.name: is missing\."):
        load_cluster({key: value for key, value in example("dev").items() if key != "name"}, ROOT, "Pulumi.dev.yaml")


def test_keys_of_files_join_those_of_the_stack_file(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"# work\n{KEY}\n\n{KEY.replace('Dl3', 'Dl4')} home\n")
    users = [{"name": "alice", "uid": 10001, "sshKeys": [KEY], "sshKeyFiles": ["keys"]}]
    loaded = load_cluster(edited("dev", {"login.users": users}), tmp_path, "Pulumi.dev.yaml")
    assert loaded.login.users[0].ssh_keys == (KEY, f"{KEY.replace('Dl3', 'Dl4')} home")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        pytest.param(b"", "holds no key", id="empty"),
        pytest.param(b"# only a comment\n", "holds no key", id="comment"),
        pytest.param(b"\xff\xfe", "it is not text", id="binary"),
        pytest.param(b"-----BEGIN OPENSSH PRIVATE KEY-----\n", "is a private key", id="private"),
    ],
)
def test_bad_key_file_is_a_fault(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "key").write_bytes(content)
    users = [{"name": "alice", "uid": 10001, "sshKeyFiles": ["key"]}]
    with pytest.raises(ConfigFaults) as caught:
        load_cluster(edited("dev", {"login.users": users}), tmp_path, "Pulumi.dev.yaml")
    assert [fault.path for fault in caught.value.faults] == ["cluster.login.users[0].sshKeyFiles[0]"]
    assert part in caught.value.faults[0].message


def test_folder_as_key_file_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()
    assert stat.S_ISDIR((tmp_path / "key").stat().st_mode)
    users = [{"name": "alice", "uid": 10001, "sshKeyFiles": ["key"]}]
    with pytest.raises(ConfigFaults, match="is not there"):
        load_cluster(edited("dev", {"login.users": users}), tmp_path, "Pulumi.dev.yaml")


def test_every_required_part_has_a_stand_in() -> None:
    """Else a mistake in it would end the loader, and not be told."""
    broken: list[dict[str, object]] = [{}]
    for name in EXAMPLES:
        for place in places(example(name)):
            raw = example(name)
            parent = reduce(getitem, place[:-1], cast(Any, raw))
            parent[place[-1]] = object()
            broken.append(raw)
    for raw in broken:
        loaded, faults = read_structure(raw)
        assert isinstance(loaded, Cluster)
        assert faults


def test_loading_and_rendering_the_large_example_takes_under_100_ms() -> None:
    """Of this process's own time: other programs may have the cores meanwhile."""
    render(cluster("h100"))  # templates are compiled once in a process
    began = time.process_time()
    assert render(cluster("h100"))
    assert time.process_time() - began < 0.1


def test_every_quantity_says_its_unit() -> None:
    schema = TypeAdapter(Cluster).json_schema(by_alias=True)
    about = {
        f"{name}.{field}": str(said.get("description", ""))
        for name, model in {**schema["$defs"], "Cluster": schema}.items()
        for field, said in model["properties"].items()
    }
    silent = {name for name, text in about.items() if name.endswith("MiB") and "MiB" not in text}
    silent |= {name for name, text in about.items() if name.endswith("S") and "second" not in text}
    assert silent == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("hello", '"hello" is not a mapping of keys that can be read', id="text"),
        pytest.param('{"name": ' + "7" * 5000 + "}", "is not a mapping of keys that can be read", id="number-of-5000-digits"),
        pytest.param('{"name": ' + "[" * 100_000, "is nested too deeply", id="deep"),
    ],
)
def test_what_pulumi_hands_over_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(ConfigFaults) as caught:
        parse_cluster(text, "Pulumi.x.yaml")
    head, line = str(caught.value).splitlines()
    assert head == "Pulumi.x.yaml: 1 mistake"
    assert words in line
    assert len(line) < 300


@pytest.mark.parametrize("text", ["[]", "7", "null", "true", '"x"'])
def test_other_json_than_a_mapping_is_refused_by_the_loader(text: str) -> None:
    with pytest.raises(ConfigFaults):
        load_cluster(parse_cluster(text, "Pulumi.x.yaml"), ROOT, "Pulumi.x.yaml")
