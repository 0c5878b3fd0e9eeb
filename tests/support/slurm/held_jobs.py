"""Jobs in the shared root that run until they are told to end, and what they leave on their nodes."""

import itertools
from pathlib import Path

from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.root_cluster import CONF, PINS, TMP, RootCluster

_marks = itertools.count()


def new_mark() -> str:
    """The name of a file that a job waits for."""
    return f"go{next(_marks)}"


def make_idle(cluster: RootCluster) -> None:
    """Idle workers, v1 and good settings."""
    cluster.switch("v1")
    cluster.settings(CONF)
    cluster.slurm("scancel", "--user=alice")  # what a failed test left
    wait_for("idle workers", cluster.ready, deadline_s=60)


def left(cluster: RootCluster, node: str) -> str:
    """What a worker has of jobs, outside their namespaces, with what is still to be removed."""
    return cluster.inside(node, f"ls {PINS} {TMP} {TMP}/.gone 2>/dev/null | grep -v :; grep -c nsfs /proc/self/mountinfo || true")


def held(cluster: RootCluster, *options: str, then: str = "") -> tuple[str, Path]:
    """Starts a batch job that says `begun`, waits for a file, and does `then`; gives its number and that file."""
    name = new_mark()
    script = f"until [[ -e {name} ]]; do sleep 0.1; done; {then}"
    job = cluster.ssh(
        f"sbatch --parsable --output=out.%j {' '.join(options)} <<'SCRIPT'\n#!/bin/bash\ncat /etc/version; echo begun; {script}\nSCRIPT"
    )
    wait_for("its start", lambda: "begun" in cluster.ssh(f"cat out.{job}"))
    return job, cluster.machine.folder / "volume-home/alice" / name


def finish(cluster: RootCluster, job: str, go: Path) -> str:
    """Lets a held job go on to its end; gives what it said."""
    go.touch()
    wait_for("its end", lambda: cluster.state(job) not in ("RUNNING", "COMPLETING"), deadline_s=60)
    return cluster.out(job)
