"""Names of device files for the MIG instances of NVIDIA GPUs.

The driver numbers its own files in order of creation, differently on each machine; gres.conf has one line for all nodes of a set. So
workers make files of these names for the same devices (programs/worker/mig.py).
"""

import re

FOLDER = "/dev/slipway-mig"


def device_files(gpu: int, at: int) -> tuple[str, str]:
    """Two files of an instance: memory and engines (NVIDIA's GPU instance), and compute. Numbered by the GPU's device file and the
    instance's place among the GPU's instances in the config."""
    return f"{FOLDER}/{gpu}-{at}-gi", f"{FOLDER}/{gpu}-{at}-ci"


def is_instance(kind: str) -> bool:
    """True for the type of a GRES that is an instance of MIG: `a100_1g.10gb`."""
    return re.search(r"_[1-7]g\.\d+gb$", kind) is not None
