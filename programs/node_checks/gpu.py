"""Health check of a node's GPUs: as many as declared, and none that reports errors. Runs on the node; standard library only.

Settings: `vendor`, `count`, `simulated`, `maxUncorrectableErrors`. Device files are counted first; then NVIDIA's GPUs are asked through
`nvidia-smi`. Where the state cannot be asked (no nvidia-smi; AMD) a right count alone is unknown, not passed. Simulated GPUs have no state.
"""

import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DEVICES = {"nvidia": ("/dev", r"nvidia\d+"), "amd": ("/dev/dri", r"renderD\d+")}
_FIELDS = ("index", "pstate", "ecc.errors.uncorrected.volatile.total", "retired_pages.pending", "remapped_rows.failure")
_ANSWERS = re.compile(r"P\d+")
_NO_SUCH_MEMORY = ("[N/A]", "N/A", "[Not Supported]", "Disabled")
"""What nvidia-smi says for a GPU that does not count memory errors."""
_FAULTS = (8, 9, 10, 14, 15)
"""Exit codes of nvidia-smi that mean a GPU or its driver is at fault: power, driver, interrupts, infoROM, inaccessible."""


@dataclass(frozen=True)
class State:
    """What one GPU says of itself."""

    index: str
    performance: str
    """P0 to P15; anything else means that the GPU did not answer."""
    uncorrectable: int
    """Uncorrectable memory errors since the driver was loaded; 0 where the GPU has no such memory."""
    is_worn: bool
    """Memory is to be retired, or could not be."""


def judge(devices: int, states: list[State] | None, settings: dict[str, Any]) -> tuple[str, str]:
    """From the number of device files, and the states where they could be asked: the result, and what was found; every fault is named."""
    wanted = settings["count"]
    faults: list[str] = []
    if devices != wanted:
        faults.append(f"{devices} GPU devices, {wanted} declared")
    if states is not None and len(states) != wanted:
        faults.append(f"{len(states)} GPUs answer, {wanted} declared")
    for gpu in states or []:
        if not _ANSWERS.fullmatch(gpu.performance):
            faults.append(f"GPU {gpu.index} says {gpu.performance}")
        if gpu.uncorrectable > settings["maxUncorrectableErrors"]:
            faults.append(f"GPU {gpu.index} has {gpu.uncorrectable} uncorrectable memory errors")
        if gpu.is_worn:
            faults.append(f"GPU {gpu.index} has memory to be retired")
    if faults:
        return "failed", "; ".join(faults)
    if states is None and not settings["simulated"]:
        return "unknown", f"{devices} of {wanted} GPU devices are there, but their state cannot be asked on this node"
    return "passed", f"{wanted} {'simulated ' if settings['simulated'] else ''}GPUs"


def read_states(text: str) -> list[State]:
    """From the lines that nvidia-smi prints for `_FIELDS`. Raises ValueError for a line of another form."""
    return [_state([field.strip() for field in line.split(",")]) for line in text.splitlines() if line.strip()]


def _state(fields: list[str]) -> State:
    if len(fields) != len(_FIELDS):
        raise ValueError(f"nvidia-smi said {fields}")
    index, performance, errors, pending, failure = fields
    if not errors.isdigit() and errors not in _NO_SUCH_MEMORY and _ANSWERS.fullmatch(performance):
        raise ValueError(f"the memory errors of GPU {index} cannot be read: nvidia-smi says {errors}")
    return State(index, performance, int(errors) if errors.isdigit() else 0, "Yes" in (pending, failure))


def count_devices(vendor: str) -> int:
    folder, pattern = _DEVICES[vendor]
    if not Path(folder).is_dir():
        return 0
    return sum(1 for file in Path(folder).iterdir() if re.fullmatch(pattern, file.name) and stat.S_ISCHR(file.stat().st_mode))


def ask_nvidia() -> list[State] | None:
    """The states of all GPUs; None where there is no nvidia-smi. Raises CalledProcessError when the driver does not answer."""
    path = ["/usr/bin", "/usr/local/nvidia/bin", "/run/nvidia/bin"]
    command = next((f"{folder}/nvidia-smi" for folder in path if os.access(f"{folder}/nvidia-smi", os.X_OK)), None)
    if command is None:
        return None
    query = [command, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    return read_states(subprocess.run(query, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    settings = json.loads(sys.argv[1])
    try:
        states = ask_nvidia() if settings["vendor"] == "nvidia" and not settings["simulated"] else None
        result, found = judge(count_devices(settings["vendor"]), states, settings)
    except subprocess.CalledProcessError as error:
        said = (error.stdout + error.stderr).strip().splitlines() or ["nothing"]
        result = "failed" if error.returncode in _FAULTS else "unknown"
        found = f"nvidia-smi ended with {error.returncode}: {said[-1]}"
    except (OSError, ValueError) as error:
        result, found = "unknown", str(error)
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
