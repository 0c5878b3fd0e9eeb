"""The way out of the local cluster: pods reach what the machine reaches, by the machine's address and resolvers. Nothing comes in by it.

Out of reach stays what is for the machine alone: link-local addresses, at which clouds give a machine its credentials, but for a resolver
there. On the machine one nftables table of our own does that, beside forwarding of packets (tunables). Rules of others stay as they are:
a firewall that drops forwarded packets keeps pods in, and `up` says so.
"""

import json
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from local import layout
from local.commands import LocalError, run, succeeds

TABLE = "slipway"
LINK_LOCAL = IPv4Network("169.254.0.0/16")
RULES = f"""
table ip {TABLE} {{
}}
delete table ip {TABLE}
table ip {TABLE} {{
  chain leaving {{
    type nat hook postrouting priority srcnat;
    ip saddr {layout.WHOLE_RANGE} oifname != "{layout.BRIDGE}" masquerade
  }}
  chain passing {{
    type filter hook forward priority filter;
    iifname "{layout.BRIDGE}" ip daddr {LINK_LOCAL} meta l4proto {{ tcp, udp }} th dport != 53 drop
    iifname != "{layout.BRIDGE}" oifname "{layout.BRIDGE}" ct state new,invalid drop
  }}
  chain arriving {{
    type filter hook input priority filter;
    ip daddr {layout.WHOLE_RANGE} iifname != {{ "lo", "{layout.BRIDGE}" }} drop
  }}
}}
"""
"""nft replaces the whole table by this one. Pods get answers to what they asked. Nobody outside the machine can begin to talk to a pod or
to the control plane, although Linux answers the bridge's address on every interface."""

RESOLVERS = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))
"""Where the machine's resolvers are listed; the second has those behind systemd's own, which answers on the loopback only."""


def up() -> None:
    """Makes the rules. Raises LocalError with the words of `nft`."""
    run(["nft", "-f", "-"], stdin=RULES)


def down() -> None:
    """Removes them; what is gone already is no error."""
    succeeds(["nft", "delete", "table", "ip", TABLE])


def find_resolvers() -> list[str]:
    """Addresses of resolvers that pods can ask, at most three; empty where the machine names none."""
    for file in RESOLVERS:
        if file.exists() and (found := read_resolvers(file.read_text())):
            return found
    return []


def read_resolvers(text: str) -> list[str]:
    """The IPv4 addresses of a resolv.conf that are not of the machine's loopback. Its resolver asks three of them; so does ours."""
    lines = [line.split() for line in text.splitlines()]
    named = [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]
    return [each for each in named if _is_reachable(each)][:3]


def render_forward(resolvers: list[str]) -> str:
    """What CoreDNS does with names outside the cluster, as its manifest takes it. Without resolvers they do not exist."""
    return f"forward . {' '.join(resolvers)}" if resolvers else "template ANY ANY {\n            rcode NXDOMAIN\n        }"


def find_firewall() -> str:
    """The chain of others that drops forwarded packets by its policy, as `family table chain`; empty where nft lists none, or fails."""
    try:
        return read_firewall(json.loads(run(["nft", "--json", "list", "chains"])))
    except (LocalError, ValueError, KeyError):
        return ""


def read_firewall(listed: dict[str, Any]) -> str:
    """The same, from what `nft --json list chains` says."""
    chains = [each["chain"] for each in listed["nftables"] if "chain" in each]
    found = [each for each in chains if (each.get("hook"), each.get("policy")) == ("forward", "drop") and each["family"] in ("ip", "inet")]
    return f"{found[0]['family']} {found[0]['table']} {found[0]['name']}" if found else ""


def _is_reachable(text: str) -> bool:
    try:
        return not IPv4Address(text).is_loopback
    except AddressValueError:
        return False
