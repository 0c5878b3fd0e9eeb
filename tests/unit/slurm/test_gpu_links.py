"""What an all-reduce within a machine is expected to reach."""

import pytest

from configs.models.machines import MACHINES
from slurm.gpu_links import LINK_GB_PER_S, least_gb_per_s

PCIE = {"a10g", "l4", "l40s"}


def test_each_gpu_of_the_machine_catalogue_is_known_or_has_pcie_alone() -> None:
    models = {machine.gpus.model for machine in MACHINES.values() if machine.gpus}
    assert models - PCIE <= set(LINK_GB_PER_S)
    assert not PCIE & set(LINK_GB_PER_S)


@pytest.mark.parametrize(("model", "least"), [("h100", 337.5), ("H100", 337.5), ("l4", None), ("", None)])
def test_least_bandwidth(model: str, least: float | None) -> None:
    assert least_gb_per_s(model) == least
