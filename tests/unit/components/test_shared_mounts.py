"""Shared folders: from which source, and which pods mount them."""

from typing import Any

import pytest

from components.login import login_args
from components.node_set import node_set_args
from components.shared_mounts import shared_mount, shared_mounts
from configs.models.nfs_server import NfsServer
from configs.models.storage import Disk, Mount, Nfs, Source
from tests.unit.components.examples import PODS
from tests.unit.components.stacks import DEV, H100


@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param(Source(host_path="/srv"), {"host_path": "/srv"}, id="host-path"),
        pytest.param(Source(claim="homes"), {"claim": "homes"}, id="claim"),
        pytest.param(Source(disk=Disk(size="10Gi")), {"disk": {"size": "10Gi"}}, id="disk"),
        pytest.param(Source(storage_class="efs", size="1Ti"), {"storage_class": "efs", "size": "1Ti"}, id="storage-class"),
        pytest.param(
            Source(nfs=Nfs(server="nfs", path="/home", options=("nfsvers=4.1",))),
            {"nfs": {"server": "nfs", "path": "/home", "options": ["nfsvers=4.1"]}},
            id="nfs",
        ),
    ],
)
def test_source_is_passed_on_as_what_it_is(source: Source, said: dict[str, Any]) -> None:
    assert shared_mount("home", "/home", source) == {"name": "home", "mount_path": "/home", "read_only": False, **said}


def test_volume_on_the_clusters_own_server_is_nfs_from_an_address_that_is_known_before_anything_runs() -> None:
    server = NfsServer(size="1Ti", cluster_ip="10.96.20.49", options=("nfsvers=4.2",))
    made = shared_mount("mount-data", "/data", Source(nfs_server=True), server=server)
    assert made.get("nfs") == {"server": "10.96.20.49", "path": "/mount-data", "options": ["nfsvers=4.2"]}


def test_users_names_of_mounts_cannot_meet_names_of_volumes() -> None:
    further = (Mount(name="run", mount_path="/data/run", claim="run"),)
    assert [mount["name"] for mount in shared_mounts(DEV, further)] == ["shared-root", "home", "mount-run"]


def test_node_set_gets_its_own_mounts_only_and_login_all() -> None:
    def paths(mounts: list[Any]) -> list[str]:
        return [mount["mount_path"] for mount in mounts]

    cpu = node_set_args(H100, PODS, H100.node_set("cpu"))
    assert paths(cpu["mounts"]) == ["/shared", "/home", "/data"]
    assert paths(login_args(H100, PODS)["mounts"]) == ["/shared", "/home", "/data", "/scratch"]
