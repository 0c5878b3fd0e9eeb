"""Health check of a node's GPUs: as many as declared, and none broken, hot or held back. Beside jobs, none is used by a process of no job.
Runs on the node; standard library only.

Settings: `vendor`, `count`, `simulated`, limits, `otherDrivers` (nodes of the set that may be drained for another driver),
`maxIdleMemoryMiB` (0 beside jobs). Without `nvidia-smi` or `amd-smi`, a right count is unknown, not passed. What a GPU or its driver does
not report is not judged.
"""

import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .gpu_processes import QUERY, fault, foreign, read_processes

_DEVICES = {"nvidia": ("/dev", r"nvidia\d+"), "amd": ("/dev/dri", r"renderD\d+")}
_FOLDERS = ("/usr/bin", "/usr/local/nvidia/bin", "/run/nvidia/bin", "/opt/rocm/bin")
_CORE = ("index", "pstate", "ecc.errors.uncorrected.volatile.total", "retired_pages.pending", "remapped_rows.failure")
_MORE = (
    "driver_version",
    "remapped_rows.pending",
    "temperature.gpu",
    "clocks_event_reasons.hw_thermal_slowdown",
    "clocks_event_reasons.hw_power_brake_slowdown",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "utilization.gpu",
    "memory.used",
    "fabric.state",
    "fabric.status",
)
_FIELDS: tuple[str, ...] = (*_CORE, *_MORE)
"""What nvidia-smi is asked for. A driver that does not know one of `_MORE` is asked again without it."""
_OLD_NAMES = {field: field.replace("clocks_event", "clocks_throttle") for field in _MORE if field.startswith("clocks_event")}
"""As drivers before 535 call them."""
_REJECTED = re.compile(r'Field "([^"]+)" is not a valid field to query')
_ANSWERS = re.compile(r"P\d+")
_NO_SUCH_MEMORY = ("[N/A]", "N/A", "[Not Supported]", "Disabled")
"""What nvidia-smi says for a GPU that does not count memory errors."""
_FAULTS = (8, 9, 10, 14, 15)
"""Exit codes of nvidia-smi that mean a GPU or its driver is at fault: power, driver, interrupts, infoROM, inaccessible."""
_LOAD_PERCENT = 10
"""An idle GPU may use less of its PCIe link than it can. Source: nvidia-smi(1), "GPU Link information"."""
_AMD_VIOLATIONS = ("prochot", "socket_thermal", "vr_thermal", "hbm_thermal")
"""AMD's words for being held back by heat; `ppt` is the power limit, which work usually reaches."""
_AMD_MODULE = Path("/sys/module/amdgpu")


@dataclass(frozen=True)
class State:
    """What one GPU reports; None and the empty text for what it does not report."""

    index: str
    performance: str
    """P0 to P15; anything else means that the GPU did not answer."""
    uncorrectable: int
    """Uncorrectable memory errors since the driver was loaded; 0 where the GPU has no such memory."""
    is_worn: bool
    """Memory is to be retired, or could not be."""
    temperature_c: int | None = None
    """Of NVIDIA's the core; of AMD's the hotspot."""
    throttled: str = ""
    """Why the hardware holds it back."""
    is_loaded: bool = False
    lanes: tuple[int, int] | None = None
    """PCIe lanes in use, and the most."""
    generation: tuple[int, int] | None = None
    """PCIe generation in use, and the highest."""
    memory_used_mib: int | None = None
    fabric: str = ""
    """What is wrong with its place in the NVLink fabric."""
    nvlinks: int | None = None
    """NVLinks that are active."""
    driver: str = ""
    """Version of the driver."""


def judge(devices: int, states: list[State] | None, settings: dict[str, Any], strangers: list[str] | None = None) -> tuple[str, str]:
    """The result, and what was found: every fault is named.

    It follows from the number of device files, the states if they could be read, and the processes that belong to no job.
    """
    wanted = settings["count"]
    faults: list[str] = []
    if devices != wanted:
        faults.append(f"{devices} GPU devices, {wanted} declared")
    if states is not None and len(states) != wanted:
        faults.append(f"{len(states)} GPUs answer, {wanted} declared")
    for gpu in states or []:
        faults += _faults(gpu, settings)
    throttled = [gpu for gpu in states or [] if gpu.throttled]
    if len(throttled) > settings["maxThrottled"]:
        faults += [f"GPU {gpu.index} is held back by {gpu.throttled}" for gpu in throttled]
    if stranger := fault(strangers or [], settings["maxForeignProcesses"]):
        faults.append(stranger)
    if faults:
        return "failed", "; ".join(faults)
    if states is None and not settings["simulated"]:
        return "unknown", f"{devices} of {wanted} GPU devices are there, but their state cannot be asked on this node"
    return "passed", f"{wanted} {'simulated ' if settings['simulated'] else ''}GPUs"


