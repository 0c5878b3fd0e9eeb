"""Every command that a guide shows is run as it stands. Those about users and backups want more than the dev stack has: test_users.py."""

import pytest

from tests.cluster.dev_stack import DevStack
from tests.cluster.guides import commands, run

ELSEWHERE = ("cluster-info dump", "create service clusterip", "kubectl taint", "dev-nfs-0")
"""Of the own NFS server, which this kernel could not mount."""


@pytest.mark.parametrize("guide", ["docs/node-sets.md", "docs/storage.md"])
def test_commands_of_a_guide_work_as_they_stand(restored: DevStack, guide: str) -> None:
    restored.kubectl("delete", "job", "changes", "changes-json", "--ignore-not-found")
    shown = [command for command in commands(guide) if not any(part in command for part in ELSEWHERE)]
    assert shown
    for command in shown:
        if command.startswith("kubectl -n slurm logs --follow job/"):
            restored.kubectl("wait", command.split()[-1], "--for=condition=complete", "--timeout=120s", timeout_s=150)
        run(restored, command)
