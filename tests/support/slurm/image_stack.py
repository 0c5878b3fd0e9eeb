"""The stack that the real image runs with, the users of its pods, and the pods' names."""

import base64
from typing import Any

SLURM, MUNGE, SLURMRESTD, MYSQL, ALICE, BOB = 64030, 401, 402, 403, 10001, 10002
_KEY_START = bytes.fromhex("0000000b7373682d6564323535313900000020")
STACK: dict[str, Any] = {
    "name": "t",
    "kubernetes": {},
    "nodePools": [
        {
            "name": "workers",
            "hardware": {"coresPerSocket": 2, "memoryMiB": 20000, "gpus": {"model": "h100", "count": 4, "memoryMiB": 81559}},
            "max": 2,
            "existing": {"count": 2, "labels": {"slipway.dev/pool": "workers"}},
        }
    ],
    "nodeSets": [
        {
            "name": "gpu",
            "pool": "workers",
            "size": 2,
            "cpus": 2,
            "memoryMiB": 2048,
            "gpus": {"model": "h100", "count": 4},
            "simulatedGpus": True,
        }
    ],
    "partitions": [{"name": "main", "nodeSets": ["gpu"], "default": True}],
    "storage": {"sharedRoot": {"hostPath": "/srv/shared"}, "home": {"hostPath": "/srv/home"}},
    "login": {"users": [{"name": "alice", "uid": ALICE, "sshKeys": ["ssh-ed25519 " + base64.b64encode(_KEY_START + bytes(32)).decode()]}]},
    "slurm": {"cgroupVersion": "auto"},
}
NAMES = {
    "t-mariadb-0": ["t-mariadb"],
    "t-slurmdbd-0": ["t-slurmdbd"],
    "t-slurmctld-0": ["t-slurmctld"],
    "t-slurmrestd": [],
    "t-login": [],
    "gpu-0": [],
    "gpu-1": [],
}
