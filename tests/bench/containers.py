"""What a container costs: steps and jobs with an image of 1 GiB that the node has, beside bare ones; and the first start on a node, beside
skopeo and umoci by hand, in a job of the same user on the same disk.

A whole cluster of the real image runs, with a registry beside it; all is on one node. Nothing of it needs a GPU.
"""

import os
import statistics
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from tests.bench.image import unpacked
from tests.bench.results import Benchmark, Figure, figure
from tests.support.slurm import container_site as site
from tests.support.slurm.container_cluster import CACHE, Site, containers
from tests.support.slurm.container_site import PUBLIC, entry, folder
from tests.support.slurm.image_stack import ALICE
from tests.support.slurm.root_cluster import RootCluster

OWN = f"{CACHE}/{ALICE}"
IMAGE, MANY = (f"docker://{PUBLIC}/team/{name}:1" for name in ("bench-large", "bench-many"))
_FILE_KIB = 256


@dataclass(frozen=True)
class Size:
    """How often each is measured, ranks of a large step, and the images."""

    runs: int = 30
    rank_runs: int = 5
    firsts: int = 6
    ranks: int = 64
    files: int = 4096
    """Of 256 KiB each, in four layers."""
    many_files: int = 200_000
    """Tiny ones, in one layer."""
    is_disk_awaited: bool = True
    """Whether the disk is done with what came before when a start is measured: others may have much to write."""
    world: Site | None = None
    """A cluster that runs already."""


_BY_HAND = f"""
set -e
x=$(mktemp -d -p {OWN})
skopeo --insecure-policy copy --quiet IMAGE oci:$x/oci:image
umoci raw unpack --rootless --image $x/oci:image $x/rootfs >/dev/null
"""


def measure(size: Size) -> Iterator[Figure]:
    """Milliseconds of the first start beside the same by hand, and of steps, ranks and jobs in a container beyond bare ones."""
    own = containers(Path("/var/tmp/slipway-bench-containers"), "swbc-", unpacked()) if size.world is None else nullcontext(size.world)
    with own as world:
        cluster = world.cluster
        _push(world, size)
        firsts: list[float] = []
        by_hand: list[float] = []
        for number in range(size.firsts):  # in turns: a disk that has much to write is slower, whoever wrote it
            cluster.inside("gpu-0", f"rm -rf {OWN}/images")
            if number % 2:
                by_hand.append(_by_hand(cluster, IMAGE, size))
            firsts.append(_first(cluster, IMAGE, size))
            if number % 2 == 0:
                by_hand.append(_by_hand(cluster, IMAGE, size))
        ratio = statistics.median(firsts) / statistics.median(by_hand)
        what = f"an image of {size.files * _FILE_KIB // 1024:,} MiB"
        yield figure(f"first start of {what} on a node, relative to skopeo and umoci by hand", 1.3, [ratio], unit="")
        many = f"an image of {size.many_files:,} files"
        ratio = _first(cluster, MANY, size) / _by_hand(cluster, MANY, size)
        yield figure(f"first start of {many} on a node, relative to skopeo and umoci by hand", None, [ratio], unit="")
        yield figure(f"next start of {many} on that node", None, [_first(cluster, MANY, size) / 1000])
        bare, inside = "", f"--container-image={IMAGE} "
        beyond = _loop(cluster, f"srun {inside}true", size.runs) - _loop(cluster, f"srun {bare}true", size.runs)
        yield figure(f"step `srun true` in {what} that the node has, beyond a bare one", 100, [beyond], unit="ms")
        ranks = f"srun --overcommit --ntasks={size.ranks}"
        beyond = _loop(cluster, f"{ranks} {inside}true", size.rank_runs) - _loop(cluster, f"{ranks} {bare}true", size.rank_runs)
        yield figure(f"step of {size.ranks} ranks in {what} that the node has, beyond a bare one", None, [beyond], unit="ms")
        jobs: dict[str, list[float]] = {bare: [], inside: []}
        for _ in range(size.runs):
            for option, times in jobs.items():
                times.append(_time(cluster, f"srun --nodelist=gpu-0 {option}true"))
        beyond = statistics.median(jobs[inside]) - statistics.median(jobs[bare])
        yield figure(f"job `srun true` in {what} that the node has, beyond a bare one", 100, [beyond], unit="ms")


def _push(world: Site, size: Size) -> None:
    """Files of which half is noise, as programs and data are; and many files."""
    half = _FILE_KIB * 512
    layers = [
        site.layer([folder(f"data{part}"), *(entry(f"data{part}/{n}", os.urandom(half) + bytes(half)) for n in range(size.files // 4))])
        for part in range(4)
    ]
    world.public.push(world.image("bench-large", [site.base_layer("bench-large"), *layers]), "team/bench-large:1")
    world.push("bench-many", folder("many"), *(entry(f"many/{n}", b"x") for n in range(size.many_files)))


def _first(cluster: RootCluster, image: str, size: Size) -> float:
    _await_disk(cluster, size)
    return _time(cluster, f"srun --nodelist=gpu-0 --container-image={image} true")


def _by_hand(cluster: RootCluster, image: str, size: Size) -> float:
    _await_disk(cluster, size)
    took = _time(cluster, f"srun --nodelist=gpu-0 bash -c {quote(_BY_HAND.replace('IMAGE', image))}")
    cluster.inside("gpu-0", f"rm -rf {OWN}/tmp.*")  # which is no part of a start
    return took


def _await_disk(cluster: RootCluster, size: Size) -> None:
    if size.is_disk_awaited:
        cluster.inside("gpu-0", "sync")


def _time(cluster: RootCluster, command: str) -> float:
    """Milliseconds of a command in a login session, without the session's own."""
    said = cluster.ssh(
        f'a=$EPOCHREALTIME; {command} </dev/null || exit 1; b=$EPOCHREALTIME; echo "took $(( ${{b/./}} - ${{a/./}} ))"', timeout_s=600
    )
    return float(said.split()[-1]) / 1000


def _loop(cluster: RootCluster, command: str, runs: int) -> float:
    """Median milliseconds of a step in one job, after a first one."""
    script = f"""{command}; for ((n = 0; n < {runs}; n++)); do
    a=$EPOCHREALTIME; {command} </dev/null || exit 1; b=$EPOCHREALTIME; echo $(( ${{b/./}} - ${{a/./}} )); done"""
    said = cluster.ssh(f"salloc --quiet --nodelist=gpu-0 --ntasks=2 bash -c {quote(script)}", timeout_s=600)
    return statistics.median(float(word) / 1000 for word in said.split())


BENCHMARK = Benchmark(
    "containers", measure, Size(), Size(runs=1, rank_runs=1, firsts=1, ranks=2, files=4, many_files=4, is_disk_awaited=False)
)
