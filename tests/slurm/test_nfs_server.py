"""The cluster's own NFS server for real: the image's nfs-ganesha under runc with the mounts and rights of its StatefulSet.

Clients are user-space ones, since no kernel of a test machine need mount NFS: one of NFSv4.1 of our own, and libnfs' tools, which know
NFSv4.0 and so find the server only where a test allows that.
"""

import json
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from configs.load import load_cluster
from configs.render.nfs_server import GRACE_S
from tests.support.patience import seconds
from tests.support.slurm import nfs_client
from tests.support.slurm.image_cluster import write_volume
from tests.support.slurm.image_pods import Machine, PodError, wait_for
from tests.support.slurm.image_stack import ALICE, BOB, STACK
from tests.support.slurm.nfs_client import Client, NfsError
from tests.support.slurm.nfs_server import POD, PREFIX, Server, block_device, cluster_of, make_disk, mounted

FOLDER = Path("/var/tmp/slipway-nfs-pods")


@pytest.fixture(scope="module")
def pod(image_root: Path) -> Iterator[Server]:
    """The network and an empty disk; no server yet."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    (FOLDER / "disk").mkdir()
    try:
        machine.open({POD: ["t-nfs"]})
        yield Server(machine, FOLDER / "disk")
    finally:
        machine.close()


@pytest.fixture
def server(pod: Server) -> Iterator[Server]:
    """The server, running, without clients of before that it would wait for; it stops after the test, and its disk stays."""
    shutil.rmtree(pod.data / ".ganesha", ignore_errors=True)
    pod.start(cluster_of())
    yield pod
    for client in pod.clients:
        client.close()
    pod.clients.clear()
    if pod.container is not None and pod.container.id in pod.machine.containers:
        pod.stop("KILL")


def refused(status: int, act: Any, *arguments: Any) -> None:
    """The server refuses this, with this status."""
    with pytest.raises(NfsError) as caught:
        act(*arguments)
    assert caught.value.status == status, caught.value


def test_written_file_is_read_back_renamed_and_removed(server: Server) -> None:
    assert server.container is not None
    assert {json.loads(line)["daemon"] for line in server.container.lines} == {"nfs-server", "nfs-ganesha"}
    root = server.client()
    root.write("/shared-root/one", b"first\n")
    assert root.read("/shared-root/one") == b"first\n"
    root.make_folder("/shared-root/etc")
    root.rename("/shared-root/one", "/shared-root/etc/two")
    assert root.names("/shared-root/etc") == ["two"]
    assert (server.data / "shared-root" / "etc" / "two").read_bytes() == b"first\n"
    root.remove("/shared-root/etc/two")
    root.remove("/shared-root/etc")
    assert "etc" not in root.names("/shared-root")


def test_each_volume_is_an_export_and_a_file_system_of_its_own(server: Server) -> None:
    root = server.client()
    assert root.names("/") == ["home", "mount-data", "mount-sets", "shared-root"]
    assert len({root.file_system(f"/{name}") for name in root.names("/")}) == 4
    root.write("/shared-root/only-here", b"")
    assert [name for name in root.names("/") if "only-here" in root.names(f"/{name}")] == ["shared-root"]


def test_what_is_not_exported_is_not_there(server: Server) -> None:
    root = server.client()
    assert (server.data / ".ganesha").is_dir()
    for path in ("/nope", "/.ganesha", "/srv/nfs", "/etc"):
        refused(nfs_client.NOENT, root.handle, path)


def test_root_is_root_on_the_shared_root_and_nobody_on_homes_and_data(server: Server) -> None:
    root = server.client()
    root.write("/shared-root/owned", b"")
    assert root.owner_of("/shared-root/owned") == (0o644, "0", "0")
    refused(nfs_client.ACCESS, root.write, "/home/owned", b"")
    refused(nfs_client.ACCESS, root.names, "/home/alice")
    root.write("/mount-data/owned", b"")
    assert root.owner_of("/mount-data/owned")[1] == str(2**32 - 2)


def test_user_finds_a_home_and_nobody_else_looks_into_it(server: Server) -> None:
    alice, bob = server.client(ALICE), server.client(BOB)
    assert alice.owner_of("/home/alice") == (0o700, str(ALICE), str(ALICE))
    assert ".bashrc" in alice.names("/home/alice")
    alice.write("/home/alice/mine", b"secret")
    refused(nfs_client.ACCESS, bob.names, "/home/alice")
    refused(nfs_client.ACCESS, bob.write, "/home/bob", b"")


def test_user_of_a_later_change_gets_a_home_without_a_restart(server: Server) -> None:
    bob = server.client(BOB)
    users = f"alice:x:{ALICE}:{ALICE}::/home/alice:/bin/bash\nbob:x:{BOB}:{BOB}::/home/bob:/bin/bash\n"
    write_volume(server.machine.folder / "users", {"passwd": users})

    def owner() -> tuple[int, str, str] | None:
        try:
            return bob.owner_of("/home/bob")
        except NfsError:
            return None

    assert wait_for("a home", owner, deadline_s=20) == (0o700, str(BOB), str(BOB))


def test_top_of_a_mount_is_for_everyone_and_each_file_for_its_owner(server: Server) -> None:
    alice, bob = server.client(ALICE), server.client(BOB)
    alice.write("/mount-data/hers", b"x")
    assert bob.read("/mount-data/hers") == b"x"
    refused(nfs_client.PERM, bob.remove, "/mount-data/hers")
    alice.remove("/mount-data/hers")


def test_read_only_mount_refuses_writes(server: Server) -> None:
    (server.data / "mount-sets" / "set").write_text("given\n")
    alice = server.client(ALICE)
    assert alice.read("/mount-sets/set") == b"given\n"
    refused(nfs_client.ROFS, alice.write, "/mount-sets/mine", b"")
    refused(nfs_client.ROFS, alice.remove, "/mount-sets/set")


def test_lock_is_for_one_client_at_a_time(server: Server) -> None:
    one, other = server.client(), server.client()
    wait_for("an end of the grace period", lambda: try_open(one, "/shared-root/lock", create=True), deadline_s=GRACE_S)
    handle, stateid = one.open("/shared-root/lock")
    one.lock(handle, stateid)
    refused(nfs_client.DENIED, other.lock, *other.open("/shared-root/lock"))


@pytest.mark.parametrize("signal", [pytest.param("KILL", id="killed"), pytest.param("TERM", id="stopped")])
def test_restarted_server_has_the_data_and_handles_and_returns_locks(server: Server, signal: str) -> None:
    holder, other = server.client(), server.client()
    handle, stateid = holder.open(f"/shared-root/{signal}", create=True)
    holder.write_at(handle, stateid, 0, b"before")
    holder.lock(handle, stateid)
    folder = other.handle("/shared-root")
    server.stop(signal)
    began, grace_s = time.monotonic(), min(seconds(GRACE_S), 180)  # the most that the server takes
    server.start(cluster_of(), replace={f"Grace_Period = {GRACE_S};": f"Grace_Period = {grace_s};"})

    other.connect(reclaiming=True)
    assert other.read_handle(handle) == b"before"
    assert other.handle("/shared-root") == folder
    # Nobody gets in before the one who had it is back.
    refused(nfs_client.GRACE, other.open, f"/shared-root/{signal}")
    other.reclaimed()

    holder.connect(reclaiming=True)
    stateid = holder.reopen(handle)
    holder.lock(handle, stateid, reclaim=True)
    holder.reclaimed()
    wait_for("an end of the grace period", lambda: try_open(other, f"/shared-root/{signal}"), deadline_s=GRACE_S)
    waited = time.monotonic() - began
    assert waited < grace_s, f"grace lasted {waited:.1f} s although all clients were back"
    refused(nfs_client.DENIED, other.lock, *other.open(f"/shared-root/{signal}"))
    holder.write_at(handle, stateid, 6, b" and after")
    assert other.read_handle(handle) == b"before and after"


def try_open(client: Client, path: str, create: bool = False) -> bool:
    """True once the server gives new opens again."""
    try:
        client.open(path, create)
    except NfsError as error:
        if error.status != nfs_client.GRACE:
            raise
        return False
    return True


def test_handles_survive_a_new_mount_and_another_device_of_the_disk(server: Server) -> None:
    """XFS numbers itself by its device, which is another one after each move of a disk."""
    server.stop()
    image = make_disk(server, "xfs", 320)
    root = None
    with block_device(image) as device, mounted(server, device) as disk:
        server.start(cluster_of(), data=disk)
        root = server.client()
        handles = {path: root.handle(path) for path in ("/home", "/shared-root", "/mount-data")}
        handles["/shared-root/file"] = root.write("/shared-root/file", b"whole")
        first, number = device, disk.stat().st_dev
    storage = {
        "nfsServer": {"size": "1Gi", "clusterIP": "198.18.255.10"},
        "sharedRoot": {"nfsServer": True},
        "home": {"nfsServer": True},
        "mounts": [{"name": name, "mountPath": f"/{name}", "nfsServer": True} for name in ("before", "data")],
    }
    other = load_cluster({**STACK, "storage": storage}, Path(), "Pulumi.test.yaml")
    with block_device(make_disk(server, "ext4", 1)), block_device(image) as device, mounted(server, device) as disk:
        assert device != first
        assert disk.stat().st_dev != number
        server.start(other, data=disk)
        root.connect(reclaiming=True)
        assert {path: root.handle(path) for path in handles} == handles
        assert root.read_handle(handles["/shared-root/file"]) == b"whole"


def test_full_disk_is_told_and_survived(server: Server) -> None:
    server.stop()
    with block_device(make_disk(server, "ext4", 16)) as device, mounted(server, device) as disk:
        server.start(cluster_of(), data=disk)
        root = server.client()
        handle, stateid = root.open("/shared-root/big", create=True)

        def fill() -> None:
            for part in range(40):
                root.write_at(handle, stateid, part << 19, bytes(1 << 19))

        refused(nfs_client.NOSPC, fill)
        root.remove("/shared-root/big")
        root.write("/shared-root/small", b"there is room again")
        assert root.read("/shared-root/small") == b"there is room again"


def test_client_that_is_no_kernel_is_refused(server: Server) -> None:
    """A user's own program in a job gets no port below 1024, and may not say who it is."""
    liar = server.client(privileged=False)
    refused(nfs_client.NOENT, liar.names, "/shared-root")
    assert liar.names("/") == []


