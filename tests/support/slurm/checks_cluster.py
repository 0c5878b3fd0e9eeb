"""A Slurm cluster whose workers run health checks beside users' jobs: slurmctld with what takes their news, and two workers."""

import copy
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components.pods import program_command
from names import variables
from slurm.check_results import CheckResult, read_results
from tests.support.patience import seconds
from tests.support.slurm.image_cluster import ImageCluster, program_mount
from tests.support.slurm.image_pods import Container, Machine, wait_for
from tests.support.slurm.image_stack import ALICE, NAMES, SLURM, STACK

NODES = ("gpu-0", "gpu-1")


def often() -> dict[str, str]:
    """Settings with which slurmd looks as often as the machine, now, has its looks end in time."""
    limit_s = 1 + seconds(1)
    return {"HealthCheckInterval": str(limit_s + 1), "HealthCheckTimeout": str(limit_s)}


class ChecksCluster(ImageCluster):
    """The cluster, with the words that its tests use."""

    def declare(self, *checks: dict[str, Any], **settings: str) -> None:
        """Writes the files of a stack with these checks."""
        stack = copy.deepcopy(self.stack)
        stack["healthChecks"] = list(checks)
        stack["slurm"] = {"cgroupVersion": "auto", "settings": settings}
        self.configure(stack)

    def check_as_job(self, name: str, *words: str) -> Container:
        """What the CronJob of a check with this command runs."""
        node_set = {"name": "gpu", "size": len(NODES), "gpus": 0, "maxDrained": 1, "settings": {"command": words}}
        limits = {"timeoutS": seconds(60), "parallel": 2, "deadlineS": seconds(60), "causeKind": "node"}
        spec = json.dumps({"name": name, "check": "command", "nodeSets": [node_set], **limits})
        pod = "t-slurmctld-0"
        mounts = {"/etc/slurm": self.path("slurm"), "/run/munge": (self.empty(f"{pod}-munge"), True), **program_mount("node_checks")}
        command = program_command("node_checks", spec, module="run")
        return self._start(pod, "check", command, mounts, {"SLURM_CONF": "/etc/slurm/slurm.conf"}, user=SLURM, read_only=True)

    def has_looked(self, node: str) -> bool:
        """Whether the node has run its checks, after one more job of a user there."""
        self.alice("srun", "--chdir=/tmp", f"--nodelist={node}", "true")
        return self.containers[f"{node}/slurmd"].run("bash", "-c", "ls /run/slurm", check=False).find("slipway-checks.json") >= 0

    def forget(self, node: str) -> None:
        """Has the node know of no look that it has told of."""
        self.containers[f"{node}/slurmd"].run("rm", "-f", "/run/slurm/slipway-checks.json")

    def alice(self, *command: str) -> str:
        """Runs a command as a user on a worker; what it printed, errors too."""
        words = ("bash", "-c", '"$@" 2>&1 || true', "-", *command)
        return self.containers["gpu-0/slurmd"].run(*words, user=ALICE, env={"SLURM_CONF": "/run/slurm/conf/slurm.conf"}).strip()

    def batch(self, *options: str, script: str = "hostname") -> str:
        """Submits a job as a user; gives its number."""
        said = self.alice("sbatch", "--parsable", "--chdir=/tmp", "--output=/tmp/%j.out", *options, f"--wrap={script}")
        return said.splitlines()[-1]  # before it the warning of output in /tmp

    def node(self, name: str) -> dict[str, Any]:
        [node] = json.loads(self.slurm("scontrol", "show", "node", name, "--json"))["nodes"]
        return node

    def job(self, job: str) -> dict[str, Any]:
        return json.loads(self.slurm("scontrol", "show", "job", job, "--json"))["jobs"][0]

    def comment(self, job: str) -> str:
        """Why the job did not start: the collector may have to write it more than once until Slurm takes it."""
        return wait_for("a comment on the job", lambda: self.job(job)["admin_comment"])

    def noted(self, name: str, check: str = "gpu") -> CheckResult | None:
        """What Slurm keeps of a check."""
        return (read_results(self.node(name)["extra"]) or {}).get(check)

    def failure_since(self, name: str) -> str | None:
        """When the failure that Slurm keeps began."""
        noted = self.noted(name)
        return noted.failure.since if noted is not None and noted.failure is not None else None

    def lose_gpu(self, node: str) -> None:
        self.containers[f"{node}/slurmd"].run("rm", "/dev/nvidia3")

    def find_gpu(self, node: str) -> None:
        self.containers[f"{node}/slurmd"].run("bash", "-c", "[[ -e /dev/nvidia3 ]] || mknod -m 666 /dev/nvidia3 c 195 3")

    def collect(self) -> None:
        """Starts what takes the news of checks, and waits until it listens."""
        self.checks()
        wait_for("the collector", lambda: self.containers["gpu-0/slurmd"].run("bash", "-c", "exec 3<> /dev/tcp/t-slurmctld/6823") == "")

    def idle(self) -> None:
        """Waits until both nodes take jobs and have none."""
        wait_for("idle nodes", lambda: self.slurm("sinfo", "--noheader", "--Node", "--format=%N %T") == "gpu-0 idle\ngpu-1 idle", 60)

    def reset(self) -> None:
        """As each test starts: no check, no drain, nothing noted, all GPUs."""
        for node in NODES:
            self.find_gpu(node)  # slurmd waits for it when it reads its files
        self.declare()
        wait_for("no checks", lambda: "slipway-checks" not in self.slurm("scontrol", "show", "config"))
        self.cancel_all()
        self.containers["t-slurmctld-0/checks"].stop("KILL")  # it looks again, a second later, for a failure of the test before
        for node in NODES:
            self.forget(node)
            self.slurm("scontrol", "update", f"NodeName={node}", "Extra={}")
            self.slurm("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
        self.collect()
        self.idle()


@contextmanager
def running(folder: Path, prefix: str, image_root: Path) -> Generator[ChecksCluster]:
    """The cluster, ready; and away again."""
    machine = Machine(folder, image_root, prefix)
    machine.close()  # what a killed run left
    folder.mkdir(mode=0o755)
    stack = {**STACK, "accounting": {"enabled": False}}
    cluster = ChecksCluster(machine, stack=stack, names={pod: NAMES[pod] for pod in ("t-slurmctld-0", *NODES)})
    try:
        cluster.user_mounts = program_mount("node_checks")
        cluster.prepare()
        for pod in cluster.names:
            cluster.munged(pod)
        cluster.slurmctld()
        cluster.reconfigure()
        cluster.checks()  # which listens before the nodes are idle
        for node in NODES:
            # Slurm keeps what a node registered with first: the worker tells it of another machine.
            told = ("scontrol", "update", f"NodeName={node}", "InstanceId=machine-before/boot")
            wait_for("slurmctld", lambda: cluster.slurm(*told) == "")  # noqa: B023 - called at once
            cluster.slurmd(node, more={variables.MACHINE: f"machine-of-{node}"})
        cluster.idle()
        yield cluster
    finally:
        machine.close()
