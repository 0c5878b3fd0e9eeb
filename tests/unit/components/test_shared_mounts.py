"""Shared folders: which pods mount them."""

from typing import Any

from components.login import login_args
from components.node_set import node_set_args
from components.shared_mounts import shared_mounts
from configs.models.storage import Mount
from tests.unit.components.examples import PODS
from tests.unit.components.stacks import DEV, H100


def test_users_names_of_mounts_cannot_meet_names_of_volumes() -> None:
    further = (Mount(name="run", mount_path="/data/run", claim="run"),)
    assert [each.name for each in shared_mounts(DEV, further)] == ["shared-root", "home", "mount-run"]


def test_node_set_gets_its_own_mounts_only_and_login_all() -> None:
    def paths(mounts: list[Any]) -> list[str]:
        return [each.mount_path for each in mounts]

    cpu = node_set_args(H100, PODS, H100.node_set("cpu"))
    assert paths(cpu["mounts"]) == ["/shared", "/home", "/data"]
    assert paths(login_args(H100, PODS)["mounts"]) == ["/shared", "/home", "/data", "/scratch"]
