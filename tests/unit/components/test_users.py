"""Users from LDAP as every pod mounts them, instead of the ConfigMaps."""

from typing import Any

import pytest

from components import accounting, control_plane, login, node_set
from components.labels import Manifest
from components.users import users_volume
from configs.models.storage import Source, Storage
from tests.support.components.examples import PODS
from tests.support.components.stacks import DEV, H100
from tests.unit.components.structure import structural_faults

WITH: dict[str, Manifest] = {
    "slurmctld": control_plane.build_slurmctld(H100, PODS),
    "slurmrestd": control_plane.build_slurmrestd(H100, PODS),
    "slurmdbd": accounting.build_slurmdbd(H100, PODS),
    "login": login.build_deployment(H100, PODS),
}
WORKER = node_set.build_node_set(H100, PODS, H100.node_set("cpu"))["spec"]["template"]["spec"]
PODS_OF = {**{name: manifest["spec"]["template"]["spec"] for name, manifest in WITH.items()}, "slurmd": WORKER}


def volumes(pod: Manifest) -> dict[str, Any]:
    return {each["name"]: each for each in pod["volumes"]}


def mounts(container: Manifest) -> dict[str, Any]:
    return {each["mountPath"]: each for each in container["volumeMounts"]}


@pytest.mark.parametrize("name", [*PODS_OF])
def test_every_pod_reads_users_from_the_folder_and_cannot_write_it(name: str) -> None:
    pod = PODS_OF[name]
    container = next(each for each in pod["containers"] if each["name"] == name)
    assert mounts(container)["/var/lib/extrausers"] == {
        "name": "shared-root",
        "mountPath": "/var/lib/extrausers",
        "readOnly": True,
        "subPath": "identity",
    }
    # One volume of a claim: a pod with two never starts. Source: kubernetes/kubernetes#28502.
    assert [each["name"] for each in pod["volumes"]].count("shared-root") == 1
    assert not {"users", "user-keys"} & {*volumes(pod)}


def test_reconfigure_knows_the_same_users_as_slurmctld() -> None:
    seen = {each["name"]: mounts(each).get("/var/lib/extrausers") for each in PODS_OF["slurmctld"]["containers"]}
    assert seen["slurmctld"] == seen["reconfigure"] is not None


def test_sshd_reads_keys_from_the_folder() -> None:
    [sshd] = PODS_OF["login"]["containers"]
    assert mounts(sshd)["/etc/slipway/keys"] == {
        "name": "shared-root",
        "mountPath": "/etc/slipway/keys",
        "readOnly": True,
        "subPath": "identity/keys",
    }


@pytest.mark.parametrize("name", ["slurmctld", "slurmrestd", "slurmdbd"])
def test_volume_of_a_pod_with_an_fs_group_is_read_only_to_keep_its_owners(name: str) -> None:
    assert volumes(PODS_OF[name])["shared-root"]["persistentVolumeClaim"] == {"claimName": "h100-shared-root", "readOnly": True}


@pytest.mark.parametrize("name", [*WITH])
def test_structure_of_pods_with_the_folder_is_kubernetes_own(name: str) -> None:
    assert structural_faults(WITH[name]) == []


def test_host_path_is_mounted_as_it_is() -> None:
    on_the_machine = Storage(shared_root=Source(host_path="/srv/shared"), home=H100.storage.home)
    assert users_volume(H100.model_copy(update={"storage": on_the_machine}))["hostPath"]["path"] == "/srv/shared"


def test_users_of_the_config_are_in_a_config_map() -> None:
    assert users_volume(DEV)["configMap"]["name"] == "dev-users"
