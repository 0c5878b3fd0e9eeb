"""ConfigMaps and Secrets: what keeps its name, what gets a new one."""

import base64

import pytest

from components import objects
from components.labels import labels
from tests.unit.components.structure import structural_faults


def test_immutable_files_get_a_new_name_with_new_content_only() -> None:
    first = objects.immutable_config_map("dev-scripts", "slurm", {}, {"a.sh": "1", "b.sh": "2"})
    same = objects.immutable_config_map("dev-scripts", "slurm", {}, {"b.sh": "2", "a.sh": "1"})
    other = objects.immutable_config_map("dev-scripts", "slurm", {}, {"a.sh": "1", "b.sh": "3"})
    assert first["metadata"]["name"] == same["metadata"]["name"] != other["metadata"]["name"]
    assert first["immutable"] is True


def test_mutable_files_keep_their_name() -> None:
    made = objects.config_map("dev-slurm-config", "slurm", labels("dev", "slurmctld"), {"slurm.conf": ""})
    assert made["metadata"]["name"] == "dev-slurm-config"
    assert "immutable" not in made
    assert structural_faults(made) == []


def test_file_names_and_contents_cannot_be_confused() -> None:
    assert objects.content_name("x", {"ab": "c"}) != objects.content_name("x", {"a": "bc"})


def test_secret_takes_values_that_are_base64_already() -> None:
    made = objects.secret("dev-munge", "slurm", {}, {"munge.key": "AAEC"})
    assert made["data"] == {"munge.key": "AAEC"}
    assert "stringData" not in made
    assert structural_faults(made) == []


def test_encoded_text_comes_back() -> None:
    assert base64.b64decode(objects.encode("pässword")).decode() == "pässword"


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(KeyError):
        objects.declare({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}}, None)  # pyright: ignore[reportArgumentType]
