"""What the shared root costs: `srun true` in the root and outside of it, in turns, as a job of its own and as one more step of a job.

A whole cluster of the real image runs for it, without accounting; all is on one node. A job pays for making and removing its mounts.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.slurm.image_pods import wait_for
from tests.slurm.image_root import unpack
from tests.slurm.root_cluster import CONF, RootCluster, running

RUNS = 500
TURNS = 5

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
    print("a job `srun true`: {:.1f} ms inside the shared root, {:.1f} ms outside".format(*measure()))
    print("a step `srun true`: {:.1f} ms inside the shared root, {:.1f} ms outside".format(*measure_steps()))
