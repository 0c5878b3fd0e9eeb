"""The cluster's own NFS server in a pod without Kubernetes, and disks for it."""

import shutil
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from components import nfs_server
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.render.nfs_server import render
from tests.support.components.examples import PODS
from tests.support.patience import patience
from tests.support.slurm.image_cluster import program_mount, write_volume
from tests.support.slurm.image_pods import Container, Machine, PodError, wait_for
from tests.support.slurm.image_stack import ALICE, STACK
from tests.support.slurm.nfs_client import Client

PREFIX = "swnf-"
POD = "t-nfs-0"


def cluster_of(**server: Any) -> Cluster:
    """A cluster with all its storage on its own server."""
    storage = {
        "nfsServer": {"size": "1Gi", "clusterIP": "198.18.255.10", **server},
        "sharedRoot": {"nfsServer": True},
        "home": {"nfsServer": True},
        "mounts": [
            {"name": "data", "mountPath": "/data", "nfsServer": True},
            {"name": "sets", "mountPath": "/sets", "nfsServer": True, "readOnly": True},
        ],
    }
    return load_cluster({**STACK, "storage": storage}, Path(), "Pulumi.test.yaml")


@dataclass
class Server:
    """The server's pod, started again at will, and its clients."""

    machine: Machine
    data: Path
    """The disk."""
    container: Container | None = None
    clients: list[Client] = field(default_factory=list[Client])

    def start(self, cluster: Cluster, data: Path | None = None, replace: Mapping[str, str] | None = None) -> None:
        """Starts it as its StatefulSet says, with some text of ganesha.conf replaced; returns when it answers."""
        conf = render(cluster)
        for old, new in (replace or {}).items():
            assert conf.count(old) == 1
            conf = conf.replace(old, new)
        server = cluster.storage.nfs_server or pytest.fail("no server")
        pod = nfs_server.build_server(cluster, {**PODS, "cluster": "t"}, server)["spec"]["template"]["spec"]
        [container] = pod["containers"]
        folder = self.machine.folder
        sources = {
            "config": write_volume(folder / "config", {"ganesha.conf": conf}),
            "users": write_volume(folder / "users", {"passwd": f"alice:x:{ALICE}:{ALICE}::/home/alice:/bin/bash\n"}),
            "data": data or self.data,
            "run": self.empty("run"),
            "tmp": self.empty("tmp"),
        }
        own = [each for each in container["volumeMounts"] if each["name"] in sources]
        mounts = {each["mountPath"]: (sources[each["name"]], each.get("readOnly", False)) for each in own} | program_mount("nfs_server")
        rights = container["securityContext"]
        self.container = self.machine.start(
            POD,
            "nfs",
            container["command"],
            mounts,
            {each["name"]: each["value"] for each in container["env"]},
            user=rights["runAsUser"],
            capabilities=rights["capabilities"]["add"],
            read_only=rights["readOnlyRootFilesystem"],
            cwd=container["workingDir"],
        )
        try:
            wait_for("an answer on port 2049", self.answers)
        except PodError as error:
            log = self.container.log
            self.stop("KILL")
            raise PodError(f"{error}\n{log}") from None

    def answers(self) -> bool:
        return "ok" in self.outside("bash", "-c", f": </dev/tcp/{self.address}/2049 && echo ok")

    @property
    def address(self) -> str:
        return self.machine.addresses[POD]

    def empty(self, name: str) -> Path:
        """An empty volume, as a new pod gets it."""
        shutil.rmtree(self.machine.folder / name, ignore_errors=True)
        (self.machine.folder / name).mkdir()
        (self.machine.folder / name).chmod(0o777)
        return self.machine.folder / name

    def stop(self, signal: str = "TERM") -> int:
        assert self.container is not None
        return self.container.stop(signal)

    def client(self, uid: int = 0, privileged: bool = True, minor: int = 1) -> Client:
        """A client of its own, as one user; hung up at the test's end."""
        made = Client(self.address, f"/run/netns/{PREFIX}hub", uid, privileged=privileged, minor=minor)
        self.clients.append(made)
        return made

    def outside(self, *command: str) -> str:
        """Runs a command on the pods' network. Raises PodError when it fails."""
        full = ["nsenter", f"--net=/run/netns/{PREFIX}hub", *command]
        done = subprocess.run(full, capture_output=True, text=True, timeout=60 * patience(), check=False)
        if done.returncode:
            raise PodError(f"{command[0]} gave {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout


@contextmanager
def block_device(image: Path) -> Generator[Path]:
    """A file as a disk: the first loop device that is free."""
    made = subprocess.run(["losetup", "--show", "--find", str(image)], check=True, capture_output=True, text=True)
    try:
        yield Path(made.stdout.strip())
    finally:
        subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


@contextmanager
def mounted(server: Server, device: Path) -> Generator[Path]:
    """Where a disk is mounted; the server on it, if any, is killed before that ends."""
    place = server.machine.folder / f"mounted-{device.name}"
    place.mkdir()
    subprocess.run(["mount", str(device), str(place)], check=True)
    try:
        yield place
    finally:
        if server.container is not None and server.container.id in server.machine.containers:
            server.stop("KILL")
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


def make_disk(server: Server, kind: str, mebibytes: int) -> Path:
    """A file with a file system."""
    image = server.machine.folder / f"{kind}.img"
    with image.open("wb") as file:
        file.truncate(mebibytes << 20)
    subprocess.run([f"mkfs.{kind}", "-q", str(image)], check=True, capture_output=True)
    return image
