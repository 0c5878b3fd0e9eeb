"""Pulumi.cluster.yaml asks nothing of a cluster but one labelled machine, a default StorageClass and a registry."""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from components.deployed import COMPONENT
from standalone import project, record
from standalone.faults import StandaloneError
from standalone.plan import Secret, revealed
from standalone.render import documents
from standalone.requirements import Offer, plan_missing
from tests.plan.conftest import KEYS, ROOT

IMAGES = (
    'cluster.images={"slurm":"registry.example/slipway/slurm:1","root":"registry.example/slipway/root:1",'
    '"controllers":"registry.example/slipway/controllers:1"}'
)
LABELS = {"slipway.dev/mini": "true"}
NODE = {"metadata": {"name": "a", "labels": LABELS}}
DEFAULT = {"metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}


def rendered(*overrides: str) -> Any:
    return documents(record.record(project.load(ROOT, "cluster", (*KEYS[:2], *overrides))).plan)


def inside(value: Any, key: str) -> Iterator[Any]:
    """Every value under a key, at any depth."""
    if isinstance(value, dict):
        for name, one in cast(dict[str, Any], value).items():
            if name == key:
                yield one
            yield from inside(one, key)
    elif isinstance(value, list):
        for one in cast(list[Any], value):
            yield from inside(one, key)


def test_one_labelled_machine_with_a_default_class_is_enough() -> None:
    assert plan_missing(rendered(IMAGES), Offer([NODE], [DEFAULT])) == []


def test_a_bare_cluster_is_told_all_that_it_lacks_at_once() -> None:
    said = "\n".join(plan_missing(rendered(), Offer([{"metadata": {"name": "a"}}])))
    for words in ("kubectl label node NAME slipway.dev/mini=true", "python -m images push REGISTRY", "no default StorageClass"):
        assert words in said


def test_no_volume_needs_more_than_a_disk_on_one_machine() -> None:
    manifests = [revealed(one.manifest) for one in rendered(IMAGES)]
    assert {mode for modes in inside(manifests, "accessModes") for mode in modes} == {"ReadWriteOnce"}
    assert not [path for path in inside(manifests, "hostPath") if path.get("type") == "DirectoryOrCreate"]
    assert not [*inside(manifests, "storageClassName"), *inside(manifests, "nfs")]
    selectors = [*inside(manifests, "nodeSelector")]
    assert selectors
    assert all(each == LABELS for each in selectors)


def test_a_disk_away_from_the_login_pods_is_refused() -> None:
    with pytest.raises(StandaloneError, match="login pods need not be on that of"):
        rendered(IMAGES, "cluster.systemNodes={}")


STATE_MOST = 3_000_000
RECORD_MOST = 230_000


def test_state_of_the_cli_stays_small() -> None:
    """A backend writes the state whole after each step. As measured, a resource has its inputs in it three times (once, and twice in its
    outputs), and a secret as the base64 of its cipher. Most of it are the programs of the pods, in ConfigMaps."""
    sizes: dict[str, int] = {}
    for one in record.record(project.load(ROOT, "cluster", KEYS[:2])).plan.resources:
        sizes[one.urn] = 3 * len(json.dumps(one.inputs, default=_as_kept))
    recorded = sum(size for urn, size in sizes.items() if f"-{COMPONENT}" in urn)
    assert recorded < RECORD_MOST
    assert sum(sizes.values()) < STATE_MOST


def _as_kept(value: Any) -> str:
    content = json.dumps(value.value, default=_as_kept) if isinstance(value, Secret) else "x" * 3_000
    return "x" * (len(content) * 4 // 3)
