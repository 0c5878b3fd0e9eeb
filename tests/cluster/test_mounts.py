"""Further mounts on the real cluster: a folder of the nodes and a claim that exists, in logins and in jobs of the sets that want them."""

import json
from collections.abc import Iterator

import pytest

from tests.support.cluster.dev_stack import DevStack

VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "slipway-test-scratch"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "by-hand",
        "hostPath": {"path": "/var/lib/slipway/dev/test-scratch", "type": "DirectoryOrCreate"},
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "scratch"},
    "spec": {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "by-hand",
        "volumeName": "slipway-test-scratch",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
MOUNTS = [
    {"name": "data", "mountPath": "/data", "hostPath": "/var/lib/slipway/dev/test-data"},
    {"name": "scratch", "mountPath": "/datasets", "claim": "scratch", "readOnly": True},
]


@pytest.fixture
def claimed(restored: DevStack) -> Iterator[DevStack]:
    """The stack, beside a claim that somebody else has made."""
    restored.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [VOLUME, CLAIM]}))
    yield restored
    restored.kubectl("delete", "pvc/scratch", "pv/slipway-test-scratch", "--wait=false")


def test_mounts_are_in_logins_and_in_jobs_of_the_sets_that_want_them(claimed: DevStack) -> None:
    stack = claimed
    stack.slipway(
        "up", "--config", f"cluster.storage.mounts={json.dumps(MOUNTS)}", "--config", f"cluster.nodeSets[1].mounts={json.dumps(['data'])}"
    )
    stack.wait_until_settled()
    stack.ssh("sudo install -d -o alice /data/mine; echo hello > /data/mine/word")
    look = 'cat /data/mine/word; grep -c " /datasets " /proc/self/mountinfo; touch /datasets/x 2>&1 | grep -o Read-only; true'
    for place in ("bash -c", "srun --nodelist=cpu-0 bash -c"):
        assert stack.ssh(f"{place} '{look}'").split() == ["hello", "1", "Read-only"]
    assert stack.ssh(f"srun --nodelist=gpu-0 bash -c '{look}'").split() == ["hello", "0"]
