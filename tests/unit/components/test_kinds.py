"""The kinds and the classes that belong to the whole Kubernetes cluster."""

import pytest

from components import kinds
from components.labels import Manifest
from configs.models.cluster import Cluster
from tests.support.components.stacks import DEV, H100


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


def named(*classes: str, cluster: str = "dev") -> Cluster:
    """A cluster whose pools name these RuntimeClasses."""
    pool = DEV.node_pools[0]
    pools = tuple(pool.model_copy(update={"name": f"pool-{at}", "runtime_class": name}) for at, name in enumerate(classes))
    return DEV.model_copy(update={"name": cluster, "node_pools": pools})


def test_runtime_class_is_made_once_and_named_like_its_handler() -> None:
    made = kinds.build_runtime_classes(named("nvidia", "kata", "nvidia"))
    assert [(each["metadata"]["name"], each["handler"]) for each in made] == [("kata", "kata"), ("nvidia", "nvidia")]


def test_runtime_class_is_the_same_whichever_cluster_brings_it() -> None:
    one, other = (kinds.build_runtime_classes(named("nvidia", cluster=name)) for name in ("a", "b"))
    assert one == other


def test_runtime_classes_are_those_of_the_pools_except_the_operators() -> None:
    without = H100.model_copy(update={"gpu_operator": H100.gpu_operator.model_copy(update={"enabled": False})})
    assert kinds.build_runtime_classes(H100) == []
    assert [each["metadata"]["name"] for each in kinds.build_runtime_classes(without)] == ["nvidia"]
