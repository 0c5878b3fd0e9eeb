"""Names of switches that Slurm takes, and which places fit a topology.yaml."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.topology import address, block_place, fits, switch_name, tree_place, units_of

LABEL = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", fullmatch=True)
FILE = """- topology: fabric
  tree:
    switches:
      - switch: fabric
        children: unplaced
      - switch: unplaced
        nodes: gpu-[0-3]
- topology: nvlink
  block:
    block_sizes: [18]
    blocks:
      - block: nvlink-0
      - block: unplaced
        nodes: gpu-[0-3]
"""


@given(st.lists(LABEL, min_size=1, max_size=4))
def test_name_of_a_switch_is_one_that_slurm_takes(values: list[str]) -> None:
    """No separator of places and addresses, and fewer digits in a row than crash slurmctld."""
    name = switch_name(values)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", name)
    assert not re.search(r"\d{19}", name)


def test_place_has_the_names_above_it() -> None:
    place = tree_place("fabric", ("nn-1", "nn.2"))
    assert place == "fabric:fabric:nn-1:nn-1-nn_2"
    assert address(place) == "fabric.nn-1.nn-1-nn_2"
    assert address(block_place("nvlink", "nvlink-3")) == "nvlink-3"


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        pytest.param("", True, id="never-placed"),
        pytest.param("fabric:fabric:a:a-1,nvlink:nvlink-0", True, id="both"),
        pytest.param("nvlink:unplaced,fabric:fabric:unplaced", True, id="any-order"),
        pytest.param("fabric:fabric:a", False, id="not-in-every-topology"),
        pytest.param("fabric:fabric:a,nvlink:nvlink-1", False, id="block-that-is-not-there"),
        pytest.param("fabric:top:a,nvlink:nvlink-0", False, id="another-top-switch"),
        pytest.param("fabric:fabric:a,nvlink:nvlink-0,old:old", False, id="topology-that-is-not-there"),
        pytest.param("fabric,nvlink", False, id="no-places"),
    ],
)
def test_place_fits_what_the_file_names(text: str, fit: bool) -> None:
    assert fits(text, units_of(FILE)) is fit
    assert fits(text, {}) is (text == "")
