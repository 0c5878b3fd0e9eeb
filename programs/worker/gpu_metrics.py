"""Metrics of simulated GPUs, under the names and labels of DCGM's exporter, at port 9400: a node without GPUs has none of its own.

`python3 -m programs.worker.gpu_metrics`, beside slurmd. Values follow what happens on the node: a GPU is as busy as the processes of the
job that has it, by the files that its prolog wrote (configs/render/gpu_jobs.py). `read_jobs` and `render` are pure but for these files.
"""

import json
import os
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

PORT = 9400
JOBS = "/run/slurm/gpu-jobs"
_MEMORY_MIB = 81559
_METRICS = (
    ("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %)."),
    ("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB)."),
    ("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB)."),
    ("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."),
    ("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."),
)
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


class Handler(BaseHTTPRequestHandler):
    """Answers GET /metrics."""

    timeout = 10
    declared: "dict[str, Any]" = {}
    last: "tuple[float, Use]" = (0.0, {})

    def do_GET(self) -> None:
        if self.path != "/metrics":
            self.send_error(404)
            return
        now, use = time.monotonic(), read_use()
        then, before = Handler.last
        Handler.last = (now, use)
        count = int(self.declared["count"])
        page = render(os.uname().nodename, self.declared["model"], count, read_jobs(JOBS, count), before, use, now - then if then else 0.0)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page.encode())

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing of scrapes."""


def main() -> None:
    Handler.declared = json.loads(os.environ["SLIPWAY_DECLARED_GPUS"])
    HTTPServer(("", PORT), Handler).serve_forever()


if __name__ == "__main__":
    main()
