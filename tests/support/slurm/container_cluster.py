"""A real two-node cluster whose jobs run in containers, with registries, public and private: what the tests of containers share."""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

import pytest

from tests.support.slurm import container_site as site
from tests.support.slurm.container_site import HOST, PUBLIC, Registry, entry, folder, write_image
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_stack import ALICE
from tests.support.slurm.root_cluster import RootCluster, running

ONE = f"docker://{PUBLIC}/team/one:1"
CACHE = "/var/spool/slipway/containers"


class Site:
    """The cluster, its registries, and the words that the tests use."""

    def __init__(self, cluster: RootCluster) -> None:
        self.cluster = cluster
        self.public = Registry(cluster.machine, cluster.machine.folder / "registry")
        self.private = Registry(cluster.machine, cluster.machine.folder / "registry-private", is_private=True)

    def prepare(self) -> None:
        """Registries with one image, and what users need to reach them."""
        with (self.cluster.machine.folder / "hosts").open("a") as hosts:
            hosts.write(f"{self.cluster.machine.addresses['hub']} {HOST}\n")
        for registry in (self.public, self.private):
            registry.start()
        layout = self.image("one", [site.base_layer("one")], env=["FROM_IMAGE=yes", "BOTH=image", "SLURM_JOB_ID=0"], workdir="/work")
        for registry in (self.public, self.private):
            registry.push(layout, "team/one:1")
        for user in ("alice", "bob"):
            for name, text in site.user_files(self.private.folder).items():
                path = f".config/containers/{name}"
                self.cluster.ssh(f"mkdir -p {quote(str(Path(path).parent))} && printf %s {quote(text)} > {quote(path)}", user=user)

    def image(self, name: str, layers: list[bytes], **more: object) -> Path:
        """An OCI layout."""
        return write_image(self.cluster.machine.folder / f"image-{name}", layers, **more)  # type: ignore[arg-type]

    def push(self, name: str, *entries: object, **more: object) -> str:
        """An image in the public registry, with files beside the base's; gives its name."""
        layers = [site.base_layer(name), *([site.layer(entries)] if entries else [])]  # type: ignore[arg-type]
        self.public.push(self.image(name.replace("/", "-"), layers, **more), f"team/{name}:1")
        return f"docker://{PUBLIC}/team/{name}:1"

    def srun(self, image: str, script: str, *options: str, user: str = "alice", check: bool = True) -> str:
        """Runs a script in a container on one node."""
        return self.cluster.ssh(f"srun {' '.join(options)} --container-image={image} sh -c {quote(script)}", user=user, check=check)

    def refused(self, image: str, *options: str, user: str = "alice") -> str:
        """The one line that a step without a container gives."""
        said = self.srun(image, "echo INSIDE", "--nodelist=gpu-0", *options, user=user, check=False)
        assert "INSIDE" not in said
        lines = [line for line in said.splitlines() if not line.startswith("srun: ")]
        assert [line.startswith("slipway: gpu-0: ") for line in lines] == [True], said
        return lines[0]

    def cached(self, node: str = "gpu-0", user: int = ALICE) -> list[str]:
        """What a user's cache of images has on a node, locks left out."""
        names = self.cluster.inside(node, f"ls {CACHE}/{user}/images 2>/dev/null || true").split()
        return [name for name in names if not name.endswith(".lock")]


@contextmanager
def containers(folder: Path, prefix: str, image_root: Path) -> Generator[Site]:
    """Two nodes, a versioned root, two registries."""
    with running(folder, prefix, image_root, versions=("v1",), job_disks={"gpu-1": "scratch=32"}, image_disks=16384) as cluster:
        world = Site(cluster)
        try:
            world.prepare()
            yield world
        finally:
            world.public.stop()
            world.private.stop()


def rest(world: Site) -> None:
    """Until workers are idle, with both registries: each test starts so."""
    for registry in (world.public, world.private):
        if registry.process is None:
            registry.start()
    wait_for("idle workers", world.cluster.ready, deadline_s=60)


def big(world: Site, name: str, mib: int = 48) -> str:
    """An image that takes a moment."""
    return world.push(name, entry("blob", os.urandom(mib << 20)))


def begin_slow_pull(world: Site, name: str) -> str:
    """A job whose pull is under way, with skopeo held; gives its number."""
    job = world.cluster.ssh(f"sbatch --parsable --nodelist=gpu-0 --output=out.%j --wrap='srun --container-image={name} cat /etc/word'")
    wait_for("a pull", lambda: signal_pulls(name, signal.SIGSTOP), deadline_s=30, pause_s=0.005)
    return job


def signal_pulls(name: str, number: signal.Signals) -> str:
    """Stops skopeo in the midst of a copy of an image, or lets it go on; gives the step that pulls, empty where none does. Other tests pull
    meanwhile."""
    return signal_program("skopeo", "copy", f"{name.rpartition(':')[0]}@", number)


def signal_program(program: str, word: str, part: str, number: signal.Signals) -> str:
    """Sends a signal to the processes of a program that was given a word, and another one with this part; gives their step, empty where
    there are none."""
    step = ""
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = status.read_text(errors="replace").split("\0")
            if words[0].endswith(program) and word in words and any(part in each for each in words):
                variables = (status.parent / "environ").read_text(errors="replace").split("\0")
                os.kill(int(status.parent.name), number)
                step = next(each for each in variables if each.startswith("SLURM_STEP_ID=")).partition("=")[2]
        except OSError:
            continue
    return step


@pytest.fixture(scope="module")
def world(image_root: Path) -> Iterator[Site]:
    """Two nodes, a versioned root, two registries."""
    with containers(Path("/var/tmp/slipway-containers"), "swco-", image_root) as world:
        yield world


def assert_has_all_files(world: Site, count: int) -> None:
    """Runs an image of that many files, whose tables are larger than all that they hold."""
    name = world.push(f"many-{count}", folder("many"), *(entry(f"many/{n}", b"x") for n in range(count)))
    said = world.srun(name, f"set -- /many/*; echo $# files; cat /many/{count - 1}", "--nodelist=gpu-0")
    assert said.splitlines() == [f"{count} files", "x"]
