"""The kind and the classes that belong to the whole Kubernetes cluster."""

from components import kinds
from components.kinds import kinds_args
from tests.unit.components.stacks import H100


def test_kind_is_the_same_whichever_cluster_brings_it() -> None:
    made = kinds.build_crd("dev")
    assert made == kinds.build_crd("other")
    assert made["metadata"]["name"] == "nodesets.slipway.dev"
    assert made["metadata"]["annotations"] == {"pulumi.com/waitFor": "condition=Established", "pulumi.com/patchForce": "true"}


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
