"""Programs of a site as health checks beside users' jobs, on real workers: what slurmd runs as root, what it refuses to run, and at which
nodes it looks."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import seconds
from tests.support.slurm.checks_cluster import NODES, ChecksCluster, often, running
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_stack import ALICE, SLURM

PROGRAM = """#!/bin/bash
# A line for each look, and for the last one what the program was told.
cd /home/checks
echo look >> "looks-$1-$SLURMD_NODENAME"
tr '\\0' '\\n' < /proc/$$/environ > "told-$1-$SLURMD_NODENAME"
[[ ! -e do-$SLURMD_NODENAME ]] || . ./do-$SLURMD_NODENAME
"""
FAIL = "echo looking; echo port 3 is down; exit 1"


def own(*contexts: str, name: str = "own", **given: Any) -> dict[str, Any]:
    return {
        "name": name,
        "check": "command",
        "command": ["/home/checks/fabric", name],
        "contexts": list(contexts),
        "nodeSets": ["gpu"],
        "maxDrained": 1,
        "timeoutS": 60,
        **given,
    }


class Site:
    """The cluster, and the folder of the site's programs, which all workers see."""

    def __init__(self, cluster: ChecksCluster) -> None:
        self.cluster = cluster
        self.folder = cluster.machine.folder / "volume-home/checks"

    def declare(self, *checks: dict[str, Any], **settings: str) -> None:
        """Has both workers run these checks, and nothing noted of an earlier look."""
        self.cluster.declare(*checks, **settings)
        self.cluster.all_have_files()
        for node in NODES:
            wait_for(f"a first look of {node}", lambda: self.cluster.has_looked(node), 60)  # noqa: B023 - called at once
        self.cluster.idle()

    def then(self, node: str, script: str) -> None:
        """What the program does on that node from now on; nothing but a pass where the script is empty."""
        file = self.folder / f"do-{node}"
        file.unlink(missing_ok=True)
        if script:
            (self.folder / "next").write_text(script)
            (self.folder / "next").rename(file)

    def looks(self, node: str, name: str = "own") -> int:
        """How often the program has looked there."""
        file = self.folder / f"looks-{name}-{node}"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def result(self, node: str, name: str = "own") -> str:
        noted = self.cluster.noted(node, name)
        return noted.result if noted is not None else ""

    def runs(self, job: str) -> None:
        """Waits until the job runs."""
        wait_for("the job", lambda: self.cluster.job(job)["job_state"] == ["RUNNING"])


@pytest.fixture(scope="module")
def started(image_root: Path) -> Iterator[ChecksCluster]:
    with running(Path("/var/tmp/slipway-own-checks"), "swown-", image_root) as cluster:
        yield cluster


@pytest.fixture
def site(started: ChecksCluster) -> Iterator[Site]:
    """A program that passes, which only root can change."""
    made = Site(started)
    made.folder.mkdir(mode=0o755, exist_ok=True)
    (made.folder / "fabric").write_text(PROGRAM)
    (made.folder / "fabric").chmod(0o755)
    yield made
    started.reset()
    made.folder.chmod(0o755)
    for file in made.folder.iterdir():
        file.unlink()


def test_job_starts_elsewhere_if_a_sites_program_fails_in_its_prolog(site: Site) -> None:
    site.declare(own("prolog"))
    cluster = site.cluster
    for node in NODES:
        site.then(node, f"[[ -e taken ]] || {{ touch taken; {FAIL}; }}")  # the first node that a job comes to
    job = cluster.batch()
    wait_for("the job in the queue", lambda: (now := cluster.job(job))["restart_cnt"] == 1 and now["job_state"] == ["PENDING"])
    [bad] = [node for node in NODES if "DRAIN" in cluster.node(node)["state"]]
    found = "check own: port 3 is down"
    assert cluster.comment(job) == f"did not start on {bad}: {found}"
    assert cluster.node(bad)["reason"] == f"slipway: {found}"
    cluster.slurm("scontrol", "update", f"JobId={job}", "StartTime=now")
    wait_for("its end", lambda: cluster.job(job)["job_state"] == ["COMPLETED"], 60)
    assert [cluster.job(job)["nodes"]] == [node for node in NODES if node != bad]


