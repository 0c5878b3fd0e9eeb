"""slurmctld and slurmrestd."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from components import control_plane, slurm_files
from components.pods import service
from configs.models.cluster import Cluster
from names import ports
from programs.config_sync.run import REFUSED
from tests.support.components.examples import CLUSTER, PODS
from tests.support.components.stacks import DEV
from tests.support.configs.stacks import cluster
from tests.unit.components.structure import structural_faults


def slurmctld(example: Cluster = CLUSTER) -> dict[str, Any]:
    return control_plane.build_slurmctld(example, PODS)


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def test_one_slurmctld_with_its_own_disk() -> None:
    made = slurmctld()
    assert made["metadata"]["name"] == made["spec"]["serviceName"] == "dev-slurmctld"
    assert made["spec"]["replicas"] == 1
    [claim] = made["spec"]["volumeClaimTemplates"]
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    mounts = named(made["spec"]["template"]["spec"]["containers"], "slurmctld")["volumeMounts"]
    assert named(mounts, "state")["mountPath"] == "/var/spool/slurmctld"


def test_changed_slurm_conf_does_not_touch_the_pods() -> None:
    made, before = (slurm_files.build_config(each) for each in (cluster("dev", {"slurm.suspendTimeS": 60}), DEV))
    assert made["metadata"] == before["metadata"]
    assert made["data"]["slurm.conf"] != before["data"]["slurm.conf"]
    mounted = [slurmctld(), control_plane.build_slurmrestd(CLUSTER, PODS)]
    volumes = [named(one["spec"]["template"]["spec"]["volumes"], "config") for one in mounted]
    assert {volume["configMap"]["name"] for volume in volumes} == {made["metadata"]["name"]}


def test_config_is_mounted_as_a_folder_so_that_changes_arrive() -> None:
    spec = slurmctld()["spec"]["template"]["spec"]
    for name in ("slurmctld", "reconfigure"):
        config = named(named(spec["containers"], name)["volumeMounts"], "config")
        assert config == {"name": "config", "mountPath": "/etc/slurm", "readOnly": True}


def test_slurmctld_is_probed_over_http() -> None:
    container = named(slurmctld()["spec"]["template"]["spec"]["containers"], "slurmctld")
    probes = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert probes == {
        "startup": {"port": 6817, "path": "/livez"},
        "liveness": {"port": 6817, "path": "/livez"},
        "readiness": {"port": 6817, "path": "/readyz"},
    }


def test_refused_files_make_an_event_and_neither_end_nor_unready_the_pod() -> None:
    """The StatefulSet rolls no pod that is not ready, and a restart would take the sidecar's place in mid-change."""
    sidecar = named(slurmctld()["spec"]["template"]["spec"]["containers"], "reconfigure")
    assert "readinessProbe" not in sidecar
    probe = sidecar["livenessProbe"]
    assert probe["failureThreshold"] == 2**31 - 1
    assert str(REFUSED) in probe["exec"]["command"][-1]


def test_probe_of_the_sidecar_says_what_slurmctld_refused(tmp_path: Path) -> None:
    sidecar = named(slurmctld()["spec"]["template"]["spec"]["containers"], "reconfigure")
    *shell, script = sidecar["livenessProbe"]["exec"]["command"]
    command = [*shell, script.replace(str(REFUSED), str(tmp_path / "refused"))]
    assert subprocess.run(command, check=False).returncode == 0
    (tmp_path / "refused").write_text("MinJobAge")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "MinJobAge")


@pytest.mark.parametrize(
    ("protected", "kept"), [pytest.param(True, "Retain", id="protected"), pytest.param(False, "Delete", id="unprotected")]
)
def test_queue_outlives_the_stack_when_protected(protected: bool, kept: str) -> None:
    policy = slurmctld(CLUSTER.model_copy(update={"deletion_protection": protected}))["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert policy["whenDeleted"] == kept


def test_munged_is_a_native_sidecar_under_its_own_user() -> None:
    [munged] = slurmctld()["spec"]["template"]["spec"]["initContainers"]
    assert munged["restartPolicy"] == "Always"
    assert munged["securityContext"]["runAsUser"] == 401
    assert munged["startupProbe"]["exec"]["command"][:2] == ["test", "-S"]


def test_slurmrestd_is_neither_root_nor_slurm_and_holds_no_key() -> None:
    spec = control_plane.build_slurmrestd(CLUSTER, PODS)["spec"]["template"]["spec"]
    assert [container["name"] for container in spec["containers"]] == ["slurmrestd", "jobs"]
    assert {container["securityContext"]["runAsUser"] for container in spec["containers"]} == {402}
    assert not [volume["name"] for volume in spec["volumes"] if "secret" in volume]


def test_slurmrestd_and_the_job_list_have_limits_and_share_one_service() -> None:
    containers = control_plane.build_slurmrestd(CLUSTER, PODS)["spec"]["template"]["spec"]["containers"]
    assert [container["resources"]["limits"] for container in containers] == [{"memory": "2Gi"}, {"memory": "8Gi"}]
    made = control_plane.build_rest_service(PODS)
    assert {port["port"] for port in made["spec"]["ports"]} == {
        port["containerPort"] for container in containers for port in container["ports"] if port["containerPort"] != ports.PROBE
    }
    assert structural_faults(made) == []


def test_headless_service_answers_before_slurmctld_is_ready() -> None:
    made = service(PODS, "slurmctld", 6817, headless=True)
    assert made["spec"]["clusterIP"] == "None"
    assert made["spec"]["publishNotReadyAddresses"] is True
    assert made["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert structural_faults(made) == []


def test_priority_class_is_named_for_one_cluster_of_one_namespace() -> None:
    made = control_plane.build_priority_class("dev", "slurm")
    assert made["metadata"]["name"] == slurmctld()["spec"]["template"]["spec"]["priorityClassName"] == "slurm-dev-control-plane"
    assert structural_faults(made) == []
