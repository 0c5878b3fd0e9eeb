"""The check that other tests lean on finds what it should."""

from typing import Any

import pytest

from tests.unit.components.structure import structural_faults


def service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one", "labels": {"a": "b"}}, "spec": spec}


def test_right_manifest_has_no_faults() -> None:
    assert structural_faults(service(clusterIP="None", ports=[{"port": 22, "targetPort": "ssh"}], selector={"a": "b"})) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param({"clusterIp": "None"}, "Service.spec.clusterIp", id="misspelt-key"),
        pytest.param({"ports": [{"port": "22"}]}, "Service.spec.ports[0].port", id="text-for-a-number"),
        pytest.param({"ports": [{"name": "ssh"}]}, "Service.spec.ports[0].port", id="missing-field"),
        pytest.param({"ports": {"port": 22}}, "Service.spec.ports", id="object-for-a-list"),
        pytest.param({"selector": ["a"]}, "Service.spec.selector", id="list-for-an-object"),
        pytest.param({"selector": {"a": 1}}, "Service.spec.selector.a", id="number-for-a-label"),
    ],
)
def test_wrong_manifest_is_named_by_path(spec: dict[str, Any], path: str) -> None:
    faults = structural_faults(service(**spec))
    assert [fault.partition(": ")[0] for fault in faults] == [path]
