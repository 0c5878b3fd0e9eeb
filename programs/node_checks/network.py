"""Health check of InfiniBand, RoCE and EFA ports: they are up, as fast as the others of their kind, and their errors do not grow. Runs on
the node; standard library only.

Settings: `minPorts`, `maxPortsDown`, `minRateGbps` (0: that of the fastest card of the same model), `maxLinkDowns` and `maxSymbolErrors`
of one port within `windowS`, `efaDevices` (as the catalogue has them). Counters of an earlier look are kept beside slurmd: a check that may
not write there, as one that runs as a job, does not judge growth. The ports are the machine's: all nodes on it see the same.
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
_WORDS = {"link_downed": "lost its link", "symbol_error": "had symbol errors"}
_DISABLED = "Disabled"


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


def judge(ports: list[Port], growth: dict[str, dict[str, int]] | None, settings: dict[str, Any]) -> tuple[str, str]:
    """From the ports, and by port how much its counters have grown, None where that is not known: the result, and what was found."""
    used = [port for port in ports if port.physical != _DISABLED]  # somebody has switched it off
    faults = _counts(used, settings)
    for port in used:
        fastest = max(each.rate_gbps for each in used if each.model == port.model and each.is_efa == port.is_efa)
        wanted = settings["minRateGbps"] or fastest
        if port.is_up and port.rate_gbps < wanted:
            faults.append(f"port {port.name} has {port.rate_gbps:g} Gbit/s, {wanted:g} wanted")
        for counter, limit in _COUNTERS.items():
            times = (growth or {}).get(port.name, {}).get(counter, 0)
            if times > settings[limit]:
                faults.append(f"port {port.name} {_WORDS[counter]} more than {settings[limit]} times in {settings['windowS']} s")
    if faults:
        return "failed", "; ".join(faults)
    if not used:
        return "skipped", "no InfiniBand, RoCE or EFA port is here"
    up = sum(port.is_up for port in used)
    return "passed", f"{up} of {len(used)} ports are up{'' if growth is not None else ', their errors are not judged'}"


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
    driver = (device / "device" / "driver").resolve().name
    counters = {name: int(file.read_text()) for name in _COUNTERS if (file := port / "counters" / name).exists()}
    return Port(
        f"{device.name}/{port.name}",
        _text(device / "board_id") or _text(device / "hca_type"),
        driver == "efa",
        _text(port / "state").partition(": ")[2],
        _text(port / "phys_state").partition(": ")[2],
        float(_text(port / "rate").split(" ")[0] or 0),
        counters,
    )


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def grown(kept: dict[str, Any], ports: list[Port], now: float, window_s: int) -> tuple[dict[str, dict[str, int]], dict[str, Any]]:
    """How much the counters of each port have grown since the window began, and what to keep for the next look. A window that is over, and
    a counter that began again, begin with what there is now."""
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
        kept: dict[str, Any] = json.loads(_KEPT.read_text())
    except (OSError, ValueError):
        kept = {}
    growth, keep = grown(kept, ports, time.time(), window_s)
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
        result, found = judge(ports, _growth(ports, settings["windowS"]) if ports else {}, settings)
    except (OSError, ValueError) as error:
        result, found = "unknown", f"the ports cannot be read: {error}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
