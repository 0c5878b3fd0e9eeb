"""A Slurm cluster of one fixed and one elastic set, from the real image and programs. The tests are the NodeSet controller: they start
and stop the workers. No accounting and no login: jobs are submitted in slurmctld's pod.
"""

import copy
import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from configs.load import load_cluster
from configs.render.slurm import render
from tests.support.slurm.image_cluster import ImageCluster
from tests.support.slurm.image_pods import Container, PodError, wait_for
from tests.support.slurm.image_stack import ALICE, SLURM, STACK

FIXED, ELASTIC = ("fix-0", "fix-1"), ("el-0", "el-1", "el-2", "el-3")
NAMES = {"t-slurmctld-0": ["t-slurmctld"], **{node: [] for node in (*FIXED, *ELASTIC)}}

GET = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:6822/files', timeout=60).read().decode())"

TIMES = {"SuspendTime": "3000", "SuspendTimeout": "4", "ResumeTimeout": "600"}
"""Rendered times that would make a test long, or let a node go in the middle of one."""


def elastic_stack(fixed: int = 2, least: int = 1, most: int = 4, partitions: tuple[str, ...] = ("main", "burst", "mix")) -> dict[str, Any]:
    """The stack: partitions of each set, and one of both."""
    stack = copy.deepcopy(STACK)
    part = {"pool": "workers", "cpus": 2, "memoryMiB": 1024}
    sets = {"main": ["fix"], "burst": ["el"], "mix": ["fix", "el"]}
    stack["accounting"] = {"enabled": False}
    stack["nodePools"][0] |= {"hardware": {"coresPerSocket": 16, "memoryMiB": 64_000}}
    stack["nodeSets"] = [{"name": "fix", "size": fixed, **part}, {"name": "el", "min": least, "max": most, **part}]
    stack["partitions"] = [{"name": name, "nodeSets": sets[name], "default": name == "main"} for name in partitions]
    return stack


