"""What the shared root costs: `srun true` in the root and outside of it, in turns, as a job of its own and as one more step of a job; how
long it takes to fill a version, beside `tar x` of the same files, and to switch.

A whole cluster of the real image runs for jobs and for the switch, without accounting; all is on one node. A job pays for making and
removing its mounts. Versions are filled on the disk of /var/tmp, by the Job's own script; all ways read what is in memory already,
`tar x` and the script the same tar, and end when all is on the disk.
"""

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.slurm.image_pods import wait_for
from tests.slurm.image_root import unpack
from tests.slurm.root_cluster import CONF, RootCluster, running
from tests.slurm.root_jobs import PROJECT, play

RUNS = 500
FILLS = 8
TURNS = 5

_FILLS = """
now() { echo "${EPOCHREALTIME/[.,]/}"; }
disk=$DISK; umount "$WORK/filler/shared"; mount --bind "$disk" "$WORK/filler/shared"
tar -C "$IMAGE" -cf "$disk/root.tar" .
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


def measure(runs: int = RUNS) -> tuple[float, float]:
    """Milliseconds that one job `srun true` takes from a login session, inside the root and outside."""
    return _compare(runs, lambda cluster, loop: cluster.ssh(loop, timeout_s=600))


def measure_steps(runs: int = RUNS) -> tuple[float, float]:
    """The same for one step `srun true` of a job that runs."""
    return _compare(runs, lambda cluster, loop: cluster.out(cluster.batch(loop, "--nodelist=gpu-0", deadline_s=600)))


def measure_fills(runs: int = FILLS) -> dict[str, list[float]]:
    """Seconds of each of some fills: `plain` by `tar x`, `image` and `tar` by the fill script, of the Slurm image's own files."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        image, work, disk = (Path(folder) / name for name in ("image", "work", "disk"))
        for each in (image, work, disk):
            each.mkdir()
        # The scene's own files are in memory; the volume is on the disk.
        printed, _ = play(unpack(image), work, _FILLS.replace("COUNT", str(runs)), timeout_s=1200, DISK=str(disk))
    found: dict[str, list[float]] = {"plain": [], "image": [], "tar": []}
    for line in printed.splitlines():
        name, microseconds = line.split()
        found[name].append(int(microseconds) / 1e6)
    return found


def fill_ratios(found: dict[str, list[float]]) -> tuple[float, float]:
    """The median fill from an image and from a tar, relative to the median `tar x`."""
    plain = statistics.median(found["plain"])
    return statistics.median(found["image"]) / plain, statistics.median(found["tar"]) / plain


def measure_switches(runs: int = FILLS) -> list[float]:
    """Seconds from the start of the switch script to a job that ran in the new version."""
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        image = unpack(Path(folder))
        with running(Path("/var/tmp/slipway-root-bench"), "swbr-", image) as cluster:
            script = image / "root-switch.sh"
            shutil.copy(PROJECT / "programs" / "start" / script.name, script)
            for run in range(runs):
                version = "v2" if run % 2 == 0 else "v1"
                begin = time.monotonic()
                switch = f'mount --bind "$SHARED" "$IMAGE/shared"; SLIPWAY_ROOT_VERSION={version} chroot "$IMAGE" bash /root-switch.sh'
                environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SHARED": str(cluster.shared), "IMAGE": str(image)}
                subprocess.run(["unshare", "--mount", "bash", "-ec", switch], env=environment, capture_output=True, check=True)
                seen = cluster.ssh("srun --nodelist=gpu-0 bash -c 'echo $SLIPWAY_ROOT_VERSION'")
                taken.append(time.monotonic() - begin)
                if seen != version:
                    raise RuntimeError(f"a job after the switch to {version} saw {seen}")
                wait_for("an idle node", cluster.ready)
    return taken


def _compare(runs: int, run: Callable[[RootCluster, str], str]) -> tuple[float, float]:
    taken: dict[str, list[float]] = {"v1": [], "": []}
    with tempfile.TemporaryDirectory() as folder:
        unpack(Path(folder))
        with running(Path("/var/tmp/slipway-root-bench"), "swbr-", Path(folder)) as cluster:
            for _ in range(TURNS):
                for version, figures in taken.items():
                    cluster.settings(CONF if version else None)
                    loop = _LOOP.replace("WANTED", f'"{version}"').replace("COUNT", str(runs // TURNS))
                    figures.append(int(run(cluster, loop).split("took ")[1]) / 1000)
                    wait_for("an idle node", cluster.ready)
    return sum(taken["v1"]) / TURNS, sum(taken[""]) / TURNS


if __name__ == "__main__":
    fills = measure_fills()
    print(f"seconds of fills: {fills}")
    print("filled from an image: {:.2f} times `tar x`; from a tar, digest and all: {:.2f}".format(*fill_ratios(fills)))
    print(f"switch, until a job has run in the new version: {statistics.median(measure_switches()):.2f} s")
    print("a job `srun true`: {:.1f} ms inside the shared root, {:.1f} ms outside".format(*measure()))
    print("a step `srun true`: {:.1f} ms inside the shared root, {:.1f} ms outside".format(*measure_steps()))
