"""Metrics of simulated GPUs, under the names and labels of DCGM's exporter, at port 9400: a node without GPUs has none of its own.

`python3 -m programs.worker.gpu_metrics`, beside slurmd. Values follow the node's processes: a GPU is as busy as those of its job. The files
that the job's prolog wrote name its GPUs (configs/render/gpu_jobs.py). `read_jobs` and `render` are pure but for these files.
"""

import os
import time

from names import paths, ports, variables
from slurm import web
from slurm.listen import Bounds, InThread, Listener

from .settings import from_json

JOBS = paths.GPU_JOBS
_MEMORY_MIB = 81559
_METRICS = (
    ("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %)."),
    ("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB)."),
    ("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB)."),
    ("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."),
    ("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."),
)
_BOUNDS = Bounds(clients=64, per_address=8)
_IDLE_C, _IDLE_W, _RANGE_C, _RANGE_W = 30.0, 70.0, 45.0, 630.0

Use = dict[str, tuple[float, float]]
"""By job: processor seconds so far, and resident MiB."""


def read_jobs(folder: str, count: int) -> dict[int, str]:
    """The job that has each GPU, by the GPU's index."""
    found: dict[int, str] = {}
    for gpu in range(count):
        try:
            with open(f"{folder}/{gpu}", encoding="ascii") as file:
                found[gpu] = file.readline().strip()
        except OSError:
            continue
    return found


def read_use(proc: str = "/proc") -> Use:
    """What the processes of each job use. A process that ends meanwhile is left out."""
    use: Use = {}
    for process in (name for name in os.listdir(proc) if name.isdecimal()):
        try:
            with open(f"{proc}/{process}/environ", "rb") as file:
                said = [word[13:] for word in file.read().split(b"\0") if word.startswith(b"SLURM_JOB_ID=")]
            if not said:
                continue
            with open(f"{proc}/{process}/stat", encoding="utf-8", errors="replace") as file:
                words = file.read().rpartition(") ")[2].split()
        except OSError:
            continue
        seconds = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        mib = int(words[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        before = use.get(said[0].decode(), (0.0, 0.0))
        use[said[0].decode()] = (before[0] + seconds, before[1] + mib)
    return use


def render(node: str, model: str, count: int, jobs: dict[int, str], before: Use, use: Use, seconds: float) -> str:
    """The page. A GPU's share of a job's processor time since the look before is its utilisation, 100 % at most."""
    shares = {job: list(jobs.values()).count(job) for job in jobs.values()}
    values: dict[str, list[str]] = {name: [] for name, _ in _METRICS}
    for gpu in range(count):
        job = jobs.get(gpu, "")
        spent, mib = use.get(job, (0.0, 0.0))
        busy = max(0.0, spent - before.get(job, (spent, 0.0))[0]) / seconds if seconds > 0 else 0.0
        util = round(min(100.0, 100 * busy / shares.get(job, 1)))
        used = min(float(_MEMORY_MIB), mib / shares.get(job, 1))
        labels = f'gpu="{gpu}",UUID="GPU-simulated-{node}-{gpu}",device="nvidia{gpu}",modelName="{model}",Hostname="{node}"'
        labels += f',hpc_job="{job}"' if job else ""
        amounts = (util, round(used), round(_MEMORY_MIB - used), _IDLE_C + _RANGE_C * util / 100, _IDLE_W + _RANGE_W * util / 100)
        for (name, _), amount in zip(_METRICS, amounts, strict=True):
            values[name].append(f"{name}{{{labels}}} {amount:g}\n")
    return "".join(f"# HELP {name} {words}\n# TYPE {name} gauge\n{''.join(values[name])}" for name, words in _METRICS)


class Exporter:
    """Makes the page from what has happened since it was made last."""

    def __init__(self, model: str, count: int) -> None:
        self._model, self._count = model, count
        self._at, self._use = 0.0, Use()

    def page(self) -> web.Answer:
        now, before = time.monotonic(), self._use
        seconds, self._at, self._use = now - self._at if self._at else 0.0, now, read_use()
        text = render(os.uname().nodename, self._model, self._count, read_jobs(JOBS, self._count), before, self._use, seconds)
        return web.Answer(text.encode(), "text/plain; version=0.0.4; charset=utf-8")


def listener(exporter: Exporter, bounds: Bounds = _BOUNDS) -> Listener:
    """Jobs share the pod's network, so they reach it, too."""
    return web.gives({"/metrics": web.shared(exporter.page)}, bounds)


def main() -> None:
    declared = from_json(os.environ[variables.DECLARED_GPUS])
    InThread((listener(Exporter(declared.model, declared.count)), ports.GPU_METRICS)).wait()


if __name__ == "__main__":
    main()
