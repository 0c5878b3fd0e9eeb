"""Health check of PCIe links: GPUs, network cards and NVMe disks use the lanes and the speed that both ends support. Runs on the node;
standard library only.

Settings: `maxNarrow`, `maxSlow`: devices that may be below. A GPU slows its link down while idle, so only others are judged by speed. Links
that report no maximum, as in most virtual machines, are not judged.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
_KINDS = {"0x0108": "disk", "0x0200": "network card", "0x0207": "InfiniBand card", **dict.fromkeys(_GPU_CLASSES, "GPU")}
"""Classes of PCI: NVMe, Ethernet, InfiniBand; VGA, 3D and other display controllers, processing accelerators. Source: pci.ids."""
_GPU_VENDORS = ("0x10de", "0x1002")
"""A display controller of others is that of the board's own processor."""


@dataclass(frozen=True)
class Link:
    """The PCIe link of one device, as the lesser of what both ends support. None for what is not reported."""

    address: str
    kind: str
    width: int | None
    widest: int | None
    speed: float | None
    """GT/s."""
    fastest: float | None


def judge(links: list[Link], settings: dict[str, Any]) -> tuple[str, str]:
    """The result, and what was found; every fault is named."""
    told = [link for link in links if link.width is not None and link.widest is not None]
    if not told:
        return "skipped", f"{len(links)} PCIe devices, and no link says how wide it is"
    narrow = [
        f"{link.kind} {link.address} has {link.width} of {link.widest} lanes" for link in told if (link.width or 0) < (link.widest or 0)
    ]
    slow = [
        f"{link.kind} {link.address} has {link.speed:g} of {link.fastest:g} GT/s"
        for link in told
        if link.kind != "GPU" and link.speed is not None and link.fastest is not None and link.speed < link.fastest
    ]
    faults = (narrow if len(narrow) > settings["maxNarrow"] else []) + (slow if len(slow) > settings["maxSlow"] else [])
    return ("failed", "; ".join(faults)) if faults else ("passed", f"{len(told)} PCIe links are as wide as they can be")


def read_links(folder: Path) -> list[Link]:
    """The links of all GPUs, network cards and disks, from sysfs's folder of PCI devices."""
    return [link for device in sorted(folder.glob("*")) if (link := _link(device)) is not None]


def _link(device: Path) -> Link | None:
    code = _text(device / "class")[:6]
    kind = _KINDS.get(code)
    if kind is None or (kind == "GPU" and _text(device / "vendor") not in _GPU_VENDORS):
        return None
    if (device / "physfn").exists():  # a part of another device, whose link it shares
        return None
    above = device.resolve().parent
    return Link(
        device.name,
        kind,
        _width(device / "current_link_width"),
        _least(_width(device / "max_link_width"), _width(above / "max_link_width")),
        _speed(device / "current_link_speed"),
        _least(_speed(device / "max_link_speed"), _speed(above / "max_link_speed")),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _width(path: Path) -> int | None:
    """None for 0 and 255: the kernel's words for a link that it does not know."""
    text = _text(path)
    return int(text) if text.isdigit() and text not in ("0", "255") else None


def _speed(path: Path) -> float | None:
    """From `16.0 GT/s PCIe`; None for `Unknown`."""
    try:
        return float(_text(path).split(" ")[0])
    except ValueError:
        return None


def _least(device: float | None, above: float | None) -> Any:
    """What both ends support; the device's value if the other end reports nothing."""
    return device if device is None or above is None else min(device, above)


def main() -> None:
    result, found = judge(read_links(Path("/sys/bus/pci/devices")), json.loads(sys.argv[1]))
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
