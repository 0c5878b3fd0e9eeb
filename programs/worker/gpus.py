"""Compares the GPUs that the driver reports with those that the config declares, before slurmd registers the node.

`compare` is pure. `read` asks nvidia-smi (NVML's own command, which the container runtime brings in with the driver) or amd-smi; where
neither is there it counts device files. Simulated GPUs are the device files that `prepare` has made.
"""

import json
import os
import re
import stat
import subprocess

from slurm.records import record

from .mig import Instance, MigError, read_instances
from .settings import DeclaredGpus

TYPE_CHECKING = False
if TYPE_CHECKING:  # each worker pays for what is imported here
    from collections.abc import Sequence
    from typing import Any

_DEVICES = {"nvidia": ("/dev", r"nvidia\d+"), "amd": ("/dev/dri", r"renderD\d+")}
"""As in programs/node_checks/gpu.py, which travels to nodes alone and can import none of ours."""
_FOLDERS = ("/usr/bin", "/usr/local/nvidia/bin", "/run/nvidia/bin", "/opt/rocm/bin")
_FIELDS = ("name", "memory.total", "mig.mode.current")
_READ_S = 120
"""Without its persistence mode NVIDIA's driver starts each GPU for the question, seconds each."""
_MEMORY_SHARE = 0.05
"""The driver and the error correction keep a little of the memory: 81,559 of an H100's 81,920 MiB."""
_LONGEST = 300
"""Characters of a fault: it is the reason of a drain, and one line of `sinfo -R`."""


class GpuError(Exception):
    """The GPUs cannot be read; the text says why."""


@record
class Gpu:
    """One GPU, as its driver reports it. What is empty or 0 is not known, and not compared."""

    name: str = ""
    memory_mib: int = 0
    is_divided: bool = False
    """True in NVIDIA's MIG mode, in which jobs cannot use the GPU as a whole."""
    instances: "tuple[Instance, ...]" = ()
    """What it is divided into; read only where the config has instances."""


def compare(declared: DeclaredGpus, found: "tuple[Gpu, ...]", devices: int) -> "list[str]":
    """Every difference, with both values. `devices` is the number of device files, which gres.conf names.

    A missing GPU comes first, and alone: what the others are is of no use before it is back.
    """
    if len(found) != declared.count:
        return [f"{_gpus(len(found))}, and the config says {declared.count}"]
    if devices != declared.count:
        return [f"{devices} device files of GPUs, and the config says {declared.count} GPUs"]
    faults: dict[str, list[int]] = {}
    for at, gpu in enumerate(found):
        for fault in _faults(declared, gpu):
            faults.setdefault(fault, []).append(at)
    return [f"{_named(at, declared.count)} {fault}" for fault, at in faults.items()]


def compare_sockets(declared: DeclaredGpus, found: "tuple[int | None, ...]") -> "list[str]":
    """GPUs beside another socket than gres.conf says, by the order of the device files; None is a GPU whose socket is not known.

    Jobs still run there, on cores that are farther from their GPU than they could be.
    """
    wrong = [
        f"GPU {at} is beside socket {there}, and gres.conf says {said}"
        for at, (said, there) in enumerate(zip(declared.sockets, found, strict=False))
        if there is not None and said != there
    ]
    if not wrong:
        return []
    told = ", ".join("?" if there is None else str(there) for there in found)
    return [*wrong[:2], *([f"{len(wrong) - 2} more likewise"] if len(wrong) > 2 else []), f"gpus.sockets should be [{told}]"]


def describe(faults: "list[str]") -> str:
    """The differences as one line; empty without one."""
    text = "; ".join(faults)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."


