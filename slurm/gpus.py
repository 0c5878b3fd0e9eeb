"""The GPUs of the machine that this runs on: their device files, and where the vendor's own program for asking about them is."""

import os
import re
import stat

_DEVICES = {"nvidia": ("/dev", r"nvidia\d+"), "amd": ("/dev/dri", r"renderD\d+")}
_FOLDERS = ("/usr/bin", "/usr/local/nvidia/bin", "/run/nvidia/bin", "/opt/rocm/bin")


def count_devices(vendor: str) -> int:
    """How many GPUs have a device file. `vendor` is nvidia or amd."""
    folder, pattern = _DEVICES[vendor]
    try:
        with os.scandir(folder) as entries:
            return sum(1 for entry in entries if re.fullmatch(pattern, entry.name) and stat.S_ISCHR(entry.stat().st_mode))
    except FileNotFoundError:
        return 0


def find_program(name: str) -> str:
    """The path of nvidia-smi or amd-smi; empty where the driver brought none."""
    return next((f"{folder}/{name}" for folder in _FOLDERS if os.access(f"{folder}/{name}", os.X_OK)), "")
