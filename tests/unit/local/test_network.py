"""The network's plans: complete from nothing, completing from half, removing only what is ours."""

from pathlib import Path

import pytest

from local import layout, mounts, network
from local.layout import NODES, SYSTEM, WORKERS
from local.network import Existing, observe, plan_down, plan_node, plan_up

NOTHING = Existing(frozenset({"lo", "eth0"}), frozenset())
GHOST = Existing(frozenset({"eth0"}), frozenset(), frozenset({SYSTEM.netns}))
"""A machine that started again with its /run on the disk."""
ALL = Existing(frozenset({"eth0", layout.BRIDGE, *(n.link for n in NODES)}), frozenset(n.netns for n in NODES))


def makes(commands: list[str]) -> list[str]:
    return [command for command in commands if command.startswith(("link add", "netns add"))]


def test_from_nothing_everything_is_made_before_it_is_used() -> None:
    commands = plan_up(NODES, NOTHING)
    assert commands[0] == f"link add {layout.BRIDGE} type bridge"
    for node in NODES:
        made = commands.index(f"netns add {node.netns}")
        assert made < commands.index(f"link add {node.link} type veth peer name eth0 address {node.mac} netns {node.netns}")
        assert f"route replace {node.pods} via {node.address}" in commands
    assert f"route replace {layout.SERVICE_RANGE} via {SYSTEM.address}" in commands


def test_what_is_there_is_not_made_again() -> None:
    assert makes(plan_up(NODES, ALL)) == []


def test_half_made_network_is_completed() -> None:
    half = Existing(frozenset({layout.BRIDGE}), frozenset({SYSTEM.netns}))
    made = makes(plan_up(NODES, half))
    assert f"netns add {SYSTEM.netns}" not in made
    assert len(made) == 2 * len(NODES) - 1


def test_file_of_a_namespace_that_is_gone_gives_way() -> None:
    commands = plan_up(NODES, GHOST)
    assert commands.index(f"netns delete {SYSTEM.netns}") == commands.index(f"netns add {SYSTEM.netns}") - 1
    assert sum("netns delete" in command for command in commands) == 1


def test_named_namespace_is_told_from_a_file_that_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("there", "left"):
        (tmp_path / name).touch()
    monkeypatch.setattr(network, "NETNS", tmp_path)
    monkeypatch.setattr(mounts, "mounted", lambda: {"/", str(tmp_path), f"{tmp_path}/there"})
    found = observe()
    assert (found.namespaces, found.ghosts) == ({"there"}, {"left"})


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_node_reaches_pods_of_others_by_them_and_all_else_by_the_host(node: layout.Node) -> None:
    commands = plan_node(node, NODES)
    routed = [command for command in commands if command.startswith("route")]
    assert len(routed) == len(NODES) + 1
    assert not any(str(node.pods) in route for route in routed)
    assert routed[-1] == f"route replace default via {layout.HOST}"


@pytest.mark.parametrize(
    ("existing", "removed"),
    [
        pytest.param(NOTHING, [], id="nothing there"),
        pytest.param(
            ALL,
            [*(f"link delete {n.link}" for n in NODES), *(f"netns delete {n.netns}" for n in NODES), f"link delete {layout.BRIDGE}"],
            id="all there, cables first",
        ),
        pytest.param(GHOST, [f"netns delete {SYSTEM.netns}"], id="the file of a namespace that is gone"),
        pytest.param(
            Existing(frozenset({"eth0", WORKERS[0].link}), frozenset({"someone-elses"})),
            [f"link delete {WORKERS[0].link}"],
            id="a cable without its namespace, and another's namespace",
        ),
    ],
)
def test_down_removes_what_is_ours_and_there(existing: Existing, removed: list[str]) -> None:
    assert plan_down(NODES, existing) == removed