def test_program_learns_its_node_and_job_and_nothing_a_user_wrote(site: Site) -> None:
    site.declare(own("prolog", "interval"), HealthCheckInterval="3600")  # the last look is the prolog's
    site.cluster.alice("env", "SPANK_X=mine", "srun", "--chdir=/tmp", "--nodelist=gpu-1", "--gpus=2", "--export=ALL,X=mine", "true")
    told = {name: value for line in (site.folder / "told-own-gpu-1").read_text().splitlines() for name, _, value in [line.partition("=")]}
    job = told.pop("SLURM_JOB_ID")
    assert job.isdecimal()
    assert told == {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "SLURMD_NODENAME": "gpu-1",
        "SLURM_JOB_UID": str(ALICE),
        "SLURM_JOB_GPUS": "0,1",
    }


def test_failure_at_an_interval_is_noted_and_ends_with_its_passes(site: Site) -> None:
    site.declare(own("interval", passes=2), **often())
    site.then("gpu-1", FAIL)
    wait_for("the failure", lambda: site.result("gpu-1") == "failed")
    noted = site.cluster.noted("gpu-1", "own")
    assert noted is not None
    assert noted.failure is not None
    assert (noted.failure.found, noted.failure.kind, noted.failure.drains) == ("port 3 is down", "node", True)
    site.then("gpu-1", "")
    wait_for("its end", lambda: (now := site.cluster.noted("gpu-1", "own")) is not None and now.failure is None)


@pytest.mark.parametrize(
    ("script", "longest_s", "found"),
    [
        pytest.param("kill -SEGV $$", 60, "/home/checks/fabric was killed by signal 11", id="crashes"),
        pytest.param("echo no such port; exit 2", 60, "/home/checks/fabric ended with 2: no such port", id="another-exit-code"),
        pytest.param("sleep 617 & sleep 617", 4, "did not end within {} s", id="hangs"),
        pytest.param("yes no such port; exit 1", 4, "did not end within {} s", id="prints-without-end"),
        pytest.param("sleep 617 & exit 3", 60, "/home/checks/fabric ended with 3", id="leaves-a-process-with-its-pipe"),
    ],
)
def test_program_without_an_answer_holds_up_no_job(site: Site, script: str, longest_s: int, found: str) -> None:
    limit_s = longest_s + seconds(1)
    found = found.format(limit_s)
    site.declare(own("prolog", timeoutS=limit_s))
    site.then("gpu-1", script)
    site.cluster.forget("gpu-1")
    lines = site.cluster.containers["t-slurmctld-0/checks"]
    before = lines.log.count(found)
    assert site.cluster.alice("srun", "--chdir=/tmp", "--nodelist=gpu-1", "hostname") == "gpu-1"
    assert site.result("gpu-1") == "unknown"
    assert lines.log.count(found) == before + 1
    assert "DRAIN" not in site.cluster.node("gpu-1")["state"]
    worker = site.cluster.containers["gpu-1/slurmd"]
    wait_for("the end of what it left", lambda: not worker.run("bash", "-c", "pgrep --exact 'sleep|yes' --parent 1 || true"), 30)


@pytest.mark.parametrize("whose", ["file", "folder", "link", "others"])
def test_program_that_users_could_change_is_not_run(site: Site, whose: str) -> None:
    program, command = site.folder / "fabric", "/home/checks/fabric"
    if whose == "file":
        program.chmod(0o775)
    elif whose == "folder":
        site.folder.chmod(0o777)
    elif whose == "others":
        os.chown(program, ALICE, ALICE)
    else:
        home = site.folder.parent / "alice-checks"
        home.mkdir(exist_ok=True)
        (home / "fabric").unlink(missing_ok=True)
        (home / "fabric").symlink_to("/home/checks/fabric")
        os.chown(home, ALICE, ALICE)
        command = "/home/alice-checks/fabric"
    site.declare(own("prolog", command=[command, "own"]))
    site.then("gpu-1", FAIL)
    assert site.cluster.alice("srun", "--chdir=/tmp", "--nodelist=gpu-1", "hostname") == "gpu-1"
    assert site.result("gpu-1") == "unknown"
    assert (site.looks("gpu-0"), site.looks("gpu-1")) == (0, 0)


