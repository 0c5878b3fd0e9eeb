"""Processes on NVIDIA's GPUs that belong to no job. Runs on the node, for gpu.py; standard library only.

A process counts if nvidia-smi lists it, /proc here has it with a GPU open, and no step of Slurm's has it in its cgroup. The driver's own
programs do not count. Current drivers list processes by their numbers here, and omit those that are not visible here. Older drivers list
the machine's numbers of processes, which mean nothing in a pod (_gpuConvertPid in NVIDIA's open kernel modules).
"""

import re
from pathlib import Path

QUERY = ("--query-compute-apps=pid,gpu_uuid,used_memory", "--format=csv,noheader,nounits")
"""What nvidia-smi is asked for."""
_STEP = re.compile(r"/(job_\d+|step_\w+)(/|$)", re.MULTILINE)
"""In a process's cgroups: `/slurm/uid_1000/job_7/step_0` of v1, `/s7F1M7YKC71F00/step_extern` of v2."""
_DRIVERS = re.compile(r"nvidia-(persistenced|smi|cuda-mps-\w+)|nv-(hostengine|fabricmanager)|dcgm-exporter|dcgmi")
"""Programs of the driver and of DCGM, by the names of their files."""
_DEVICE = re.compile(r"/dev/nvidia\d+")
_NAMED = 3
"""The most processes that a message names."""


def read_processes(text: str) -> dict[int, str]:
    """The UUID of a GPU by the process that uses it, from nvidia-smi's output. Other lines, such as `[Insufficient Permissions]`, are
    skipped."""
    lines = [[field.strip() for field in line.split(",")] for line in text.splitlines()]
    return {int(fields[0]): fields[1] for fields in lines if len(fields) == 3 and fields[0].isdigit()}


def foreign(listed: dict[int, str], proc: Path) -> list[str]:
    """The listed processes that belong to no job, each with its name and GPU. A process that has ended, is not visible here, or may not be
    looked at is left out."""
    strangers: list[str] = []
    for process, gpu in sorted(listed.items()):
        try:
            folder = proc / str(process)
            program = Path(str((folder / "exe").readlink()).removesuffix(" (deleted)")).name
            in_job = _STEP.search((folder / "cgroup").read_text()) is not None
            if not in_job and _DRIVERS.fullmatch(program) is None and _has_gpu(folder / "fd"):
                strangers.append(f"{program} ({process}) on {gpu}")
        except OSError:
            continue
    return strangers


def _has_gpu(files: Path) -> bool:
    """Raises OSError for a process that has ended, or may not be looked at."""
    for file in files.iterdir():
        try:
            if _DEVICE.fullmatch(str(file.readlink())):
                return True
        except FileNotFoundError:  # closed meanwhile
            continue
    return False


def fault(processes: list[str], most: int) -> str:
    """The fault if more than `most` processes are found; empty if there is none."""
    if len(processes) <= most:
        return ""
    more = f" and {len(processes) - _NAMED} more" if len(processes) > _NAMED else ""
    return f"processes of no job use GPUs: {', '.join(processes[:_NAMED])}{more}{f' ({most} allowed)' if most else ''}"
