"""Pods that are killed, and jobs that see it."""

from tests.support.cluster.dev_stack import DevStack

UNTIL_KILLED = "#!/bin/bash\n((${SLURM_RESTART_COUNT:-0})) || sleep 600\nhostname\n"
"""Long when it starts first, short when it starts again."""


def kill_pod(stack: DevStack, pod: str) -> str:
    """Ends a pod at once, as a dying machine would; gives the uid of the one that is gone."""
    uid = stack.get("pod", pod)["metadata"]["uid"]
    stack.kubectl("delete", "pod", pod, "--force", "--grace-period=0")
    return uid
