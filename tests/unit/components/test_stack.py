"""The real stack file under Pulumi's own mocks: what goes over the wire to the engine, for both example stacks."""

import base64
import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pulumi
import pytest

from tests.support.components import program
from tests.support.components.program import Registered

# Pulumi's mark of a secret on the wire. Source: pulumi/runtime/rpc.py.
MARK, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"


@pytest.fixture(scope="module", params=["dev", "h100"])
def stack(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def registered(stack: str) -> list[Registered]:
    return program.run(stack, program.stack_config(stack))


def is_record(name: str) -> bool:
    """True for a Secret of what is deployed. A large stack has several."""
    return name.partition("-")[2].startswith("deployed")


def unmarked(value: Any) -> Iterator[str]:
    """Every piece of text that is not inside a secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        for one in () if is_secret(fields) else fields.values():
            yield from unmarked(one)
    elif isinstance(value, list):
        for one in cast(list[Any], value):
            yield from unmarked(one)


def is_secret(fields: Mapping[str, Any]) -> bool:
    return fields.get(MARK) == SECRET


def of_type(registered: list[Registered], kind: str) -> list[Registered]:
    return [one for one in registered if one.type.rpartition(":")[2] == kind]


def test_everything_is_below_the_cluster(registered: list[Registered]) -> None:
    [cluster] = of_type(registered, "SlurmCluster")
    by_urn = {one.urn: one for one in registered}
    for one in registered:
        top = one
        while top.parent in by_urn:
            top = by_urn[top.parent]
        assert top == cluster, one.name


def test_providers_change_files_in_place_and_one_adopts_what_a_stack_left(registered: list[Registered], stack: str) -> None:
    providers = [one for one in registered if one.type == "pulumi:providers:kubernetes"]
    assert sorted(one.name for one in providers) == [stack, f"{stack}-adopting"]
    for one in providers:
        assert one.inputs["enableConfigMapMutable"] == one.inputs["enableSecretMutable"] == "true"
        assert one.inputs["clusterIdentifier"]
    objects = [one for one in registered if one.type.startswith("kubernetes:")]
    assert {one.provider.rpartition("::")[0] for one in objects} == {one.urn for one in providers}


def programs_of(registered: list[Registered]) -> set[str]:
    """Programs with a token, where the stack has them: the one for EC2."""
    return {"ec2"} & {one.name.partition("-")[2] for one in of_type(registered, "Deployment")}


def test_secrets_are_secret_on_the_wire(registered: list[Registered]) -> None:
    drawn = {program.DRAWN, base64.b64encode(program.DRAWN.encode()).decode()}
    secrets = of_type(registered, "Secret")
    names = {one.name.partition("-")[2] for one in secrets if not is_record(one.name)}
    assert names == {"munge", "jwt", "mariadb", "login-host-keys", "node-host-keys", *(f"{each}-token" for each in programs_of(registered))}
    assert [one.name for one in secrets if not is_secret(one.inputs["data"])] == []
    assert [one.name for one in registered if drawn & set(unmarked(one.inputs))] == []


def test_random_values_are_secret_outputs(registered: list[Registered]) -> None:
    found = {one.name.partition("-")[2]: one.secret_outputs for one in registered if one.type.startswith("random:")}
    tokens = {f"{each}-token-key" for each in programs_of(registered)}
    assert set(found) == {"munge-key", "jwt-key", "login-host-keys-seed", "node-host-keys-seed", "mariadb-password", *tokens}
    assert all({"result", "bcryptHash"} <= outputs for outputs in found.values())


def test_keys_have_a_length_that_bcrypt_and_munge_take(registered: list[Registered]) -> None:
    """munged wants 32 bytes at least; bcrypt, which the random provider adds, 72 at most."""
    lengths = {one.name.rpartition("-")[2]: int(one.inputs["length"]) for one in registered if one.type.startswith("random:")}
    assert lengths == {"key": 64, "seed": 32, "password": 40}


@pytest.mark.parametrize("protected", [pytest.param(True, id="protected"), pytest.param(False, id="unprotected")])
def test_storage_database_and_keys_are_protected_when_asked_for(protected: bool) -> None:
    config = program.stack_config("dev")
    config["deletionProtection"] = protected
    config["storage"] |= {"home": {"storageClass": "efs", "size": "1Ti"}, "sharedRoot": {"claim": "roots"}}
    found = program.run("dev", config)
    kept = [
        *(one for one in found if one.type.startswith("random:")),
        *(one for one in of_type(found, "Secret") if not is_record(one.name)),  # a copy of the others, written anew each time
        *of_type(found, "PersistentVolumeClaim"),
        *(one for one in of_type(found, "StatefulSet") if one.name in ("dev-mariadb", "dev-prometheus", "dev-slurmctld")),
        *of_type(found, "Namespace"),
    ]
    assert len(kept) == 5 + 5 + 4 + 3 + 1
    assert {one.name: one.protect for one in kept} == {one.name: protected for one in kept}
    # The home that the stack file says, and the disks of slurmctld, MariaDB and Prometheus.
    assert [one.retained for one in of_type(found, "PersistentVolumeClaim")] == [protected] * 4
    assert not any(one.protect for one in found if one not in kept)


def test_nfs_server_is_deleted_after_its_mounts_or_kept_on_request() -> None:
    config = program.stack_config("dev")
    config["deletionProtection"] = True
    config["storage"] |= {
        "nfsServer": {"size": "1Ti", "clusterIP": "10.96.20.49"},
        "home": {"nfsServer": True},
        "sharedRoot": {"nfsServer": True},
    }
    found = program.run("dev", config)
    [server] = [one for one in of_type(found, "StatefulSet") if one.name == "dev-nfs"]
    assert server.protect
    volumes = [*of_type(found, "PersistentVolume"), *of_type(found, "PersistentVolumeClaim")]
    volumes = [one for one in volumes if "slipway:index:Disks$" not in one.urn]  # these are no mounts of users
    assert {one.inputs["metadata"]["name"] for one in volumes} >= {"dev-home", "dev-shared-root"}
    for one in volumes:
        assert server.urn in one.dependencies
        assert one.protect
        assert one.retained
    [storage] = of_type(found, "SharedStorage")
    by_parent = {one.urn: one.parent for one in found}
    assert by_parent[by_parent[server.urn]] == storage.urn
    pods = [one for one in found if one.type.rpartition(":")[2] in ("NodeSet", "LoginNodes") and not one.custom]
    assert pods
    assert [one.name for one in pods if server.urn not in one.dependencies] == []
    assert {one.inputs["spec"]["nfs"]["server"] for one in volumes if one.inputs["kind"] == "PersistentVolume"} == {"10.96.20.49"}


def test_what_others_dial_or_mount_has_a_fixed_name(registered: list[Registered], stack: str) -> None:
    names = {one.inputs["metadata"]["name"] for one in registered if one.type.startswith("kubernetes:core")}
    fixed = (
        "slurm-config",
        "slurmdbd-config",
        "users",
        "user-keys",
        "munge",
        "jwt",
        "slurmctld",
        "slurmrestd",
        "slurmdbd",
        "mariadb",
        "login",
    )
    assert {f"{stack}-{name}" for name in fixed} <= names


def test_pods_come_after_what_they_mount(registered: list[Registered]) -> None:
    order = {one.urn: at for at, one in enumerate(registered)}
    for one in [*of_type(registered, "StatefulSet"), *of_type(registered, "Deployment")]:
        parent = next(each for each in registered if each.urn == one.parent)
        needed = {*one.dependencies, *parent.dependencies}
        assert any("ConfigMap::" in urn for urn in needed)
        assert any("Secret::" in urn for urn in needed)
        assert all(order[urn] < order[one.urn] for urn in needed)


def test_workers_are_deleted_before_slurmctld_and_the_controller(registered: list[Registered], stack: str) -> None:
    [slurmctld] = [one for one in of_type(registered, "StatefulSet") if one.name == f"{stack}-slurmctld"]
    [controller] = [one for one in of_type(registered, "Deployment") if one.name == f"{stack}-nodeset-controller"]
    kinds = {one.urn for one in of_type(registered, "CustomResourceDefinition")}
    sets = [one for one in of_type(registered, "NodeSet") if not one.custom]
    assert sets
    assert [one.name for one in sets if not {slurmctld.urn, controller.urn, *kinds} <= one.dependencies] == []


def test_each_node_set_is_one_object_of_our_kind(registered: list[Registered]) -> None:
    components = [one.urn for one in of_type(registered, "NodeSet") if not one.custom]
    made = [one for one in of_type(registered, "NodeSet") if one.custom]
    assert {one.type for one in made} == {"kubernetes:slipway.dev/v1alpha1:NodeSet"}
    assert sorted(one.parent for one in made) == sorted(components)


def test_kinds_outlive_the_stack_because_other_clusters_may_use_them(registered: list[Registered]) -> None:
    kinds = {one.name: one for one in of_type(registered, "CustomResourceDefinition")}
    assert kinds.keys() == {"nodesets.slipway.dev", "slurmnodes.slipway.dev"}
    assert all(one.retained for one in kinds.values())
    assert "x-kubernetes-validations" in kinds["nodesets.slipway.dev"].inputs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_no_wait_can_deadlock(registered: list[Registered]) -> None:
    """Nothing that is waited for is declared before what makes it ready: Services and claims are ready only with their pods."""
    for one in [*of_type(registered, "Service"), *of_type(registered, "PersistentVolumeClaim"), *of_type(registered, "PersistentVolume")]:
        assert one.inputs["metadata"].get("annotations", {}).get("pulumi.com/skipAwait") == "true", one.name


def test_number_of_resources_does_not_grow_with_the_nodes() -> None:
    def count(size: int) -> int:
        config = copy.deepcopy(program.stack_config("dev"))
        config["nodePools"][0]["max"] = 10_000
        config["nodeSets"][0]["size"] = size
        return len(program.run("dev", config))

    assert count(10) == count(10_000) < 500


def test_mistakes_end_the_program_before_anything_is_registered(capsys: pytest.CaptureFixture[str]) -> None:
    config = program.stack_config("dev")
    config["nodeSets"][0]["pool"] = "nowhere"
    config["colour"] = "red"
    with pytest.raises(pulumi.RunError) as caught:
        program.run("dev", config)
    lines = str(caught.value).splitlines()
    assert lines[0] == "Pulumi.dev.yaml: 2 mistakes"
    assert any("cluster.nodeSets[0].pool" in line for line in lines)
    assert any("cluster.colour" in line for line in lines)
    assert caught.value.__cause__ is None


def test_node_set_that_is_added_changes_only_what_lists_it() -> None:
    config = program.stack_config("dev")
    config["nodePools"][0]["max"] = 3
    grown = copy.deepcopy(config)
    grown["nodeSets"].append({**grown["nodeSets"][0], "name": "more", "size": 1})
    grown["partitions"][0]["nodeSets"].append("more")
    before, after = ({(one.type, one.name): json.dumps(one.inputs) for one in program.run("dev", each)} for each in (config, grown))
    assert {name for _, name in after.keys() - before.keys()} == {"dev-more"}
    changed = {key[1] for key in before if after[key] != before[key]}
    assert {name for name in changed if not is_record(name)} == {"dev-slurm-config", "dev-node-sets"}
