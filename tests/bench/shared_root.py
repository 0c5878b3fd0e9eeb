"""What the shared root costs a job step: `srun true` inside a job, in the root and outside of it, one after the other in turns.

A whole cluster of the real image runs for it, without accounting; both jobs are on the same node.
"""

import tempfile
from pathlib import Path

from tests.slurm.image_pods import wait_for
from tests.slurm.root_cluster import CONF, RootCluster, running, unpack

STEPS = 500

_SCRIPT = """\
#!/bin/bash
until [[ -e go ]]; do sleep 0.05; done
rm go
now() { echo "${EPOCHREALTIME/[.,]/}"; }
srun true
begin=$(now)
for ((n = 0; n < COUNT; n++)); do srun true || exit 1; done
echo "took $(( ($(now) - begin) / COUNT ))"
"""


def measure(steps: int = STEPS, turns: int = 5) -> tuple[float, float]:
    """Milliseconds that one `srun true` takes inside the root and outside, over `steps` of each in `turns` turns."""
    with tempfile.TemporaryDirectory() as folder:
        unpack(Path(folder))
        with running(Path("/var/tmp/slipway-root-bench"), "swbr-", Path(folder)) as cluster:
            inside, outside = [], []
            for _ in range(turns):
                inside.append(_run(cluster, CONF, steps // turns))
                outside.append(_run(cluster, None, steps // turns))
    return sum(inside) / turns, sum(outside) / turns


def _run(cluster: RootCluster, conf: str | None, count: int) -> float:
    cluster.settings(conf)
    home = cluster.machine.folder / "volume-home/alice"
    (home / "steps.sh").write_text(_SCRIPT.replace("COUNT", str(count)))
    job = cluster.ssh("sbatch --parsable --nodelist=gpu-0 --output=steps.%j steps.sh")
    wait_for("its start", lambda: cluster.state(job) == "RUNNING")
    cluster.ssh("touch go")
    wait_for("its end", lambda: "took" in (home / f"steps.{job}").read_text(), deadline_s=300)
    wait_for("an idle node", cluster.ready)
    return int((home / f"steps.{job}").read_text().split("took ")[1]) / 1000


if __name__ == "__main__":
    print("srun true: {:.1f} ms inside the shared root, {:.1f} ms outside".format(*measure()))
