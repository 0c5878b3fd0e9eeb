"""Health check of InfiniBand, RoCE and EFA ports, and of Ethernet bonds. They are up, as fast as the others of their kind, and their errors
do not grow. Runs on the node; standard library only.

Settings: `minPorts`, `maxPortsDown`, `minRateGbps` (0: that of the fastest card of the same model), and `efaDevices` (as the catalogue has
them). There is a limit for each error counter of one port within `windowS`. `minBondPorts` and `maxBondPortsDown` are of each bond. Earlier
counters are kept beside slurmd: a check that may not write there, such as one that runs as a job, does not judge growth.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_KEPT = Path("/run/slurm/slipway-check-network.json")
_COUNTERS = {"link_downed": "maxLinkDowns", "symbol_error": "maxSymbolErrors"}
_ROCE = {
    "rx_icrc_encapsulated": "maxIcrcErrors",
    "out_of_sequence": "maxSequenceErrors",
    "packet_seq_err": "maxSequenceErrors",
    "local_ack_timeout_err": "maxAckTimeouts",
}
"""Damaged packets; lost ones, as the receiver and the sender see them; answers that never came. Loss and time-outs may be the fault of the
fabric or of the other node, and some fabrics lose packets in good health. Source: Linux, drivers/infiniband/hw/mlx5/counters.c; NVIDIA,
"Understanding mlx5 Linux Counters and Status Parameters"."""
_EFA = {
    "rx_drops": "maxDrops",
    "retrans_timeout_events": "maxRetransmitTimeouts",
    "impaired_remote_conn_events": "maxRemoteFaults",
    "unresponsive_remote_events": "maxRemoteFaults",
}
"""Packets that came and were dropped; time-outs that changed the path; connections that got slow or silent. A connection also gets silent
if the other node dies. Source: Linux, drivers/infiniband/hw/efa/efa_verbs.c; AWS, "Monitor an Elastic Fabric Adapter"."""
_LIMITS = {**_COUNTERS, **_ROCE, **_EFA}
_MAY_BE_NONE = frozenset({*_ROCE.values(), *_EFA.values()} - {"maxIcrcErrors"})
"""The limits of which 0 is none."""
_WORDS = {"link_downed": "lost its link", "symbol_error": "had symbol errors"}
_DISABLED = "Disabled"
_UP = "up"


@dataclass(frozen=True)
class Port:
    """A port of a card."""

    name: str
    """`mlx5_0/1`."""
    model: str
    """Cards of one model have the same speed."""
    is_efa: bool
    state: str
    """`ACTIVE`, `DOWN`, `INIT` and so on."""
    physical: str
    """`LinkUp`, `Polling`, `Disabled` and so on."""
    rate_gbps: float
    counters: dict[str, int]

    @property
    def is_up(self) -> bool:
        return self.state == "ACTIVE" and self.physical == "LinkUp"


@dataclass(frozen=True)
class Bond:
    """A bond of Ethernet cards, as sysfs has it: what /proc/net/bonding prints for people."""

    name: str
    is_up: bool
    """Its MII status."""
    ports: dict[str, str]
    """By the card's name: `up`, another MII status, or that LACP has left it out."""


def judge(
    ports: list[Port], growth: dict[str, dict[str, int]] | None, settings: dict[str, Any], bonds: list[Bond] | None = None
) -> tuple[str, str]:
    """The result, and what was found, from the ports, the growth of each port's counters (None if it is not known), and the bonds."""
    used = [port for port in ports if port.physical != _DISABLED]  # somebody has switched it off
    bonds = bonds or []
    faults = _counts(used, settings) + _bond_faults(bonds, settings)
    for port in used:
        fastest = max(peer.rate_gbps for peer in used if peer.model == port.model and peer.is_efa == port.is_efa)
        wanted = settings["minRateGbps"] or fastest
        if port.is_up and port.rate_gbps < wanted:
            faults.append(f"port {port.name} has {port.rate_gbps:g} Gbit/s, {wanted:g} wanted")
        for counter, times in (growth or {}).get(port.name, {}).items():
            most = settings[_LIMITS[counter]]
            if times > most and (most or _LIMITS[counter] not in _MAY_BE_NONE):
                text = _WORDS.get(counter, f"counted {counter}")
                faults.append(f"port {port.name} {text} more than {most} times in {settings['windowS']} s")
    if faults:
        return "failed", "; ".join(faults)
    if not used and not bonds:
        return "skipped", "no InfiniBand, RoCE or EFA port is here, and no bond"
    up = sum(port.is_up for port in used)
    texts = [f"{up} of {len(used)} ports are up{'' if growth is not None else ', their errors are not judged'}"] if used else []
    return "passed", "; ".join([*texts, *(f"{bond.name} has {_up(bond)} of {len(bond.ports)} ports up" for bond in bonds)])


def _up(bond: Bond) -> int:
    return sum(state == _UP for state in bond.ports.values())


