"""Health check of GPUs under full load: gpu_burn, which multiplies matrices on all of them and compares. Runs on the node.

Settings: `gpus` of the node, `seconds`, `minShareOfMedianPercent` of the median speed of the node's GPUs, `command`. Format:
gpu_burn-drv.cpp of wilicc/gpu-burn.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from .vendor import CannotRunError, Ended, find, hardware_fault, run

_FOLDERS = ("/opt/gpu-burn",)
_REMEDY = "install gpu-burn where the worker finds it (docs/reference/checks.md), as /opt/gpu-burn"
_PROGRESS = re.compile(r"proc'd:(.*?)errors:(.*?)(?:temps:|$)")
_SPEED = re.compile(r"(-?\d+) \((\d+) Gflop/s\)")
_ERRORS = re.compile(r"(-?\d+)")
_VERDICT = re.compile(r"^\s*GPU (\d+): (OK|FAULTY)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Gpu:
    """What gpu_burn reports of one GPU."""

    index: int
    is_faulty: bool
    gflops: float
    """The median of its reports; 0 without one."""
    errors: int
    """The most that one report has."""


def read(text: str) -> "list[Gpu]":
    """The GPUs of the table at the end, in its order; none if gpu_burn did not get so far."""
    speeds: dict[int, list[float]] = {}
    errors: dict[int, int] = {}
    for line in re.split(r"[\r\n]+", text):
        if progress := _PROGRESS.search(line):
            for at, (_, speed) in enumerate(_SPEED.findall(progress[1])):
                speeds.setdefault(at, []).extend([float(speed)] if len(speed) < 16 and int(speed) > 0 else [])
            for at, count in enumerate(_ERRORS.findall(progress[2])):
                errors[at] = max(errors.get(at, 0), int(count) if len(count) < 16 else 0)
    return [
        Gpu(at, verdict[2] == "FAULTY", median(speeds.get(at) or [0.0]), errors.get(at, 0))
        for at, verdict in enumerate(_VERDICT.finditer(text))
    ]


def judge(ended: Ended, settings: "dict[str, Any]") -> "tuple[str, str]":
    """`passed`, `failed` or `unknown`, and what was found; every fault is named."""
    gpus, broken = read(ended.output), hardware_fault(ended.text)
    faults = [broken] if broken else []
    faults += [
        f"GPU {gpu.index} computes wrong: {gpu.errors} errors" if gpu.errors > 0 else f"GPU {gpu.index} has died"
        for gpu in gpus
        if gpu.is_faulty
    ]
    known = [gpu.gflops for gpu in gpus if gpu.gflops > 0]
    usual, share = (median(known) if known else 0.0), settings["minShareOfMedianPercent"]
    for gpu in gpus:
        if not gpu.is_faulty and 0 < gpu.gflops * 100 < usual * share:
            faults.append(f"GPU {gpu.index} reaches {gpu.gflops:.0f} Gflop/s, where the median is {usual:.0f}")
    if gpus and len(gpus) < settings["gpus"]:
        faults.append(f"{len(gpus)} GPUs took part, {settings['gpus']} expected")
    if faults:
        return "failed", "; ".join(faults)
    if not gpus or not known or ended.code != 0:
        return "unknown", f"gpu_burn {ended.how}"
    if silent := [str(gpu.index) for gpu in gpus if gpu.gflops <= 0]:
        return "unknown", f"gpu_burn reported no speed of GPU {', '.join(silent)}: give it more seconds"
    return "passed", f"{len(gpus)} GPUs at {min(known):.0f} to {max(known):.0f} Gflop/s without errors"


def main() -> None:
    settings = json.loads(sys.argv[1])
    try:
        command = find(settings["command"], "gpu_burn", _FOLDERS, _REMEDY)
        # It looks for its kernel (compare.ptx, compare.fatbin) in the folder that it is started in.
        ended = run([*command, str(settings["seconds"])], str(Path(command[0]).resolve().parent))
        result, found = judge(ended, settings)
    except CannotRunError as error:
        result, found = "unknown", str(error)
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
