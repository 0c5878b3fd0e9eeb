"""The way out: which resolvers pods can ask, what CoreDNS does with them, and which firewall of others keeps pods in."""

from typing import Any

import pytest

from local import outside


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