def test_other_networks_are_refused(server: Server) -> None:
    server.stop()
    server.start(cluster_of(networks=["198.18.0.0/24"]))
    refused(nfs_client.NOENT, server.client().names, "/shared-root")
    server.stop()
    server.start(cluster_of(networks=["198.18.255.0/24"]))
    assert "shared-root" in server.client().names("/")


def test_older_protocols_are_refused(server: Server) -> None:
    refused(nfs_client.MINOR_VERS_MISMATCH, partial(server.client, minor=0))
    with pytest.raises(PodError, match="MINOR_VERS_MISMATCH"):
        server.outside("nfs-ls", f"nfs://{server.address}/home?version=4")
    with pytest.raises(PodError, match="nfs_service failed"):
        server.outside("nfs-ls", f"nfs://{server.address}/home?version=3")


def test_another_implementation_copies_lists_and_reads(server: Server) -> None:
    server.stop()
    server.start(cluster_of(), replace={"Minor_Versions = 1, 2;": "Minor_Versions = 0, 1, 2;"})
    url = f"nfs://{server.address}/shared-root"
    source = server.machine.folder / "source"
    source.write_bytes(bytes(range(250)) * 4)  # libnfs 4.0.0 itself cannot send more by NFSv4 at once
    server.outside("nfs-cp", str(source), f"{url}/copy?version=4")
    assert "copy" in server.outside("nfs-ls", f"{url}?version=4")
    server.outside("nfs-cp", f"{url}/copy?version=4", str(source.with_name("back")))
    assert source.with_name("back").read_bytes() == source.read_bytes()
    with pytest.raises(PodError, match="NOENT"):
        server.outside("nfs-ls", f"nfs://{server.address}/nope?version=4")
