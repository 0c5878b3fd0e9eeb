"""Addresses and names of the cluster do not collide and fit where the kernel limits them."""

from itertools import combinations
from pathlib import Path

import pytest

from local import layout
from local.layout import NODES, Node, find_paths


def test_ranges_lie_in_the_benchmark_range_and_apart() -> None:
    ranges = [layout.NODE_RANGE, layout.POD_RANGE, layout.SERVICE_RANGE]
    assert all(each.subnet_of(layout.WHOLE_RANGE) for each in ranges)
    assert not any(a.overlaps(b) for a, b in combinations(ranges, 2))
    assert layout.DNS in layout.SERVICE_RANGE
    assert layout.HOST in layout.NODE_RANGE


def test_nodes_have_addresses_ranges_and_links_of_their_own() -> None:
    assert len({node.address for node in NODES} | {layout.HOST}) == len(NODES) + 1
    assert len({node.mac for node in NODES}) == len({node.link for node in NODES}) == len({node.netns for node in NODES}) == len(NODES)
    assert not any(a.pods.overlaps(b.pods) for a, b in combinations(NODES, 2))
    assert all(node.pods.subnet_of(layout.POD_RANGE) and node.address in layout.NODE_RANGE for node in NODES)


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_names_fit_the_kernel(node: Node) -> None:
    paths = find_paths(Path("/a/checkout/that/lies/very/deep" * 5))
    assert len(node.link) <= 15
    assert len(layout.BRIDGE) <= 15
    assert len(str(paths.socket(node))) < 108


@pytest.mark.parametrize(
    ("environ", "cache"),
    [
        pytest.param({"HOME": "/home/a"}, "/home/a/.cache/slipway", id="home"),
        pytest.param({"HOME": "/home/a", "XDG_CACHE_HOME": "/var/c"}, "/var/c/slipway", id="xdg"),
        pytest.param({"HOME": "/home/a", "XDG_CACHE_HOME": ""}, "/home/a/.cache/slipway", id="xdg empty"),
    ],
)
def test_cache_lies_outside_the_checkout(environ: dict[str, str], cache: str) -> None:
    paths = find_paths(Path("/srv/tree"), environ)
    assert paths.cache == Path(cache)
    assert paths.state == Path("/srv/tree/.slipway")