def _faults(gpu: State, settings: dict[str, Any]) -> list[str]:
    faults: list[str] = []
    if not _ANSWERS.fullmatch(gpu.performance):
        faults.append(f"GPU {gpu.index} says {gpu.performance}")
    if gpu.uncorrectable > settings["maxUncorrectableErrors"]:
        faults.append(f"GPU {gpu.index} has {gpu.uncorrectable} uncorrectable memory errors")
    if gpu.is_worn:
        faults.append(f"GPU {gpu.index} has memory to be retired")
    if gpu.temperature_c is not None and settings["maxTemperatureC"] and gpu.temperature_c > settings["maxTemperatureC"]:
        faults.append(f"GPU {gpu.index} is hotter than {settings['maxTemperatureC']} C")
    if gpu.is_loaded and gpu.lanes and gpu.lanes[0] < gpu.lanes[1]:
        faults.append(f"GPU {gpu.index} has {gpu.lanes[0]} of {gpu.lanes[1]} PCIe lanes")
    if gpu.is_loaded and gpu.generation and gpu.generation[0] < gpu.generation[1]:
        faults.append(f"GPU {gpu.index} has PCIe {gpu.generation[0]}, {gpu.generation[1]} possible")
    if gpu.fabric:
        faults.append(f"GPU {gpu.index} is not in the NVLink fabric: {gpu.fabric}")
    if gpu.nvlinks is not None and gpu.nvlinks < settings["minNvlinks"]:
        faults.append(f"GPU {gpu.index} has {gpu.nvlinks} active NVLinks, {settings['minNvlinks']} wanted")
    if settings["maxIdleMemoryMiB"] and (gpu.memory_used_mib or 0) > settings["maxIdleMemoryMiB"]:
        faults.append(f"GPU {gpu.index} has more than {settings['maxIdleMemoryMiB']} MiB in use on an idle node")
    return faults


def read_states(text: str, fields: tuple[str, ...] = _FIELDS) -> list[State]:
    """From the lines that nvidia-smi prints for these fields. Raises ValueError for a line of another form."""
    return [_state([field.strip() for field in line.split(",")], fields) for line in text.splitlines() if line.strip()]


def _state(values: list[str], fields: tuple[str, ...]) -> State:
    if len(values) != len(fields):
        raise ValueError(f"nvidia-smi said {values}")
    index, performance, errors, pending, failure = values[: len(_CORE)]
    if not errors.isdigit() and errors not in _NO_SUCH_MEMORY and _ANSWERS.fullmatch(performance):
        raise ValueError(f"the memory errors of GPU {index} cannot be read: nvidia-smi says {errors}")
    more = {field.replace("clocks_throttle", "clocks_event"): word for field, word in zip(fields, values, strict=True)}
    reasons = {"heat": "hw_thermal_slowdown", "the power brake": "hw_power_brake_slowdown"}
    return State(
        index,
        performance,
        int(errors) if errors.isdigit() else 0,
        "Yes" in (pending, failure, more.get("remapped_rows.pending")),
        _number(more.get("temperature.gpu")),
        " and ".join(why for why, name in reasons.items() if more.get(f"clocks_event_reasons.{name}") == "Active"),
        (_number(more.get("utilization.gpu")) or 0) >= _LOAD_PERCENT,
        _pair(more.get("pcie.link.width.current"), more.get("pcie.link.width.max")),
        _pair(more.get("pcie.link.gen.current"), more.get("pcie.link.gen.max")),
        _number(more.get("memory.used")),
        _fabric(more.get("fabric.state", ""), more.get("fabric.status", "")),
        driver=more.get("driver_version", ""),
    )


def _number(word: Any) -> int | None:
    """Reads nvidia-smi's word, or amd-smi's `{"value": 54, "unit": "C"}`; None for N/A and the like."""
    if isinstance(word, dict):
        word = word.get("value")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    try:
        return int(float(str(word)))  # pyright: ignore[reportUnknownArgumentType]
    except ValueError:
        return None


def _pair(now: Any, most: Any) -> tuple[int, int] | None:
    first, second = _number(now), _number(most)
    return None if first is None or second is None else (first, second)


def _fabric(state: str, status: str) -> str:
    """What is wrong, in nvidia-smi's words. A GPU without NVSwitch has N/A; one that is still being added is not judged."""
    if state == "Completed" and status not in ("Success", "N/A", "[N/A]", ""):
        return status
    return "the fabric manager has not begun with it" if state == "Not Started" else ""


def with_nvlinks(states: list[State], text: str) -> list[State]:
    """The states with the active links that `nvidia-smi nvlink --status` lists for each; a GPU that it does not list has none."""
    active: dict[str, int] = {}
    index = ""
    for line in text.splitlines():
        if heading := re.match(r"GPU (\d+):", line):
            index = heading[1]
        elif re.match(r"\s+Link \d+: [\d.]+ GB/s", line):
            active[index] = active.get(index, 0) + 1
    return [replace(state, nvlinks=active.get(state.index, 0)) for state in states]


