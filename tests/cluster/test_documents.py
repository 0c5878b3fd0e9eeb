"""Every command that a guide shows is run as it stands. Those about users, backups and archives want more than the dev stack has:
test_users.py and tests/slurm/test_database.py run them."""

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.guides import commands, run

ELSEWHERE = {
    "docs/start/first-day.md": ("slipway check", "slipway up"),  # `make up` has just run both
    "docs/operate/health.md": ("slipway check", "gpu-asked"),  # `make up` has just run it; no node is new
    "docs/operate/maintenance.md": ("python train.py", "worker-3", "gpu-3"),  # of a job; of other machines and nodes
    "docs/operate/node-sets.md": ("worker-3", "burst-7", "gpu-3"),
    "docs/reference/conditions.md": ("jobid=7", "gpu-asked"),
    # Of the own NFS server, which this kernel could not mount; and of a version that is not there.
    "docs/operate/storage.md": ("cluster-info dump", "create service clusterip", "kubectl taint", "dev-nfs-0", "--root-version="),
    "docs/operate/topology.md": ("nvlink",),
    "docs/operate/observability.md": ("port-forward",),  # it would not end
    "docs/operate/runbooks.md": ("dev-ec2",),  # the dev stack is not on EC2
    "docs/operate/logs.md": (),
    "docs/operate/accounting.md": ("/archive/", "dev-backup", "job/now", "state-backup", "delete pvc", "-c restore"),
}


def slurmdbd(stack: DevStack) -> str:
    """The name of slurmdbd's pod; empty without one."""
    return stack.kubectl("get", "pod", "dev-slurmdbd-0", "--ignore-not-found", "--output=name")


@pytest.mark.parametrize("guide", ELSEWHERE)
def test_commands_of_a_guide_work_as_they_stand(restored: DevStack, guide: str) -> None:
    restored.kubectl("delete", "job", "changes", "changes-json", "disk-now", "disk-by-hand", "--ignore-not-found")
    restored.kubectl("delete", "secret", "slack-ops", "--ignore-not-found")
    shown = [command for command in dict.fromkeys(commands(guide)) if not any(part in command for part in ELSEWHERE[guide])]
    assert shown
    for command in shown:
        if command.startswith("kubectl -n slurm logs --follow job/"):
            restored.wait(command.split()[-1], "--for=condition=complete", deadline_s=300)
        run(restored, command)
        if command.endswith("dev-slurmdbd --replicas=0"):
            eventually("no slurmdbd, and no guard that starts it again", lambda: not slurmdbd(restored), 180)
    if guide == "docs/operate/accounting.md":
        eventually("slurmdbd is back", lambda: restored.get("statefulset", "dev-slurmdbd")["status"]["readyReplicas"] == 1, 60)
