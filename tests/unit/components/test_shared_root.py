"""The versioned root: what its Jobs may, when they are made anew, and what pods get of it."""

from typing import Any

import pytest

from components import login, node_set
from components.shared_root import build_cleaner, build_fill, build_report, build_settings, build_switch
from configs.models.shared_root import RootTar, RootVersion
from tests.support.components.examples import PODS
from tests.support.components.stacks import DEV, H100
from tests.support.configs.stacks import cluster

VERSIONS = [RootVersion(name=name, image=f"registry.example/root:{name}") for name in ("1", "2")]


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    return job["spec"]["template"]["spec"]


def test_each_version_has_a_job_of_its_own_and_a_switch_makes_another() -> None:
    names = {build_fill(DEV, PODS, version)["metadata"]["name"] for version in VERSIONS}
    assert len(names) == 2
    assert build_switch(DEV, PODS, "1")["metadata"]["name"] != build_switch(DEV, PODS, "2")["metadata"]["name"]


def test_version_is_copied_from_a_container_that_needs_no_shell() -> None:
    pod = pod_of(build_fill(DEV, PODS, VERSIONS[1]))
    source = next(one for one in pod["initContainers"] if one["name"] == "source")
    assert source["image"] == "registry.example/root:2"
    assert source["command"] == ["/hold/hold"]
    assert source["restartPolicy"] == "Always"
    assert pod["shareProcessNamespace"]


def test_version_from_a_tar_needs_no_container_but_its_own() -> None:
    tar = RootTar(url="https://files.example/root.tar", sha256="ab" * 32)
    pod = pod_of(build_fill(DEV, PODS, RootVersion(name="3", tar=tar, carry_from="2")))
    assert "initContainers" not in pod
    assert "shareProcessNamespace" not in pod
    assert [volume["name"] for volume in pod["volumes"]] == ["names", "slurm", "program-root-fill", "program-root-changes", "shared-root"]
    variables = {one["name"]: one["value"] for one in pod["containers"][0]["env"] if one["name"].startswith("SLIPWAY_ROOT")}
    assert variables == {
        "SLIPWAY_ROOT_VERSION": "3",
        "SLIPWAY_ROOT_TAR": "https://files.example/root.tar",
        "SLIPWAY_ROOT_SHA256": "ab" * 32,
        "SLIPWAY_ROOT_CARRY_FROM": "2",
    }


def test_report_runs_on_request_only_and_can_write_nothing() -> None:
    made = build_report(DEV, PODS)
    assert made["metadata"]["name"] == "dev-root-changes"
    assert made["spec"]["suspend"] is True
    container = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    assert all(one["readOnly"] for one in container["volumeMounts"])
    assert container["securityContext"]["capabilities"]["add"] == ["DAC_READ_SEARCH", "SYS_CHROOT"]


def test_name_that_stands_for_another_image_is_not_tried_again() -> None:
    rule = build_fill(DEV, PODS, VERSIONS[0])["spec"]["podFailurePolicy"]["rules"][0]
    assert rule == {"action": "FailJob", "onExitCodes": {"containerName": "fill", "operator": "In", "values": [3]}}


def test_jobs_have_no_privileges_and_no_token() -> None:
    for job in (build_fill(DEV, PODS, VERSIONS[0]), build_switch(DEV, PODS, "1")):
        pod = pod_of(job)
        assert pod["automountServiceAccountToken"] is False
        contexts = [one["securityContext"] for one in [*pod.get("initContainers", []), *pod["containers"]]]
        assert not any(context.get("privileged") or context["allowPrivilegeEscalation"] for context in contexts)
        assert all("SYS_ADMIN" not in context["capabilities"].get("add", []) for context in contexts)


def test_cleaner_knows_every_declared_version_and_runs_alone() -> None:
    made = build_cleaner(DEV, PODS, ("1", "2"), 7)
    pod = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    variables = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
    assert variables["SLIPWAY_ROOT_VERSIONS"] == "1 2"
    assert variables["SLIPWAY_ROOT_KEEP_DAYS"] == "7"
    # It asks slurmctld which jobs run.
    assert variables["SLIPWAY_SLURMCTLD"] == "dev-slurmctld"
    assert [one["name"] for one in pod["initContainers"]] == ["munged"]
    assert {one["name"] for each in (pod["initContainers"] + pod["containers"]) for one in each["volumeMounts"]} <= {
        volume["name"] for volume in pod["volumes"]
    }
    assert made["spec"]["concurrencyPolicy"] == "Forbid"


def test_settings_have_a_fixed_name_and_change_in_place() -> None:
    made = build_settings(DEV)
    assert made["metadata"]["name"] == "dev-root"
    assert "immutable" not in made


@pytest.mark.parametrize("has_root", [pytest.param(True, id="with"), pytest.param(False, id="without")])
def test_pods_get_settings_and_logins_may_enter_only_with_a_root(has_root: bool) -> None:
    config = DEV if has_root else H100
    worker = node_set.build_node_set(config, PODS, config.node_set("cpu"))["spec"]["template"]["spec"]
    session = login.build_deployment(config, PODS)["spec"]["template"]["spec"]
    for pod in (worker, session):
        assert any(volume["name"] == "root" for volume in pod["volumes"]) == has_root
        assert any(one["mountPath"] == "/etc/slipway/root" for one in pod["containers"][0]["volumeMounts"]) == has_root
    context = session["containers"][0]["securityContext"]
    assert ("SYS_ADMIN" in context["capabilities"]["add"]) == has_root
    assert context["seccompProfile"]["type"] == ("Unconfined" if has_root else "RuntimeDefault")
    assert context["allowPrivilegeEscalation"] == config.login.has_admins == has_root
    assert any(
        one["mountPath"] == node_set.TMP_PATH for one in worker["containers"][0]["volumeMounts"]
    )  # jobs have their own /tmp in any case


def test_setuid_programs_work_in_sessions_only_if_there_are_admins() -> None:
    nobody = cluster("dev", {"login.users[0].admin": False})
    for config, has_admins in ((DEV, True), (nobody, False)):
        context = login.build_deployment(config, PODS)["spec"]["template"]["spec"]["containers"][0]["securityContext"]
        assert context["allowPrivilegeEscalation"] == has_admins
        assert ({"SETPCAP", "FSETID", "SETFCAP"} <= {*context["capabilities"]["add"]}) == has_admins


def test_tmp_of_jobs_is_on_the_sets_own_disk_where_it_claims_one_there() -> None:
    config = cluster("dev", {"nodeSets[1].volumeClaims": [{"name": "scratch", "mountPath": node_set.TMP_PATH, "size": "1Ti"}]})
    pod = node_set.build_node_set(config, PODS, config.node_set("gpu"))["spec"]["template"]["spec"]
    mounts = [one["name"] for one in pod["containers"][0]["volumeMounts"] if one["mountPath"] == node_set.TMP_PATH]
    assert mounts == ["scratch"]
    assert all(volume["name"] != "tmp" for volume in pod["volumes"])