def is_named(gpu: str, model: str) -> bool:
    """True when the driver's name has the model in it, as whole words: `h100` is in `NVIDIA H100 80GB HBM3`, and `l4` is not in `L40S`.

    The words of a model may be apart in either name: `rtx-6000`, `gtx1080ti`.
    """
    words = [word for word in re.split(r"[^a-z0-9]+", gpu.lower()) if word]
    wanted = re.sub(r"[^a-z0-9]", "", model)
    ends = range(len(words) + 1)
    if any("".join(words[first:last]) == wanted for first in ends for last in ends[first + 1 :]):
        return True
    return set(re.split(r"[^a-z0-9]+", model)) <= set(words)


def _faults(declared: DeclaredGpus, gpu: Gpu) -> "list[str]":
    faults: list[str] = []
    if gpu.name and declared.driver_name and gpu.name != declared.driver_name:
        faults.append(f'is "{gpu.name}", and the config says "{declared.driver_name}"')
    elif gpu.name and not declared.driver_name and not is_named(gpu.name, declared.model):
        faults.append(f'is "{gpu.name}", and the config says {declared.model}')
    if gpu.memory_mib and declared.memory_mib and abs(gpu.memory_mib - declared.memory_mib) > declared.memory_mib * _MEMORY_SHARE:
        faults.append(f"has {gpu.memory_mib} MiB of memory, and the config says {declared.memory_mib}")
    if gpu.is_divided and not declared.profiles:
        faults.append("is in MIG mode, and the config has whole GPUs")
    elif declared.profiles and not gpu.is_divided:
        faults.append("is not in MIG mode, and the config has instances")
    elif (found := sorted([each.profile for each in gpu.instances])) != sorted(declared.profiles):
        faults.append(f"is divided into {_counted(found)}, and the config says {_counted(declared.profiles)}")
    return faults


def _counted(profiles: "Sequence[str]") -> str:
    """`2 of 3g.40gb and 1 of 1g.10gb`"""
    return " and ".join([f"{profiles.count(each)} of {each}" for each in dict.fromkeys(profiles)]) or "nothing"


def _gpus(count: int) -> str:
    return "no GPU" if not count else f"{count} GPU" if count == 1 else f"{count} GPUs"


def _named(at: "list[int]", count: int) -> str:
    if len(at) == count and count > 1:
        return "each GPU"
    return f"GPU {', '.join(map(str, at))}"


def read(declared: DeclaredGpus) -> "tuple[tuple[Gpu, ...], int]":
    """The GPUs in the driver's order, and the number of device files. Raises GpuError when the driver does not answer."""
    devices = _count_devices(declared.vendor)
    if declared.is_simulated:
        return tuple([_simulate(declared, number) for number in range(devices)]), devices
    if declared.vendor == "amd":
        command = _find("amd-smi")
        return (read_amd(_ask([command, "static", "--json"])) if command else (Gpu(),) * devices), devices
    command = _find("nvidia-smi")
    if not command and declared.profiles:
        raise GpuError("there is no nvidia-smi, which alone knows the instances of MIG")
    if not command:
        return (Gpu(),) * devices, devices
    gpus = read_nvidia(_ask([command, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]))
    return _with_instances(gpus, command) if declared.profiles else gpus, devices


def _simulate(declared: DeclaredGpus, number: int) -> Gpu:
    instances = tuple([Instance(number, each, f"MIG-simulated-{number}-{at}", (at, 0)) for at, each in enumerate(declared.profiles)])
    return Gpu(declared.driver_name or declared.model, declared.memory_mib, bool(instances), instances)


def _with_instances(gpus: "tuple[Gpu, ...]", command: str) -> "tuple[Gpu, ...]":
    try:
        found = read_instances(_ask([command, "-L"]), _ask([command, "-q", "-x"]))
    except MigError as error:
        raise GpuError(str(error)) from None
    if len(found) != len(gpus):
        raise GpuError(f"nvidia-smi lists {_gpus(len(found))}, and answers for {len(gpus)}")
    return tuple([Gpu(gpu.name, gpu.memory_mib, gpu.is_divided, each) for gpu, each in zip(gpus, found, strict=True)])


