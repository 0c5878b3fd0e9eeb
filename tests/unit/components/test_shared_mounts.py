"""Shared folders: which pods mount them."""

from typing import Any

from components.login import build_deployment
from components.node_set import build_node_set
from components.shared_mounts import shared_mounts
from configs.models.storage import Mount
from tests.support.components.examples import PODS
from tests.support.components.stacks import DEV, H100


def test_users_names_of_mounts_cannot_meet_names_of_volumes() -> None:
    further = (Mount(name="run", mount_path="/data/run", claim="run"),)
    assert [each.name for each in shared_mounts(DEV, further)] == ["shared-root", "home", "mount-run"]


def test_node_set_gets_its_own_mounts_only_and_login_all() -> None:
    pods = [build_node_set(H100, PODS, H100.node_set("cpu")), build_deployment(H100, PODS)]
    containers: list[Any] = [pod["spec"]["template"]["spec"]["containers"][0] for pod in pods]
    shared = [[each["mountPath"] for each in one["volumeMounts"] if "mountPropagation" in each] for one in containers]
    assert shared == [["/shared", "/home", "/data"], ["/shared", "/home", "/data", "/scratch"]]