def read_amd(metrics: str, pages: str) -> list[State]:
    """From what `amd-smi metric --json` and `amd-smi bad-pages --json` print. Raises ValueError for text of another form."""
    worn = {gpu.get("gpu") for gpu in _gpus(pages) if any(isinstance(gpu.get(key), list) and gpu[key] for key in ("pending", "un_res"))}
    return [_amd_state(gpu, gpu.get("gpu") in worn) for gpu in _gpus(metrics)]


def _gpus(text: str) -> list[dict[str, Any]]:
    document: Any = json.loads(text)
    try:
        gpus: Any = document["gpu_data"]
    except (KeyError, TypeError):
        gpus = document  # some releases print the list alone
    try:
        return [dict[str, Any](gpu) for gpu in gpus]
    except (TypeError, ValueError):
        raise ValueError("amd-smi gave no list of GPUs") from None


def _amd_state(gpu: dict[str, Any], is_worn: bool) -> State:
    def part(name: str) -> dict[str, Any]:
        return gpu[name] if isinstance(gpu.get(name), dict) else {}

    throttle = part("throttle")
    held = [name for name in _AMD_VIOLATIONS if throttle.get(f"{name}_violation_status") == "ACTIVE"]
    return State(
        str(gpu["gpu"]) if "gpu" in gpu else "?",
        "P0" if part("temperature") or part("ecc") else "nothing",
        _number(part("ecc").get("total_uncorrectable_count")) or 0,
        is_worn,
        _number(part("temperature").get("hotspot")),
        " and ".join(held),
        memory_used_mib=_number(part("mem_usage").get("used_vram")),
    )


def count_devices(vendor: str) -> int:
    folder, pattern = _DEVICES[vendor]
    if not Path(folder).is_dir():
        return 0
    return sum(1 for file in Path(folder).iterdir() if re.fullmatch(pattern, file.name) and stat.S_ISCHR(file.stat().st_mode))


def _tool(vendor: str) -> str | None:
    name = "nvidia-smi" if vendor == "nvidia" else "amd-smi"
    return next((f"{folder}/{name}" for folder in _FOLDERS if os.access(f"{folder}/{name}", os.X_OK)), None)


def ask(vendor: str, asks_nvlinks: bool) -> list[State] | None:
    """The states of all GPUs; None without the vendor's tool. Raises CalledProcessError if the driver does not answer."""
    tool = _tool(vendor)
    if tool is None:
        return None
    if vendor == "nvidia":
        states = _ask_nvidia(tool)
        return with_nvlinks(states, _output(tool, "nvlink", "--status")) if asks_nvlinks else states
    states, driver = read_amd(_output(tool, "metric", "--json"), _output(tool, "bad-pages", "--json")), amd_driver(_AMD_MODULE)
    return [replace(state, driver=driver) for state in states]


def ask_strangers(vendor: str, proc: Path) -> list[str]:
    """Processes on NVIDIA's GPUs that belong to no job; none where the driver does not list processes."""
    tool = _tool(vendor)
    if vendor != "nvidia" or tool is None:
        return []
    try:
        return foreign(read_processes(_output(tool, *QUERY)), proc)
    except subprocess.CalledProcessError:
        return []


def amd_driver(module: Path) -> str:
    """The version of AMD's driver, from sysfs. The kernel's own has the version of the kernel, as `amd-smi static --driver` prints it."""
    version = module / "version"
    return version.read_text().strip() if version.exists() else os.uname().release


def _ask_nvidia(tool: str) -> list[State]:
    fields: list[str] = [*_FIELDS]
    while True:
        try:
            text = _output(tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
        except subprocess.CalledProcessError as error:
            rejected = _REJECTED.search(error.stdout + error.stderr)
            if rejected is None or rejected[1] in _CORE or rejected[1] not in fields:
                raise
            at = fields.index(rejected[1])
            fields[at : at + 1] = [_OLD_NAMES[rejected[1]]] if rejected[1] in _OLD_NAMES else []
            continue
        return read_states(text, tuple(fields))


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> None:
    settings = json.loads(sys.argv[1])
    driver = ""
    try:
        states = None if settings["simulated"] else ask(settings["vendor"], settings["minNvlinks"] > 0)
        driver = states[0].driver if states else ""
        strangers = ask_strangers(settings["vendor"], Path("/proc")) if states else []
        result, found = judge(count_devices(settings["vendor"]), states, settings, strangers)
    except subprocess.CalledProcessError as error:
        lines = (error.stdout + error.stderr).strip().splitlines() or ["nothing"]
        result = "failed" if error.returncode in _FAULTS and "nvidia-smi" in error.cmd[0] else "unknown"
        found = f"{Path(error.cmd[0]).name} ended with {error.returncode}: {lines[-1]}"
    except (OSError, ValueError) as error:
        result, found = "unknown", str(error)
    met = {"driver": {"version": driver, "drains": settings.get("otherDrivers", 0)}} if driver else {}
    print(json.dumps({"result": result, "found": found, **met}))


if __name__ == "__main__":
    main()
