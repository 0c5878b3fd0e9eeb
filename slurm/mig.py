"""Names of device files for the instances that NVIDIA's MIG divides a GPU into.

The driver numbers its own files in the order in which somebody has made the instances, differently on each machine, and gres.conf has one
line for all nodes of a set. So a worker makes files of these names for the same devices (programs/worker/mig.py).
"""

import re

FOLDER = "/dev/slipway-mig"


def device_files(gpu: int, at: int) -> tuple[str, str]:
    """Two files of an instance, by the number of its GPU's device file and its place among that GPU's instances as the config has them:
    the one of its memory and engines (NVIDIA's GPU instance), and the one of its compute."""
    return f"{FOLDER}/{gpu}-{at}-gi", f"{FOLDER}/{gpu}-{at}-ci"


def is_instance(kind: str) -> bool:
    """True for the type of a GRES that is an instance of MIG: `a100_1g.10gb`."""
    return re.search(r"_[1-7]g\.\d+gb$", kind) is not None
