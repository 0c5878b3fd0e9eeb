"""The jobs that have nodes, for the NodeSet controller: GET /jobs/ with the caller's JWT, answered in slurmrestd's own words. For people's
commands, all jobs (GET /queue/), all nodes (GET /nodes/), and for maintenance what slurm.maintenance reads (GET /running/, /reservations/).

slurmrestd can only list all jobs, those that wait too: 1 s of CPU and 130 MB for a thousand. Its /jobs/state/ takes time with the square of
their number. squeue reads the same list from slurmctld without JSON and shows only the jobs that have nodes. Measured on 26.05.5.

It holds no key: squeue shows slurmctld the caller's token. One request at a time, each with an end. `python3 -m programs.running_jobs.run`.
"""

import json
import os
import re
import resource
import subprocess
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer

from slurm.maintenance import RESERVATION_COMMAND, job_command, read_job_rows
from slurm.pump import take_stderr
from slurm.squeue import random_word

from .jobs import COMMAND, node_command, parse, parse_nodes, parse_queue, queue_command

PORT = 6821
SQUEUE_S = 50
"""The controller waits for an answer a little longer."""
MEMORY = 1 << 30
"""Bytes of squeue, which is to fail by itself before the container's limit ends both: 400,000 jobs."""
TOKEN = re.compile(r"[\w.-]+\Z")

Build = Callable[[str], tuple[str, ...]]
Read = Callable[[str, str], object]
LISTS: dict[str, tuple[Build, Read, str]] = {
    "/jobs/": (lambda _: COMMAND, lambda text, _: parse(text), "jobs"),
    "/queue/": (queue_command, parse_queue, "jobs"),
    "/nodes/": (node_command, parse_nodes, "nodes"),
    "/running/": (job_command, read_job_rows, "rows"),
    "/reservations/": (lambda _: RESERVATION_COMMAND, lambda text, _: text.splitlines(), "lines"),
}
"""By path: the command, what reads its answer, both by what ends a field, and what the list is called."""


def ask(path: str, token: str) -> tuple[int, dict[str, object]]:
    """HTTP status and body for one caller."""
    if path not in LISTS:
        return 404, _fault(f"there is {', '.join(LISTS)}")
    build, read, name = LISTS[path]
    between = random_word()
    command = build(between)
    if not TOKEN.match(token):
        return 511, _fault("no token in X-SLURM-USER-TOKEN")
    environment = {**os.environ, "SLURM_JWT": token, "SLURM_TIME_FORMAT": "%s"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SQUEUE_S,
            check=False,
            preexec_fn=_limit,
        )
    except subprocess.TimeoutExpired:
        return 504, _fault(f"{command[0]} did not end within {SQUEUE_S} s")
    said = done.stderr.strip()
    if done.returncode:
        return (511 if "uthenticat" in said else 502), _fault(f"{command[0]}: {said}")
    try:
        return 200, {name: read(done.stdout, between), "errors": []}
    except (KeyError, ValueError) as error:
        return 502, _fault(f"{command[0]}'s answer makes no sense: {error}")


class Handler(BaseHTTPRequestHandler):
    """Answers GET for each of LISTS, and nothing else."""

    timeout = 10
    """Seconds that a caller has to send its request, and to take each part of the answer."""

    def do_GET(self) -> None:
        status, content = ask(self.path, self.headers.get("X-SLURM-USER-TOKEN", ""))
        body = json.dumps(content, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says only what failed."""
        if str(code) != "200":
            super().log_request(code, size)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _fault(text: str) -> dict[str, object]:
    return {"jobs": [], "errors": [{"description": text, "error_number": 0, "error": "running-jobs"}]}


if __name__ == "__main__":
    take_stderr("running-jobs")
    HTTPServer(("", PORT), Handler).serve_forever()
