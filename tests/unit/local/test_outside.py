"""The way out: which resolvers pods can ask, what CoreDNS does with them, which firewall of others keeps pods in, and who is kept out."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from local import layout, outside

MACHINE, NEIGHBOUR = "203.0.113.1", "203.0.113.2"


@pytest.mark.parametrize(
    ("text", "resolvers"),
    [
        pytest.param("nameserver 192.0.2.53\nnameserver 192.0.2.54\n", ["192.0.2.53", "192.0.2.54"], id="two"),
        pytest.param("search a\n# nameserver 192.0.2.1\noptions edns0\nnameserver 192.0.2.53", ["192.0.2.53"], id="among-others"),
        pytest.param("nameserver 127.0.0.53\n", [], id="on-the-loopback"),
        pytest.param("nameserver fd00::1\nnameserver 192.0.2.53\n", ["192.0.2.53"], id="pods-have-no-ipv6"),
        pytest.param("nameserver\nnameserver x\n", [], id="unreadable"),
        pytest.param("".join(f"nameserver 192.0.2.{number}\n" for number in range(1, 6)), [f"192.0.2.{n}" for n in (1, 2, 3)], id="many"),
        pytest.param("", [], id="none"),
    ],
)
def test_resolvers_that_pods_can_ask(text: str, resolvers: list[str]) -> None:
    assert outside.read_resolvers(text) == resolvers


def test_names_outside_go_to_the_resolvers_and_do_not_exist_without_any() -> None:
    assert outside.render_forward(["192.0.2.53", "192.0.2.54"]) == "forward . 192.0.2.53 192.0.2.54"
    assert "NXDOMAIN" in outside.render_forward([])


def chain(**facts: str) -> dict[str, Any]:
    return {"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "hook": "forward", "policy": "drop"} | facts}


@pytest.mark.parametrize(
    ("chains", "said"),
    [
        pytest.param([chain()], "ip filter FORWARD", id="docker"),
        pytest.param([chain(family="inet", table="firewalld", name="filter_FORWARD")], "inet firewalld filter_FORWARD", id="firewalld"),
        pytest.param([chain(policy="accept")], "", id="open"),
        pytest.param([chain(hook="input")], "", id="of-what-comes-in"),
        pytest.param([chain(family="ip6")], "", id="of-another-family"),
        pytest.param([{"metainfo": dict[str, str]()}], "", id="no-chain"),
    ],
)
def test_firewall_that_keeps_pods_in_is_named(chains: list[dict[str, Any]], said: str) -> None:
    assert outside.read_firewall({"nftables": chains}) == said


class Machines:
    """A machine with the cluster's bridge, a node on that, and a neighbour with a route to the cluster: real network namespaces. A user
    namespace of their own gives them the rights."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.machine = self._start("unshare", "--user", "--map-root-user", "--net", "sh", "-c", "echo; exec sleep 600")
        self.node, self.neighbour = (
            self._start(*inside(self.machine), "unshare", "--net", "sh", "-c", "echo; exec sleep 600") for _ in range(2)
        )
        self._ip(
            self.machine,
            f"link add {layout.BRIDGE} type bridge",
            f"link add node type veth peer name eth0 netns {self.node}",
            f"link add outside type veth peer name eth0 netns {self.neighbour}",
            f"link set node master {layout.BRIDGE} up",
            f"address add {layout.HOST}/{layout.NODE_RANGE.prefixlen} dev {layout.BRIDGE}",
            f"address add {MACHINE}/30 dev outside",
            *(f"link set {name} up" for name in ("lo", "outside", layout.BRIDGE)),
        )
        self._ip(self.node, f"address add {layout.SYSTEM.address}/{layout.NODE_RANGE.prefixlen} dev eth0", "link set eth0 up")
        route = f"route add {layout.WHOLE_RANGE} via {MACHINE}"
        self._ip(self.neighbour, f"address add {NEIGHBOUR}/30 dev eth0", "link set eth0 up", route)

    def listen(self) -> None:
        """As the API server does."""
        code = (
            f"import signal, socket; held = socket.create_server(('{layout.HOST}', {layout.API_PORT})); print(flush=True); signal.pause()"
        )
        self._start(*inside(self.machine), sys.executable, "-c", code)

    def reaches(self, machine: int) -> bool:
        code = f"import socket; socket.create_connection(('{layout.HOST}', {layout.API_PORT}), 1)"
        return not subprocess.run([*inside(machine), sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode

    def load(self, rules: str) -> None:
        subprocess.run([*inside(self.machine), "nft", "-f", "-"], input=rules, text=True, check=True)

    def _ip(self, machine: int, *commands: str) -> None:
        subprocess.run([*inside(machine), "ip", "-batch", "-"], input="\n".join(commands) + "\n", text=True, check=True)

    def _start(self, *command: str) -> int:
        process = self._stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        self._stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        return process.pid


def inside(machine: int) -> list[str]:
    return ["nsenter", f"--target={machine}", "--user", "--net", "--preserve-credentials"]


@pytest.fixture
def machines() -> Iterator[Machines]:
    with ExitStack() as stack:
        yield Machines(stack)


def test_machine_answers_its_nodes_and_no_neighbour(machines: Machines) -> None:
    """Linux answers the bridge's address on every interface, so a neighbour with a route reaches what listens there."""
    machines.listen()
    assert machines.reaches(machines.neighbour)
    machines.load(outside.RULES)
    reached = {name: machines.reaches(getattr(machines, name)) for name in ("machine", "node", "neighbour")}
    assert reached == {"machine": True, "node": True, "neighbour": False}
