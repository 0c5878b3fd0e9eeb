"""The way out of the local cluster: pods reach what the machine reaches, by its address and resolvers. Nothing comes in.

Link-local addresses stay unreachable, except a resolver: clouds serve machine credentials there. One nftables table does it. Other firewall
rules stay: `up` reports one that drops forwarded packets.
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
    """Removes them, if they are there."""
    succeeds(["nft", "delete", "table", "ip", TABLE])


def find_resolvers() -> list[str]:
    """Addresses of resolvers that pods can ask, at most three; empty where the machine names none."""
    for file in RESOLVERS:
        if file.exists() and (resolvers := read_resolvers(file.read_text())):
            return resolvers
    return []


def read_resolvers(text: str) -> list[str]:
    """The IPv4 addresses of a resolv.conf that pods can reach, at most three, as in the machine's own resolver."""
    lines = [line.split() for line in text.splitlines()]
    named = [fields[1] for fields in lines if len(fields) > 1 and fields[0] == "nameserver"]
    return [address for address in named if _is_reachable(address)][:3]


def render_forward(resolvers: list[str]) -> str:
    """CoreDNS's forwarding of names outside the cluster, for its manifest. Without resolvers these names do not exist."""
    return f"forward . {' '.join(resolvers)}" if resolvers else "template ANY ANY {\n            rcode NXDOMAIN\n        }"


def find_firewall() -> str:
    """Another's chain that drops forwarded packets by policy, as `family table chain`; empty if there is none, or if nft fails."""
    try:
        return read_firewall(json.loads(run(["nft", "--json", "list", "chains"])))
    except (LocalError, ValueError, KeyError):
        return ""


def read_firewall(listed: dict[str, Any]) -> str:
    """The same, from what `nft --json list chains` says."""
    chains = [entry["chain"] for entry in listed["nftables"] if "chain" in entry]
    dropping = [
        chain for chain in chains if (chain.get("hook"), chain.get("policy")) == ("forward", "drop") and chain["family"] in ("ip", "inet")
    ]
    return f"{dropping[0]['family']} {dropping[0]['table']} {dropping[0]['name']}" if dropping else ""


def _is_reachable(text: str) -> bool:
    try:
        return not IPv4Address(text).is_loopback
    except AddressValueError:
        return False