class ElasticCluster(ImageCluster):
    """The cluster, with the words that the tests use."""

    changed = False
    """True when the files are other than those of the start."""

    def configure(self, stack: Mapping[str, Any], extra: str = "", times: Mapping[str, str] = TIMES) -> None:
        """Writes Slurm's files anew, with times that suit a test."""
        self.changed = True
        files = render(load_cluster(stack, Path(), "Pulumi.test.yaml"))
        for key, value in times.items():
            files["slurm.conf"] = re.sub(rf"^{key}=.*$", f"{key}={value}", files["slurm.conf"], flags=re.MULTILINE)
        self.volume("slurm", {**files, "slurm.conf": files["slurm.conf"] + extra})

    def start_with_rest(self) -> None:
        """slurmctld that has read its files, slurmrestd with the list of running jobs, and one worker."""
        self.prepare()
        for pod in ("t-slurmctld-0", "fix-0"):
            self.munged(pod)
        self.slurmctld()
        self.reconfigure()
        self.taken()
        self.slurmrestd()
        self.running_jobs()
        self.up("fix-0")

    def slurm(self, *command: str, user: int = SLURM, check: bool = True) -> str:
        """Runs a Slurm command in slurmctld's pod."""
        inside = self.containers["t-slurmctld-0/reconfigure"]
        return inside.run(*command, user=user, check=check, env={"SLURM_CONF": "/var/spool/slurmctld/conf/slurm.conf"})

    def worker(self, node: str) -> Container:
        """Makes the pod of a node anew, as its controller would."""
        if f"{node}/slurmd" in self.containers:
            self.remove(node)
        more = {"SLIPWAY_SIMULATED_GPUS": "0", **({"SLIPWAY_ELASTIC": "1"} if node in ELASTIC else {})}
        return self.slurmd(node, more=more)

    def remove(self, node: str) -> None:
        """Takes the pod of a node away."""
        if worker := self.containers.pop(f"{node}/slurmd", None):
            worker.stop()

    def node(self, name: str) -> str:
        """All that slurmctld says of a node, on one line; empty for one that it does not know."""
        try:
            return self.slurm("scontrol", "--oneliner", "show", "node", name)
        except PodError as error:
            if "not found" in str(error):
                return ""
            raise

    def state(self, name: str) -> str:
        """A node's state, such as IDLE+CLOUD; empty for one that slurmctld does not know."""
        found = re.search(r" State=(\S+)", self.node(name))
        return found[1] if found else ""

    def up(self, *names: str) -> None:
        """Makes the nodes' pods where they are not up, and waits until all of them are idle or have jobs, and no drain."""
        for name in names:
            if self.state(name) not in ("IDLE+CLOUD", "MIXED+CLOUD") or f"{name}/slurmd" not in self.containers:
                wait_for(f"{name} to be off or on", lambda name=name: "ING_" not in self.state(name))
                if "DRAIN" in self.state(name):
                    self.slurm("scontrol", "update", f"NodeName={name}", "State=UNDRAIN")
                if self.state(name).startswith("DOWN"):
                    self.slurm("scontrol", "update", f"NodeName={name}", "State=RESUME")
                before = self.started(name)
                wait_for("a second that is another", lambda before=before: before == "None" or f"{datetime.now():%FT%T}" > before)
                self.worker(name)
                # A node may be idle before its new slurmd is known, and a job that it gets then is lost: the pod was replaced under it.
                wait_for(f"{name}'s slurmd", lambda name=name, before=before: self.started(name) not in (before, "None"), deadline_s=60)
        for name in names:
            wait_for(f"{name} up", lambda name=name: self.state(name) in ("IDLE+CLOUD", "MIXED+CLOUD"), deadline_s=60)

    def started(self, name: str) -> str:
        """When the node's slurmd began, by slurmctld; "None" where it has not registered."""
        return self.slurm("scontrol", "show", "node", name).partition("SlurmdStartTime=")[2].split()[0]

    def off(self, *names: str) -> None:
        """Has Slurm put the nodes off, removes their pods, and waits until they are powered down."""
        for name in names:
            if "POWERED_DOWN" not in self.state(name):
                self.slurm("scontrol", "update", f"NodeName={name}", "State=POWER_DOWN")
            self.remove(name)
        for name in names:
            wait_for(f"{name} off", lambda name=name: self.state(name) == "IDLE+CLOUD+POWERED_DOWN", deadline_s=60)

    def submit(self, *options: str, seconds: int = 600) -> str:
        """Submits a job that sleeps; gives its number."""
        script = ("--output=/dev/null", "--chdir=/tmp", f"--wrap=sleep {seconds}")
        return self.slurm("sbatch", "--parsable", *options, *script, user=ALICE).strip()

    def job(self, job: str, key: str = "JobState") -> str:
        """One field of a job."""
        found = re.search(rf"\b{key}=(\S+)", self.slurm("scontrol", "--oneliner", "show", "job", job))
        assert found
        return found[1]

    def ends_at(self, job: str) -> int:
        """When Slurm will end the job, in seconds since 1970."""
        found = re.search(r"\bEndTime=(\d+)", self.slurm("env", "SLURM_TIME_FORMAT=%s", "scontrol", "--oneliner", "show", "job", job))
        assert found
        return int(found[1])

    def running(self, *options: str) -> str:
        """Submits a job and waits until it runs; gives its number."""
        job = self.submit(*options)
        wait_for("a running job", lambda: self.job(job) == "RUNNING", deadline_s=60)
        return job

    def report(self) -> dict[str, str]:
        """What the sidecar tells of the files that were offered last."""
        return json.loads(self.containers["t-slurmctld-0/reconfigure"].run("python3", "-c", GET))

    def said(self) -> str:
        """The sidecar's last word."""
        return self.containers["t-slurmctld-0/reconfigure"].log.rstrip().rpartition("\n")[2]
