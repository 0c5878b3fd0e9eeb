"""Pulumi.cluster.yaml asks nothing of a cluster but one labelled machine, a default StorageClass and a registry."""

import base64
import gzip
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from components.deployed import COMPONENT
from engine import project, record
from engine.faults import SlipwayError
from engine.plan import Secret, revealed
from engine.render import documents
from engine.requirements import Offer, plan_missing
from tests.support.project import KEYS, ROOT

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
    with pytest.raises(SlipwayError, match="login pods need not be on that of"):
        rendered(IMAGES, "cluster.systemNodes={}")


STATE_MOST = 3_200_000
COMPRESSED_MOST = 1_000_000
RECORD_MOST = 230_000


def test_state_of_the_cli_stays_small() -> None:
    """A folder or a bucket gets the whole state after each step, compressed if the user asks for it (docs/start/pulumi.md). Most of it is
    the programs of the pods, in ConfigMaps."""
    resources = record.record(project.load(ROOT, "cluster", KEYS[:2])).plan.resources
    kept = {one.urn: _in_state(one.inputs) for one in resources}
    assert sum(len(text) for urn, text in kept.items() if f"-{COMPONENT}" in urn) < RECORD_MOST
    state = "".join(kept.values()).encode()
    assert len(state) < STATE_MOST
    assert len(gzip.compress(state, 6)) < COMPRESSED_MOST


def _in_state(inputs: Mapping[str, Any]) -> str:
    """A resource as real states hold it: its inputs, and twice more in its outputs."""
    return json.dumps({"inputs": inputs, "outputs": {**inputs, "__inputs": inputs}}, default=_as_kept)


def _as_kept(value: Any) -> str:
    """A secret as the base64 of its cipher, which does not compress; so is what only an `up` knows, taken for 3,000 bytes."""
    content = json.dumps(value.value, default=_as_kept) if isinstance(value, Secret) else "x" * 3_000
    return base64.b64encode(random.Random(content).randbytes(len(content))).decode()
