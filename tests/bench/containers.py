"""What a container costs: steps and jobs with an image of 1 GB that the node has, beside bare ones in turns; and the first start on a node,
beside skopeo and umoci by hand, in a job of the same user on the same disk.

A whole cluster of the real image runs, with a registry beside it; all is on one node. Nothing of it needs a GPU.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.slurm import container_site as site
from tests.slurm.container_site import PUBLIC, Registry, entry, folder, write_image
from tests.slurm.image_cluster import ALICE
from tests.slurm.image_root import unpack
from tests.slurm.root_cluster import RootCluster, running

RUNS = 30
FIRSTS = 6
RANKS = 64
FILES, FILE_KIB = 4096, 256
"""1 GiB in four layers."""
CACHE = f"/var/spool/slipway/containers/{ALICE}"
IMAGE, MANY = f"docker://{PUBLIC}/bench/large:1", f"docker://{PUBLIC}/bench/many:1"
MANY_FILES = 200_000
_BY_HAND = f"""
set -e
x=$(mktemp -d -p {CACHE})
skopeo --insecure-policy copy --quiet IMAGE oci:$x/oci:image
umoci raw unpack --rootless --image $x/oci:image $x/rootfs >/dev/null
"""


def measure() -> dict[str, float]:
    """Milliseconds, medians: a step, 64 ranks and a job, each bare and in a container; the first start, and the same by hand."""
    with _site() as cluster:
        found: dict[str, float] = {}
        firsts: list[float] = []
        by_hand: list[float] = []
        for number in range(FIRSTS):  # in turns: a disk that has much to write is slower, whoever wrote it
            cluster.inside("gpu-0", f"rm -rf {CACHE}/images")
            if number % 2:
                by_hand.append(_by_hand(cluster, IMAGE))
            firsts.append(_first(cluster, IMAGE))
            if number % 2 == 0:
                by_hand.append(_by_hand(cluster, IMAGE))
        found["first"], found["by hand"] = statistics.median(firsts), statistics.median(by_hand)
        found["first of 200,000 files"], found["these by hand"] = _first(cluster, MANY), _by_hand(cluster, MANY)
        found["next of 200,000 files"] = _first(cluster, MANY)
        options = {"bare": "", "container": f"--container-image={IMAGE}"}
        ranks = "--overcommit --ntasks=64"
        for name, option in options.items():
            found[f"step {name}"] = _loop(cluster, f"srun {option} true")
            found[f"ranks {name}"] = _loop(cluster, f"srun {ranks} {option} true", 5)
        jobs: dict[str, list[float]] = {name: [] for name in options}
        for _ in range(RUNS):
            for name, option in options.items():
                jobs[name].append(_time(cluster, f"srun --nodelist=gpu-0 {option} true"))
        return found | {f"job {name}": statistics.median(times) for name, times in jobs.items()}


def _first(cluster: RootCluster, image: str) -> float:
    cluster.inside("gpu-0", "sync")  # the disk is done with what came before
    return _time(cluster, f"srun --nodelist=gpu-0 --container-image={image} true")


def _by_hand(cluster: RootCluster, image: str) -> float:
    cluster.inside("gpu-0", "sync")
    took = _time(cluster, f"srun --nodelist=gpu-0 bash -c {_quoted(_BY_HAND.replace('IMAGE', image))}")
    cluster.inside("gpu-0", f"rm -rf {CACHE}/tmp.*")  # which is no part of a start
    return took


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _time(cluster: RootCluster, command: str) -> float:
    """Milliseconds of a command in a login session, without the session's own."""
    said = cluster.ssh(
        f'a=$EPOCHREALTIME; {command} </dev/null || exit 1; b=$EPOCHREALTIME; echo "took $(( ${{b/./}} - ${{a/./}} ))"', timeout_s=600
    )
    return float(said.split()[-1]) / 1000


def _loop(cluster: RootCluster, command: str, runs: int = RUNS) -> float:
    """Median milliseconds of a step in one job, after a first one."""
    script = f"""{command}; for ((n = 0; n < {runs}; n++)); do
    a=$EPOCHREALTIME; {command} </dev/null || exit 1; b=$EPOCHREALTIME; echo $(( ${{b/./}} - ${{a/./}} )); done"""
    said = cluster.ssh(f"salloc --quiet --nodelist=gpu-0 --ntasks=2 bash -c {_quoted(script)}", timeout_s=600)
    return statistics.median(float(word) / 1000 for word in said.split())


@contextmanager
def _site() -> Generator[RootCluster]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as image:
        root = unpack(Path(image))
        root.chmod(0o755)
        with running(Path("/var/tmp/slipway-bench-containers"), "swbc-", root, versions=("v1",)) as cluster:
            registry = Registry(cluster.machine, cluster.machine.folder / "registry")
            with (cluster.machine.folder / "hosts").open("a") as hosts:
                hosts.write(f"{cluster.machine.addresses['hub']} {site.HOST}\n")
            registry.start()
            try:
                registry.push(write_image(cluster.machine.folder / "large", [site.base_layer("large"), *_layers()]), "bench/large:1")
                many = [folder("many"), *(entry(f"many/{n}", b"x") for n in range(MANY_FILES))]
                registry.push(write_image(cluster.machine.folder / "many", [site.base_layer("many"), site.layer(many)]), "bench/many:1")
                text = f'[[registry]]\nlocation = "{PUBLIC}"\ninsecure = true\n'
                cluster.ssh(f"mkdir -p .config/containers && printf %s {_quoted(text)} > .config/containers/registries.conf")
                yield cluster
            finally:
                registry.stop()


def _layers() -> list[bytes]:
    """Files of which half is noise, as programs and data are."""
    half = FILE_KIB * 512
    return [
        site.layer([folder(f"data{part}"), *(entry(f"data{part}/{n}", os.urandom(half) + bytes(half)) for n in range(FILES // 4))])
        for part in range(4)
    ]


def main() -> None:
    """Prints the figures."""
    began = time.monotonic()
    for name, value in measure().items():
        print(f"{name}: {value:.0f} ms")
    print(f"in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
