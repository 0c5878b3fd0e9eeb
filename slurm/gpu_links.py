"""The bandwidth between the GPUs of a machine, by model: the reference for an all-reduce.

Half of NVIDIA's data sheets' figures: those count both directions, and nccl-tests' bus bandwidth counts one (its PERFORMANCE.md).
"""

from types import MappingProxyType

LINK_GB_PER_S = MappingProxyType({"v100": 150, "a100": 300, "h100": 450, "h200": 450, "b200": 900, "b300": 900, "gb200": 900, "gb300": 900})
"""GB/s of one GPU over NVLink, in one direction. GPUs that have PCIe alone are not named."""
LEAST_SHARE = 0.75
"""The share of LINK_GB_PER_S that an all-reduce of gigabytes within one healthy machine reaches at least.

Rings without NVLink SHARP get to 80 %. With it, 8 H100 exceed 100 %.
"""


def least_gb_per_s(model: str) -> float | None:
    """The least bus bandwidth of an all-reduce within a machine with these GPUs (`model` as in Slurm's GRES); None for an unknown model."""
    link = LINK_GB_PER_S.get(model.lower())
    return None if link is None else LEAST_SHARE * link