def _bond_faults(bonds: list[Bond], settings: dict[str, Any]) -> list[str]:
    faults: list[str] = []
    least = settings["minBondPorts"]
    if least and not bonds:
        faults.append(f"no bond is here, one with {least} ports wanted")
    for bond in bonds:
        down = [f"{bond.name}: {name} is {state}" for name, state in bond.ports.items() if state != _UP]
        if not bond.is_up:
            faults.append(f"{bond.name} is down")
        if len(down) > settings["maxBondPortsDown"]:
            faults += down
        if _up(bond) < least:
            faults.append(f"{bond.name} has {_up(bond)} ports up, {least} wanted")
    return faults


def _counts(used: list[Port], settings: dict[str, Any]) -> list[str]:
    """Ports and cards that are missing or down."""
    faults: list[str] = []
    down = [port for port in used if not port.is_up]
    if len(down) > settings["maxPortsDown"]:
        faults += [f"port {port.name} is {port.state} ({port.physical})" for port in down]
    up = len(used) - len(down)
    if up < settings["minPorts"]:
        faults.append(f"{up} ports are up, {settings['minPorts']} wanted")
    efas = sum(port.is_efa for port in used)
    if efas < settings["efaDevices"]:
        faults.append(f"{efas} EFA devices, {settings['efaDevices']} declared")
    return faults


def read_ports(folder: Path) -> list[Port]:
    """All ports, from sysfs's folder `infiniband`. Raises OSError or ValueError."""
    return [_port(port) for port in sorted(folder.glob("*/ports/*"))]


def _port(port: Path) -> Port:
    device = port.parent.parent
    is_efa = (device / "device" / "driver").resolve().name == "efa"
    counters = {name: int(file.read_text()) for name in _COUNTERS if (file := port / "counters" / name).exists()}
    more = _EFA if is_efa else _ROCE if _text(port / "link_layer") == "Ethernet" else ()
    counters |= {name: count for name in more if (count := _hardware_count(port / "hw_counters" / name)) is not None}
    return Port(
        f"{device.name}/{port.name}",
        _text(device / "board_id") or _text(device / "hca_type"),
        is_efa,
        _text(port / "state").partition(": ")[2],
        _text(port / "phys_state").partition(": ")[2],
        float(_text(port / "rate").split(" ")[0] or 0),
        counters,
    )


def _hardware_count(file: Path) -> int | None:
    """None for what cannot be read, and is not judged: cards and drivers differ in what they count."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def read_bonds(folder: Path) -> list[Bond]:
    """All bonds that have cards, from sysfs's folder `class/net`; the kernel's module makes an empty one. Raises OSError."""
    bonds = [_bond(bonding.parent) for bonding in sorted(folder.glob("*/bonding"))]
    return [bond for bond in bonds if bond.ports]


def _bond(device: Path) -> Bond:
    """Source: Linux, Documentation/networking/bonding.rst and drivers/net/bonding/bond_sysfs_slave.c."""
    aggregator = _text(device / "bonding" / "ad_aggregator")  # with LACP alone
    ports: dict[str, str] = {}
    for name in _text(device / "bonding" / "slaves").split():
        card = device.parent / name / "bonding_slave"
        ports[name] = _text(card / "mii_status") or "missing"
        if ports[name] == _UP and aggregator and _text(card / "ad_aggregator_id") != aggregator:
            ports[name] = "left out by LACP"
    return Bond(device.name, _text(device / "bonding" / "mii_status") == _UP, ports)


def grown(kept: dict[str, Any], ports: list[Port], now: float, window_s: int) -> tuple[dict[str, dict[str, int]], dict[str, Any]]:
    """How much the counters of each port have grown since the window began, and what to keep for the next look. A new window, and a counter
    that began again, begin with the present values."""
    is_young = "at" in kept and 0 <= now - kept["at"] <= window_s
    first: dict[str, dict[str, int]] = kept["counters"] if is_young else {}
    growth: dict[str, dict[str, int]] = {}
    start: dict[str, dict[str, int]] = {}
    for port in ports:
        before = first.get(port.name, {})
        start[port.name] = {name: min(before.get(name, value), value) for name, value in port.counters.items()}
        growth[port.name] = {name: value - start[port.name][name] for name, value in port.counters.items()}
    return growth, {"at": kept["at"] if is_young else now, "counters": start}


def _growth(ports: list[Port], window_s: int) -> dict[str, dict[str, int]] | None:
    try:
        stored: dict[str, Any] = json.loads(_KEPT.read_text())
    except (OSError, ValueError):
        stored = {}
    growth, keep = grown(stored, ports, time.time(), window_s)
    try:
        _KEPT.with_suffix(f".{os.getpid()}").write_text(json.dumps(keep))
        _KEPT.with_suffix(f".{os.getpid()}").replace(_KEPT)
    except OSError:
        return None
    return growth


def main() -> None:
    settings = json.loads(sys.argv[1])
    try:
        ports = read_ports(Path("/sys/class/infiniband"))
        bonds = read_bonds(Path("/sys/class/net"))
        result, found = judge(ports, _growth(ports, settings["windowS"]) if ports else {}, settings, bonds)
    except (OSError, ValueError) as error:
        result, found = "unknown", f"the ports cannot be read: {error}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
