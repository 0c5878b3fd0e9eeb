"""The record of what is deployed: what components write, the guard reads back as declared."""

import asyncio
import base64
import json
import random
from collections.abc import Sequence
from typing import Any, cast

import pulumi
import pytest

from components.deployed import build_deployed, deployed_name
from components.labels import Manifest
from components.objects import Declared
from controllers.guard import record

FILES = {"slurm.conf": "ClusterName=dev\nPartitionName=größer\n", "empty": ""}


def manifest(kind: str = "ConfigMap", name: str = "files", namespace: str | None = "slurm", **more: Any) -> Manifest:
    about = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": about, **more}


def record_of(*manifests: Manifest, ignored: Sequence[str] = ()) -> list[dict[str, str]]:
    """The data of the record's Secrets, its values resolved. Every value has to be a Pulumi secret."""
    return asyncio.run(_resolve(manifests, ignored))


async def _resolve(manifests: Sequence[Manifest], ignored: Sequence[str]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for secret in build_deployed("dev", "slurm", [Declared(each, tuple(ignored), cast(pulumi.Resource, None)) for each in manifests]):
        found.append({})
        for key, value in secret["data"].items():
            output = cast("pulumi.Output[str]", value)
            assert await output.is_secret(), key
            found[-1][key] = cast(str, await output.future())
    return found


def incompressible(length: int) -> str:
    """Text that still has about so many bytes when it is compressed."""
    return base64.b85encode(random.Random(1).randbytes(length)).decode()


def read(data: list[dict[str, str]]) -> record.Record:
    return record.read_record(
        record.RecordSecret(record.RecordMeta(name=f"dev-deployed-{number}", namespace="slurm"), each) for number, each in enumerate(data)
    )


DECLARED: dict[str, tuple[Manifest, Sequence[str], Manifest, tuple[record.Path, ...]]] = {
    "as-it-is": (manifest(data=FILES), (), manifest(data=FILES), ()),
    "ignored-data": (manifest("Secret", "munge", data={"key": "AAEC"}), ["data"], manifest("Secret", "munge"), (("data",),)),
    "ignored-below": (
        manifest("StatefulSet", "ctld", spec={"replicas": 1, "volumeClaimTemplates": [{"a": 1}]}),
        ["spec.volumeClaimTemplates"],
        manifest("StatefulSet", "ctld", spec={"replicas": 1}),
        (("spec", "volumeClaimTemplates"),),
    ),
    "programs": (manifest(data=FILES, immutable=True), (), manifest(immutable=True), (("data",),)),
    "immutable-secret": (manifest("Secret", data=FILES, immutable=True), (), manifest("Secret", data=FILES, immutable=True), ()),
    "ignored-and-not-there": (manifest(), ["spec.volumeClaimTemplates"], manifest(), (("spec", "volumeClaimTemplates"),)),
    "name-with-dots": (manifest("Service", "a.b.c"), (), manifest("Service", "a.b.c"), ()),
}


@pytest.mark.parametrize(("given", "ignored", "kept", "paths"), DECLARED.values(), ids=DECLARED)
def test_guard_reads_back_what_was_declared(
    given: Manifest, ignored: Sequence[str], kept: Manifest, paths: tuple[record.Path, ...]
) -> None:
    before = json.dumps(given)
    found = read(record_of(given, ignored=ignored))
    name = given["kind"], given["metadata"]["name"]
    assert list(found.entries) == [name]
    assert found.declared(name) == record.Declared(kept, paths)
    assert json.dumps(given) == before


def test_values_that_are_known_later_are_in_it_as_they_come_out() -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "Ym9v"

    async def resolve() -> list[dict[str, str]]:
        return await _resolve([manifest("Secret", "password", data={"password": pulumi.Output.secret(later())})], ())

    kept = read(asyncio.run(resolve())).declared(("Secret", "password"))
    assert kept == record.Declared(manifest("Secret", "password", data={"password": "Ym9v"}), ())


LEFT_OUT: dict[str, Manifest] = {
    "claim": manifest("PersistentVolumeClaim", "state"),
    "role": manifest("Role", "guard"),
    "another-namespace": manifest(namespace="other"),
    "no-namespace": manifest(namespace=None),
    "too-large": manifest(data={"a": incompressible(720_000)}),
}


@pytest.mark.parametrize("given", LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_is_not_guarded_is_not_in_it(given: Manifest) -> None:
    assert record_of(given, manifest("Service", "slurmctld")) == record_of(manifest("Service", "slurmctld"))


def test_large_record_is_split_in_the_order_of_declaration() -> None:
    large = [manifest(name=f"files-{number}", data={"a": incompressible(300_000)}) for number in range(5)]
    data = record_of(*large)
    assert [[*each] for each in data] == [
        ["ConfigMap.files-0", "ConfigMap.files-1"],
        ["ConfigMap.files-2", "ConfigMap.files-3"],
        ["ConfigMap.files-4"],
    ]
    assert data == record_of(*large)
    assert max(sum(map(len, each.values())) for each in data) < 1 << 20
    assert len(read(data).entries) == 5


def test_entry_has_the_same_bytes_on_each_machine() -> None:
    """With other bytes, a preview on another machine would find the record changed."""
    packed = (
        "QlpoOTFBWSZTWXjn2/UAAEnbgEAAUAQgEAkALy/fCiAAdQ1T1PFPSPUzSBk0DNUjahM1Mmjah+pMVYwajbZC+e/t9+LS"
        "gABq/jh7zRNda2LKSiVGmoO7ElAuyYtZbk7Q/usVEHl2hCozwQcyy1yWKiXos9B0CIpy+XWOlIr4iOxdyRThQkHjn2/U"
    )
    assert record_of(manifest("Service", "slurmctld", spec={"selector": {"app": "slurmctld"}})) == [{"Service.slurmctld": packed}]


def test_secrets_of_the_record_have_names_of_their_own() -> None:
    made = build_deployed("dev", "slurm", [])
    assert [(each["metadata"]["name"], each["data"]) for each in made] == [("dev-deployed", {})]


@pytest.mark.parametrize(("number", "name"), [(1, "dev-deployed"), (2, "dev-deployed-2"), (10, "dev-deployed-10")])
def test_first_secret_has_no_number(number: int, name: str) -> None:
    assert deployed_name("dev", number) == name