def read_sockets(declared: DeclaredGpus, system: str = "/sys", processes: str = "/proc") -> "tuple[int | None, ...]":
    """The socket beside each GPU, in the order of the device files, as the kernel has it; empty where it does not tell.

    NVIDIA's driver reports which device file is which PCI device; AMD's device files are in /sys as any device of graphics.
    """
    try:
        places = _nvidia_places(processes) if declared.vendor == "nvidia" else _amd_places(system)
        return tuple([_socket(f"{system}/bus/pci/devices/{place}", system) for _, place in sorted(places.items())])
    except OSError:
        return ()


def _nvidia_places(processes: str) -> "dict[int, str]":
    folder, places = f"{processes}/driver/nvidia/gpus", dict[int, str]()
    for place in os.listdir(folder):
        if found := re.search(r"^Device Minor:\s*(\d+)", _text(f"{folder}/{place}/information"), re.MULTILINE):
            places[int(found[1])] = place.lower()
    return places


def _amd_places(system: str) -> "dict[int, str]":
    folder, places = f"{system}/class/drm", dict[int, str]()
    for name in os.listdir(folder):
        if found := re.fullmatch(r"renderD(\d+)", name):
            places[int(found[1])] = os.path.realpath(f"{folder}/{name}/device").rpartition("/")[2]
    return places


def _socket(device: str, system: str) -> "int | None":
    """The socket of the first CPU that is local to a device. Sockets are numbered by the kernel as Slurm numbers them: from 0 up."""
    cpu = re.match(r"\d+", _text(f"{device}/local_cpulist"))
    return int(_text(f"{system}/devices/system/cpu/cpu{cpu[0]}/topology/physical_package_id")) if cpu else None


def _text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def read_nvidia(text: str) -> "tuple[Gpu, ...]":
    """From what nvidia-smi prints for `_FIELDS`, a GPU a line. Raises GpuError for a line of another form."""
    gpus: list[Gpu] = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == len(_FIELDS):
            name, memory, mig = fields
            gpus.append(Gpu(name, int(memory) if memory.isdecimal() else 0, mig == "Enabled"))
        elif line.strip() and line.strip() != "No devices were found":
            raise GpuError(f"nvidia-smi said: {line.strip()}")
    return tuple(gpus)


def read_amd(text: str) -> "tuple[Gpu, ...]":
    """From `amd-smi static --json`: a list, or since ROCm 7 an object with the list. Raises GpuError for another form."""
    try:
        answer: Any = json.loads(text)
        return tuple([_amd(entry) for entry in (answer["gpu_data"] if text.lstrip().startswith("{") else answer)])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise GpuError(f"amd-smi said {text.strip()[:80]!r} ({type(error).__name__}: {error})") from None


def _amd(entry: "Any") -> Gpu:
    """A size is an object of number and unit, or a text with both. N/A: a guest is not told."""
    size = re.search(r"\d+", json.dumps(entry["vram"]["size"]))
    name: str = entry["asic"]["market_name"]
    return Gpu("" if name == "N/A" else name, int(size[0]) if size else 0)


def _find(program: str) -> str:
    return next((f"{folder}/{program}" for folder in _FOLDERS if os.access(f"{folder}/{program}", os.X_OK)), "")


def _ask(command: "list[str]") -> str:
    name = command[0].rpartition("/")[2]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_READ_S, check=False)
    except subprocess.TimeoutExpired:
        raise GpuError(f"{name} did not answer within {_READ_S} s") from None
    except OSError as error:
        raise GpuError(f"{name} cannot be started: {error.strerror}") from None
    if done.returncode and "No devices were found" not in done.stdout:
        said = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        raise GpuError(f"{name} ended with {done.returncode}: {said[-1]}")
    return done.stdout


def _count_devices(vendor: str) -> int:
    folder, pattern = _DEVICES[vendor]
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return 0
    return sum(1 for name in names if re.fullmatch(pattern, name) and stat.S_ISCHR(os.stat(f"{folder}/{name}").st_mode))
