"""A cluster without containers, mail, local disks and accounting: its options are refused."""

import copy
from pathlib import Path
from typing import Any

from configs.load import load_cluster
from configs.render import users
from tests.support.slurm.image_cluster import ImageCluster
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_stack import ALICE, SLURM, STACK

STACK_HERE: dict[str, Any] = {
    **STACK,
    "accounting": {"enabled": False},
    "nodeSets": [{**STACK["nodeSets"][0], "size": 1}],
    "storage": {**STACK["storage"], "mounts": [{"name": "project", "mountPath": "/scratch/project", "claim": "project"}]},
}


class Cluster(ImageCluster):
    """One worker, which jobs are submitted from."""

    def alice(self, command: str) -> str:
        """A shell command of a plain user; all that it says."""
        worker = self.containers["gpu-0/slurmd"]
        return worker.run(
            "bash", "-c", f"cd /tmp; {command} 2>&1", user=ALICE, check=False, env={"SLURM_CONF": "/run/slurm/conf/slurm.conf"}
        )

    def shell(self, command: str) -> str:
        """A shell command of SlurmUser."""
        inside = self.containers["t-slurmctld-0/reconfigure"]
        return inside.run("bash", "-c", command, user=SLURM, check=False, env={"SLURM_CONF": "/etc/slurm/slurm.conf"}).strip()

    def settle(self, **changes: Any) -> None:
        """Writes the config with these changes, and waits until slurmctld runs with it and the worker is idle.

        The worker is drained meanwhile, as by its controller: it may get another size.
        """
        stack = copy.deepcopy(STACK_HERE)
        for key, value in changes.items():
            (stack["nodeSets"][0] if key == "slurmd" else stack)[key] = value
        self.volume("users", users.render(load_cluster(stack, Path(), "Pulumi.test.yaml")))
        before = self.containers["t-slurmctld-0/reconfigure"].log.count("slurmctld runs with the files of")
        self.shell("scontrol update NodeName=gpu-0 State=DRAIN Reason=settle")
        self.configure(stack)
        said = self.containers["t-slurmctld-0/reconfigure"]
        wait_for("the new files", lambda: said.log.count("slurmctld runs with the files of") > before, deadline_s=60)
        wait_for("slurmd with the files", lambda: "SlurmdStartTime=2" in self.shell("scontrol show nodes"))
        self.shell("scontrol update NodeName=gpu-0 State=UNDRAIN")
        wait_for("an idle worker", lambda: self.shell("sinfo --noheader --format=%T") == "idle", deadline_s=90)