def test_failure_with_the_wish_none_is_noted_and_jobs_start(site: Site) -> None:
    site.declare(own("prolog", wish="none"))
    site.then("gpu-1", FAIL)
    assert site.cluster.alice("srun", "--chdir=/tmp", "--nodelist=gpu-1", "hostname") == "gpu-1"
    noted = site.cluster.noted("gpu-1", "own")
    assert noted is not None
    assert noted.failure is not None
    assert (noted.failure.found, noted.failure.wish, noted.failure.drains) == ("port 3 is down", "none", False)
    assert "DRAIN" not in site.cluster.node("gpu-1")["state"]


def test_check_looks_only_at_nodes_in_its_states(site: Site) -> None:
    """A job of Slurm's user is one of checks, and leaves its node idle."""
    at_rest, at_work = (
        own("interval", name="rest", nodeStates=["idle"]),
        own("interval", name="work", nodeStates=["allocated"], wish="none"),
    )
    site.cluster.declare(at_rest, at_work, **often())

    def looks_on(name: str, other: str) -> bool:
        """Whether one check looks twice more at the node, and the other one does not."""
        wait_for(f"a look of {name}", lambda: site.looks("gpu-1", name) > 0)
        settled = site.looks("gpu-1", name)
        wait_for(f"the next look of {name}", lambda: site.looks("gpu-1", name) > settled)
        before, others = site.looks("gpu-1", name), site.looks("gpu-1", other)
        wait_for(f"two looks of {name}", lambda: site.looks("gpu-1", name) >= before + 2)
        return site.looks("gpu-1", other) == others

    assert looks_on("rest", "work")
    wait_for("what is told of the other one", lambda: site.result("gpu-1", "work") == "skipped")
    job = site.cluster.batch("--nodelist=gpu-1", script="sleep 600")
    site.runs(job)
    assert looks_on("work", "rest")
    assert site.result("gpu-1", "rest") == "passed"
    site.cluster.slurm("scancel", job)
    wait_for("the end of the job", lambda: site.cluster.node("gpu-1")["state"] == ["IDLE", "CLOUD"])
    assert looks_on("rest", "work")
    worker = site.cluster.containers["gpu-0/slurmd"]
    words = ("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--nodelist=gpu-1", "--wrap=sleep 600")
    site.runs(worker.run(*words, user=SLURM, env={"SLURM_CONF": "/run/slurm/conf/slurm.conf"}).strip())
    assert looks_on("rest", "work")


def test_look_that_is_skipped_ends_no_failure(site: Site) -> None:
    site.cluster.declare(own("interval", nodeStates=["idle"], passes=1), **often())
    site.then("gpu-1", FAIL)
    wait_for("the failure", lambda: site.result("gpu-1") == "failed")
    job = site.cluster.batch("--nodelist=gpu-1", script="sleep 600")
    site.runs(job)
    site.then("gpu-1", "")
    script = "SLURMD_NODENAME=gpu-1 /run/slurm/conf/slipway-checks.sh"
    site.cluster.containers["gpu-1/slurmd"].run("bash", "-c", f"{script} && {script}")
    noted = site.cluster.noted("gpu-1", "own")  # its result is that of the last look, which slurmd may have told of as well
    assert noted is not None
    assert noted.failure is not None
    site.cluster.slurm("scancel", job)
    wait_for("the pass", lambda: site.result("gpu-1") == "passed", 60)
