"""slurmdbd and MariaDB, and what keeps Slurm's accounts."""

import json
from typing import Any

from components import accounting
from components.accounts import build_accounts
from components.pods import PodDefaults
from configs.models.cluster import Cluster
from tests.support.components.examples import CLUSTER, PODS, edited_example
from tests.unit.components.structure import structural_faults

KEPT = edited_example({"accounting.accounts": [{"name": "research"}]})
CHANGED = edited_example({"accounting.purge": {"jobs": "12months"}})


def test_database_has_a_disk_of_its_class_that_outlives_a_protected_stack() -> None:
    spec = accounting.build_mariadb(CLUSTER.model_copy(update={"deletion_protection": True}), PODS)["spec"]
    [claim] = spec["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_changed_slurmdbd_conf_restarts_slurmdbd_alone() -> None:
    assert accounting.build_slurmdbd(CHANGED, PODS) != accounting.build_slurmdbd(CLUSTER, PODS)
    assert accounting.build_mariadb(CHANGED, PODS) == accounting.build_mariadb(CLUSTER, PODS)


def test_slurmdbd_conf_has_a_fixed_name() -> None:
    before, after = accounting.build_config(CLUSTER), accounting.build_config(CHANGED)
    assert before["metadata"]["name"] == after["metadata"]["name"] == "dev-slurmdbd-config"
    assert "PurgeJobAfter=12months" in after["data"]["slurmdbd.conf"]
    assert structural_faults(after) == []


def test_password_is_a_file_and_never_in_the_environment() -> None:
    for made in (accounting.build_mariadb(CLUSTER, PODS), accounting.build_slurmdbd(CLUSTER, PODS)):
        [container] = made["spec"]["template"]["spec"]["containers"]
        assert {variable["name"] for variable in container["env"]} <= {"SLIPWAY_CLUSTER", "SLIPWAY_SLURMCTLD", "SLIPWAY_MARIADB_HOST"}
        assert {"name": "password", "mountPath": "/etc/slipway/mariadb", "readOnly": True} in container["volumeMounts"]


def test_without_accounts_nothing_keeps_them() -> None:
    assert [container["name"] for container in pod(CLUSTER)["containers"]] == ["slurmdbd"]


def test_changed_accounts_reach_the_program_and_restart_nothing() -> None:
    changed = edited_example({"accounting.accounts": [{"name": "other"}]})
    assert accounting.build_slurmdbd(changed, PODS) == accounting.build_slurmdbd(KEPT, PODS)
    file = build_accounts(changed)
    assert file["metadata"]["name"] == build_accounts(KEPT)["metadata"]["name"] == "dev-accounts"
    assert json.loads(file["data"]["accounts.json"])["accounts"].keys() == {"other"}
    assert "immutable" not in file


def test_changed_program_rolls_the_pod() -> None:
    name = "dev-account-sync-9876543210"
    pods: PodDefaults = {**PODS, "programs": {**PODS["programs"], "account_sync": name}}
    assert name in [volume.get("configMap", {}).get("name") for volume in pod(KEPT, pods)["volumes"]]


def test_program_of_accounts_is_slurms_own_user_and_holds_no_key() -> None:
    [program] = [container for container in pod(KEPT)["containers"] if container["name"] == "accounts"]
    assert program["command"] == ["python3", "-EsSB", "-m", "programs.account_sync.run", "/etc/slipway/accounts/accounts.json"]
    assert program["securityContext"]["runAsUser"] == 64030
    assert program["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not {mount["name"] for mount in program["volumeMounts"]} & {"munge-key", "password", "jwt"}


def test_every_mount_of_slurmdbds_pod_has_its_volume() -> None:
    spec = pod(KEPT)
    mounts = {mount["name"] for container in (*spec["containers"], *spec["initContainers"]) for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in spec["volumes"]}
    assert [structural_faults(made) for made in (accounting.build_slurmdbd(KEPT, PODS), build_accounts(KEPT))] == [[], []]


def pod(cluster: Cluster, pods: PodDefaults = PODS) -> Any:
    return accounting.build_slurmdbd(cluster, pods)["spec"]["template"]["spec"]
