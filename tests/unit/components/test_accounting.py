"""slurmdbd and MariaDB, and what keeps Slurm's accounts."""

from typing import Any

from components import accounting
from components.accounting import AccountingArgs
from components.accounts import AccountsArgs, build_accounts
from components.pods import PodDefaults
from tests.unit.components.examples import ACCOUNTING, ACCOUNTS, PODS
from tests.unit.components.structure import structural_faults

KEPT: AccountingArgs = {**ACCOUNTING, "accounts": ACCOUNTS}
CHANGED: AccountingArgs = {**ACCOUNTING, "slurmdbd_conf": "DbdHost=other\n"}


def test_database_has_a_disk_of_its_class_that_outlives_a_protected_stack() -> None:
    spec = accounting.build_mariadb(ACCOUNTING)["spec"]
    [claim] = spec["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_changed_slurmdbd_conf_restarts_slurmdbd_alone() -> None:
    assert accounting.build_slurmdbd(CHANGED) != accounting.build_slurmdbd(ACCOUNTING)
    assert accounting.build_mariadb(CHANGED) == accounting.build_mariadb(ACCOUNTING)


def test_slurmdbd_conf_has_a_fixed_name() -> None:
    made = accounting.build_config(CHANGED)
    assert made["metadata"]["name"] == "dev-slurmdbd-config"
    assert made["data"] == {"slurmdbd.conf": "DbdHost=other\n"}
    assert structural_faults(made) == []


def test_password_is_a_file_and_never_in_the_environment() -> None:
    for made in (accounting.build_mariadb(ACCOUNTING), accounting.build_slurmdbd(ACCOUNTING)):
        [container] = made["spec"]["template"]["spec"]["containers"]
        assert {variable["name"] for variable in container["env"]} <= {"SLIPWAY_CLUSTER", "SLIPWAY_SLURMCTLD", "SLIPWAY_MARIADB_HOST"}
        assert {"name": "password", "mountPath": "/etc/slipway/mariadb", "readOnly": True} in container["volumeMounts"]


def test_without_accounts_nothing_keeps_them() -> None:
    assert [container["name"] for container in pod(ACCOUNTING)["containers"]] == ["slurmdbd"]


def test_changed_accounts_reach_the_program_and_restart_nothing() -> None:
    other: AccountsArgs = {**ACCOUNTS, "text": "{}"}
    changed: AccountingArgs = {**ACCOUNTING, "accounts": other}
    assert accounting.build_slurmdbd(changed) == accounting.build_slurmdbd(KEPT)
    file = build_accounts(PODS, other)
    assert (file["metadata"]["name"], file["data"]) == ("dev-accounts", {"accounts.json": "{}"})
    assert "immutable" not in file


def test_changed_program_rolls_the_pod() -> None:
    name = "dev-account-sync-9876543210"
    pods: PodDefaults = {**PODS, "programs": {**PODS["programs"], "account_sync": name}}
    changed: AccountingArgs = {**KEPT, "pods": pods}
    assert accounting.build_slurmdbd(changed) != accounting.build_slurmdbd(KEPT)
    assert name in [volume.get("configMap", {}).get("name") for volume in pod(changed)["volumes"]]


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
    assert [structural_faults(made) for made in (accounting.build_slurmdbd(KEPT), build_accounts(PODS, ACCOUNTS))] == [[], []]


def pod(args: AccountingArgs) -> Any:
    return accounting.build_slurmdbd(args)["spec"]["template"]["spec"]
