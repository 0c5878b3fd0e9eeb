"""The machine catalogue against EC2's own description of its machine types, as moto serves it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import boto3
import moto
import pytest

from configs.models.machines import MACHINES, Machine

# What moto does not describe. When it does, this set no longer holds: compare the figures, then take the name out.
NOT_IN_MOTO = {
    "p6e-gb200.36xlarge",  # sold by the UltraServer only, so EC2's public description leaves it out, and moto copies that
}


@pytest.fixture(scope="module")
def described() -> Iterator[Mapping[str, Mapping[str, Any]]]:
    with moto.mock_aws():
        client: Any = cast(Any, boto3).client("ec2", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
        pages: list[Any] = client.get_paginator("describe_instance_types").paginate()
        yield {kind["InstanceType"]: kind for page in pages for kind in page["InstanceTypes"]}


def _known() -> list[str]:
    return sorted(MACHINES.keys() - NOT_IN_MOTO)


def _bandwidth_gbps(text: str) -> float:
    """`Up to 12.5 Gigabit`, `4x 100 Gigabit` and `3200 Gigabit` in Gbit/s."""
    match = re.fullmatch(r"(?:Up to )?(?:(\d+)x )?([\d.]+) Gigabit", text)
    assert match, text
    return int(match[1] or 1) * float(match[2])


def _gpus(kind: Mapping[str, Any]) -> tuple[str, str, int, int] | None:
    if "GpuInfo" not in kind:
        return None
    [gpu] = kind["GpuInfo"]["Gpus"]
    return gpu["Manufacturer"].lower(), gpu["Name"].lower(), gpu["Count"], gpu["MemoryInfo"]["SizeInMiB"]


def _catalogue_gpus(machine: Machine) -> tuple[str, str, int, int] | None:
    return machine.gpus and (machine.gpus.vendor, machine.gpus.model, machine.gpus.count, machine.gpus.memory_mib)


def test_what_moto_does_not_know_is_named(described: Mapping[str, Mapping[str, Any]]) -> None:
    assert MACHINES.keys() - described.keys() == NOT_IN_MOTO


@pytest.mark.parametrize("name", _known())
def test_machine_is_as_ec2_describes_it(name: str, described: Mapping[str, Mapping[str, Any]]) -> None:
    kind, machine = described[name], MACHINES[name]
    network = kind["NetworkInfo"]
    assert {
        "cpus": machine.cpus,
        "cores": machine.cores,
        "threads per core": machine.threads_per_core,
        "memory MiB": machine.memory_mib,
        "GPUs": _catalogue_gpus(machine),
        "EFA interfaces": len(machine.efa_cards),
        "EFA cards": list(machine.efa_cards),
        "network Gbit/s": machine.network_gbps,
        "architecture": {"amd64": ["x86_64"], "arm64": ["arm64"]}[machine.architecture],
    } == {
        "cpus": kind["VCpuInfo"]["DefaultVCpus"],
        "cores": kind["VCpuInfo"]["DefaultCores"],
        "threads per core": kind["VCpuInfo"]["DefaultThreadsPerCore"],
        "memory MiB": kind["MemoryInfo"]["SizeInMiB"],
        "GPUs": _gpus(kind),
        "EFA interfaces": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "EFA cards": [card["NetworkCardIndex"] for card in network["NetworkCards"] if "efa" in card["InterfaceTypes"]],
        "network Gbit/s": _bandwidth_gbps(network["NetworkPerformance"]),
        "architecture": kind["ProcessorInfo"]["SupportedArchitectures"],
    }


@pytest.mark.parametrize(
    "family", ["p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "g5", "g6", "g6e", "c7i", "m7i", "r7i", "c7a", "m7a"]
)
def test_every_virtual_size_of_a_family_is_there(family: str, described: Mapping[str, Mapping[str, Any]]) -> None:
    sizes = {name for name in described if name.startswith(f"{family}.") and ".metal" not in name}
    assert sizes == {name for name in MACHINES if name.startswith(f"{family}.")}


def test_two_sockets_where_ec2_hands_out_cores_in_pairs(described: Mapping[str, Mapping[str, Any]]) -> None:
    """EC2 lists the core counts a machine can start with: from 4 by 2 where they come from two processors, from 1 where from one."""
    decided = {name: described[name]["VCpuInfo"].get("ValidCores", [])[:3] for name in _known()}
    paired = {name for name, cores in decided.items() if cores == [4, 6, 8]}
    single = {name for name, cores in decided.items() if cores[:1] == [1]}
    assert len(paired) >= 10
    assert len(single) >= 40
    assert {name for name in paired if MACHINES[name].sockets != 2} == set()
    assert {name for name in single if MACHINES[name].sockets != 1} == set()


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_shape_is_whole(machine: Machine) -> None:
    assert machine.cpus == machine.sockets * machine.cores_per_socket * machine.threads_per_core
    assert min(machine.sockets, machine.cores_per_socket, machine.threads_per_core, machine.memory_mib) >= 1
    assert machine.sockets <= 2
