"""The kinds and the classes that belong to the whole Kubernetes cluster."""

import pytest

from components import kinds
from components.kinds import kinds_args
from components.labels import Manifest
from tests.unit.components.stacks import H100


def test_kinds_are_the_same_whichever_cluster_brings_them() -> None:
    made = kinds.build_crds("dev")
    assert made == kinds.build_crds("other")
    assert [each["metadata"]["name"] for each in made] == ["nodesets.slipway.dev", "slurmnodes.slipway.dev"]
    wait = {"pulumi.com/waitFor": "condition=Established", "pulumi.com/patchForce": "true"}
    assert [each["metadata"]["annotations"] for each in made] == [wait, wait]


@pytest.mark.parametrize(
    ("manifest", "former"),
    [
        pytest.param(kinds.build_crds("dev")[0], [("controllers", "slipway:index:Controllers")], id="node-sets"),
        pytest.param(kinds.build_crds("dev")[1], [], id="slurm-nodes-came-later"),
        pytest.param({"kind": "RuntimeClass", "metadata": {"name": "kata"}}, [("gpu-runtime", "slipway:index:GpuRuntime")], id="class"),
    ],
)
def test_object_that_another_component_had_is_found_there(manifest: Manifest, former: list[tuple[str, str]]) -> None:
    assert kinds.former_parents(manifest) == former


def test_runtime_class_is_made_once_and_named_like_its_handler() -> None:
    made = kinds.build_runtime_classes({"cluster": "dev", "install_crds": True, "runtime_classes": ["nvidia", "kata", "nvidia"]})
    assert [(each["metadata"]["name"], each["handler"]) for each in made] == [("kata", "kata"), ("nvidia", "nvidia")]


def test_runtime_class_is_the_same_whichever_cluster_brings_it() -> None:
    made = [kinds.build_runtime_classes({"cluster": name, "install_crds": True, "runtime_classes": ["nvidia"]}) for name in ("a", "b")]
    assert made[0] == made[1]


def test_runtime_classes_are_those_of_the_pools_less_the_one_that_the_operator_makes() -> None:
    without = H100.model_copy(update={"gpu_operator": H100.gpu_operator.model_copy(update={"enabled": False})})
    assert kinds_args(H100)["runtime_classes"] == []
    assert kinds_args(without) == {"cluster": "h100", "install_crds": True, "runtime_classes": ["nvidia"]}
