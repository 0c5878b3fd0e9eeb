"""Rules that hold for every pod of a cluster, whatever runs in it."""

from typing import Any

import pytest

from components import accounting, control_plane, controllers, login, nfs_server, node_set
from components.labels import Manifest
from components.pods import pod_defaults
from tests.support.components.examples import CLUSTER, CONTROLLERS_PODS, PODS
from tests.support.components.stacks import DEV, SERVED
from tests.unit.components.structure import structural_faults

WORKLOADS: dict[str, Manifest] = {
    "slurmctld": control_plane.build_slurmctld(CLUSTER, PODS),
    "slurmrestd": control_plane.build_slurmrestd(CLUSTER, PODS),
    "slurmdbd": accounting.build_slurmdbd(CLUSTER, PODS),
    "mariadb": accounting.build_mariadb(CLUSTER, PODS),
    "nfs": nfs_server.build_server(SERVED, PODS, SERVED.storage.nfs_server or pytest.fail("no server")),
    "slurmd": node_set.build_node_set(DEV, PODS, DEV.node_set("gpu")),
    "login": login.build_deployment(CLUSTER, PODS),
}
WITH_CONTROLLER: dict[str, Manifest] = {**WORKLOADS, "nodeset-controller": controllers.build_deployment(DEV, CONTROLLERS_PODS)}
each_workload = pytest.mark.parametrize("workload", [pytest.param(manifest, id=name) for name, manifest in WORKLOADS.items()])
every_workload = pytest.mark.parametrize("workload", [pytest.param(manifest, id=name) for name, manifest in WITH_CONTROLLER.items()])
unprivileged = pytest.mark.parametrize(
    "workload", [pytest.param(manifest, id=name) for name, manifest in WITH_CONTROLLER.items() if name not in ("slurmd", "login", "nfs")]
)


def pod(workload: Manifest) -> dict[str, Any]:
    return workload["spec"]["template"]["spec"]


def containers(workload: Manifest) -> list[dict[str, Any]]:
    return [*pod(workload).get("initContainers", []), *pod(workload)["containers"]]


def claims(workload: Manifest) -> list[str]:
    return [template["metadata"]["name"] for template in workload["spec"].get("volumeClaimTemplates", [])]


@every_workload
def test_structure_is_kubernetes_own(workload: Manifest) -> None:
    # A NodeSet is no kind of Kubernetes' own, but the pod in it is as any other.
    template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "one"}, "template": workload["spec"]["template"]}
    assert structural_faults(template if workload["kind"] == "NodeSet" else workload) == []


@pytest.mark.parametrize("name", [name for name in WITH_CONTROLLER if name != "slurmd"])
def test_selector_chooses_the_template(name: str) -> None:
    workload = WITH_CONTROLLER[name]
    chosen, carried = workload["spec"]["selector"]["matchLabels"], workload["spec"]["template"]["metadata"]["labels"]
    assert chosen.items() <= carried.items()
    assert set(chosen) == {f"app.kubernetes.io/{key}" for key in ("name", "instance", "component")}


@each_workload
def test_no_pod_but_the_controllers_can_talk_to_kubernetes(workload: Manifest) -> None:
    assert pod(workload)["automountServiceAccountToken"] is False


@every_workload
def test_every_mount_has_its_volume_and_every_volume_a_mount(workload: Manifest) -> None:
    volumes = [volume["name"] for volume in pod(workload)["volumes"]]
    mounted = {mount["name"] for one in containers(workload) for mount in one["volumeMounts"]}
    assert len(set(volumes)) == len(volumes)
    assert mounted == {*volumes, *claims(workload)}


@each_workload
def test_every_container_runs_a_program_of_ours_and_requests_resources(workload: Manifest) -> None:
    for one in containers(workload):
        command = one["command"][2:] if one["command"][:2] == ["tini", "--"] else one["command"]
        program = command[:3] == ["python3", "-EsSB", "-m"] and one["workingDir"] == "/opt/slipway"
        assert program or command[0].startswith("/opt/slipway/scripts/")
        assert one["resources"]["requests"].keys() >= {"cpu", "memory"}
        assert one["imagePullPolicy"] == "IfNotPresent"


@each_workload
def test_munge_key_is_mounted_by_munged_alone_and_by_slurmd_as_roots(workload: Manifest) -> None:
    holders = {one["name"] for one in containers(workload) for mount in one["volumeMounts"] if mount["name"] == "munge-key"}
    modes = {volume["secret"]["defaultMode"] for volume in pod(workload)["volumes"] if volume["name"] == "munge-key"}
    assert holders <= {"munged"} or (holders, modes) == ({"slurmd"}, {0o400})


@unprivileged
def test_daemons_have_nothing_but_their_own_user(workload: Manifest) -> None:
    for one in containers(workload):
        context = one["securityContext"]
        assert context["runAsNonRoot"]
        assert context["runAsUser"] > 0
        assert context["readOnlyRootFilesystem"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("name", ["slurmd", "login", "nfs"])
def test_pods_with_shared_folders_have_no_group_that_would_own_files(name: str) -> None:
    assert "fsGroup" not in pod(WORKLOADS[name]).get("securityContext", {})


@pytest.mark.parametrize("name", [name for name in WITH_CONTROLLER if name != "slurmd"])
def test_all_but_workers_run_on_system_nodes(name: str) -> None:
    spec = pod(WITH_CONTROLLER[name])
    assert spec["nodeSelector"] == {"slipway.dev/pool": "system"}
    assert {"key": "system", "operator": "Equal", "value": "", "effect": "NoSchedule"} in spec["tolerations"]


@pytest.mark.parametrize("name", ["slurmctld", "slurmrestd", "slurmdbd", "mariadb", "nfs", "nodeset-controller"])
def test_control_plane_leaves_a_lost_node_within_half_a_minute(name: str) -> None:
    found = {one["key"]: one["tolerationSeconds"] for one in pod(WITH_CONTROLLER[name])["tolerations"] if one["effect"] == "NoExecute"}
    assert found == {"node.kubernetes.io/not-ready": 30, "node.kubernetes.io/unreachable": 30}


@every_workload
def test_node_names_resolve_everywhere(workload: Manifest) -> None:
    assert pod(workload)["dnsConfig"]["searches"] == ["dev-slurmd.slurm.svc.cluster.local"]


def test_system_pods_go_to_system_nodes() -> None:
    made = pod_defaults(DEV, "image:1", "dev-scripts-1", {"slurm": "dev-slurm-1"})
    assert (made["image"], made["scripts"]) == ("image:1", "dev-scripts-1")
    assert made["node_selector"] == {"slipway.dev/pool": "system"}
    assert made["tolerations"] == []
