"""slurmdbd and MariaDB."""

from components import accounting
from components.accounting import AccountingArgs
from tests.unit.components.examples import ACCOUNTING
from tests.unit.components.structure import structural_faults

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
