"""What the shared root costs: a job `srun true` in the root and outside of it, in turns; how long it takes to fill a version, beside
`tar x` of the same files, and to switch.

A whole cluster of the real image runs for jobs and for the switch, without accounting; all is on one node. A job pays for making and
removing its mounts. Versions are filled on the disk of /var/tmp, by the Job's own script; all ways read what is in memory already,
`tar x` and the script the same tar, and end when all is on the disk.
"""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from tests.bench.image import unpacked
from tests.bench.results import Benchmark, Figure, figure
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.root_cluster import CONF, RootCluster, running
from tests.support.slurm.root_jobs import PROJECT, play

_FILLS = """
now() { echo "${EPOCHREALTIME/[.,]/}"; }
disk=$DISK; umount "$WORK/filler/shared"; mount --bind "$disk" "$WORK/filler/shared"
(cd "$WORK/source" && rm -rf -- $LEFT_OUT)
tar -C "$WORK/source" --one-file-system -cf "$disk/root.tar" .
sum=$(sha256sum <"$disk/root.tar" | cut -d ' ' -f 1)
cat "$disk/root.tar" >/dev/null; tar -C "$WORK/source" --one-file-system -c . | cat >/dev/null
unpack() { mkdir "$disk/x"; tar -C "$disk/x" -xpf "$disk/root.tar" --numeric-owner --xattrs --xattrs-include='*' --acls; sync -f "$disk"; }
taken() { # name command...
  sync -f "$disk"; local begin; begin=$(now); "${@:2}"; echo "$1 $(( $(now) - begin ))"
  rm -rf "$disk"/x "$disk"/versions "$disk"/sources "$disk"/filling
}
plain() { taken plain unpack; }
image() { taken image fill one img:1; }
tarball() { taken tar fill_tar one file:///shared/root.tar "$sum"; }
# What comes before a fill costs it up to a tenth, so the order is another one each time.
for ((n = 0; n < COUNT; n++)); do for way in $(shuf -e plain image tarball); do $way; done; done
"""

_LOOP = """
now() { echo "${EPOCHREALTIME/[.,]/}"; }
[[ $SLIPWAY_ROOT_VERSION == WANTED ]] || exit 1
srun --nodelist=gpu-0 true < /dev/null
begin=$(now)
for ((n = 0; n < COUNT; n++)); do srun --nodelist=gpu-0 true < /dev/null || exit 1; done
echo "took $(( ($(now) - begin) / COUNT ))"
"""


@dataclass(frozen=True)
class Jobs:
    """Jobs inside and outside in each turn, and switches."""

    turns: int = 5
    runs: int = 100
    switches: int = 8
    cluster: RootCluster | None = None
    """One that runs already."""


def measure(size: Jobs) -> Iterator[Figure]:
    """What a job takes from a login session, and how soon one runs in another version."""
    own = running(Path("/var/tmp/slipway-root-bench"), "swbr-", unpacked()) if size.cluster is None else nullcontext(size.cluster)
    with own as cluster:
        taken_ms: dict[str, list[float]] = {"v1": [], "": []}
        for _ in range(size.turns):
            for version, turns in taken_ms.items():
                cluster.settings(CONF if version else None)
                loop = _LOOP.replace("WANTED", f'"{version}"').replace("COUNT", str(size.runs))
                turns.append(int(cluster.ssh(loop, timeout_s=600).split("took ")[1]) / 1000)
                wait_for("an idle node", cluster.ready)
        beyond_ms = statistics.mean(taken_ms["v1"]) - statistics.mean(taken_ms[""])
        say = f"job `srun true` inside the shared root, beyond one outside; means of {size.turns * size.runs}"
        yield figure(say, 20, [beyond_ms], unit="ms")
        cluster.settings(CONF)
        switches = [_switch(cluster, "v2" if run % 2 == 0 else "v1") for run in range(size.switches)]
        yield figure("switch of the root until a job has run in the new version", 5, switches)


def _switch(cluster: RootCluster, version: str) -> float:
    """Seconds from the start of the switch script to a job that ran in the new version."""
    begin = time.monotonic()
    switch = f'mount --bind "$SHARED" "$IMAGE/shared"; SLIPWAY_ROOT_VERSION={version} exec chroot "$IMAGE" bash -c "$SCRIPT"'
    script = (PROJECT / "programs" / "start" / "root-switch.sh").read_text()
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "SHARED": str(cluster.shared),
        "IMAGE": str(cluster.machine.image),
        "SCRIPT": script,
    }
    subprocess.run(["unshare", "--mount", "bash", "-ec", switch], env=environment, capture_output=True, check=True)
    seen = cluster.ssh("srun --nodelist=gpu-0 bash -c 'echo $SLIPWAY_ROOT_VERSION'")
    took = time.monotonic() - begin
    if seen != version:
        raise RuntimeError(f"a job after the switch to {version} saw {seen}")
    wait_for("an idle node", cluster.ready)
    return took


@dataclass(frozen=True)
class Fills:
    """How often a version is filled in each way."""

    runs: int = 8
    left_out: str = ""
    """Folders of the image that are not filled."""
    image: Path | None = None


def measure_fills(size: Fills) -> Iterator[Figure]:
    """Of the Slurm image's own files: `plain` by `tar x`, `image` and `tar` by the fill script."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        work, disk = (Path(folder) / name for name in ("work", "disk"))
        for each in (work, disk):
            each.mkdir()
        # The scene's own files are in memory; the volume is on the disk.
        scene = _FILLS.replace("COUNT", str(size.runs))
        printed, _ = play(size.image or unpacked(), work, scene, timeout_s=1200, DISK=str(disk), LEFT_OUT=size.left_out)
    taken: dict[str, list[float]] = {"plain": [], "image": [], "tar": []}
    for line in printed.splitlines():
        name, microseconds = line.split()
        taken[name].append(int(microseconds) / 1e6)
    medians = {name: statistics.median(runs) for name, runs in taken.items()}
    for name, way in (("image", "an image"), ("tar", "a tar, with its digest")):
        say = f"version of the root filled from {way}, relative to `tar x`; medians of {size.runs}"
        yield figure(say, 1.2, [medians[name] / medians["plain"]], unit="")


BENCHMARK = Benchmark("shared-root", measure, Jobs(), Jobs(turns=1, runs=1, switches=1))
FILLS = Benchmark("fills", measure_fills, Fills(), Fills(runs=1, left_out="usr/bin usr/lib usr/sbin usr/share"))
