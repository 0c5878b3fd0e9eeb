"""The jobs that have nodes, for the NodeSet controller: GET /jobs/ with the caller's JWT, answered in slurmrestd's own words. For people's
commands, all jobs (GET /queue/), all nodes (GET /nodes/), and for maintenance what slurm.maintenance reads (GET /running/, /reservations/).

slurmrestd can only list all jobs, those that wait too: 1 s of CPU and 130 MB for a thousand. Its /jobs/state/ takes time with the square of
their number. squeue reads the same list from slurmctld without JSON and shows only the jobs that have nodes. Measured on 26.05.5.

It holds no key: squeue shows slurmctld the caller's token. A few commands run at once, each with an end, and addresses take turns. People
have a port of their own, so that a network policy can close the controllers' one to all others.
`python3 -m programs.running_jobs.run`.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable

from names import ports
from slurm import logs, web
from slurm.listen import Bounds, InThread, Listener
from slurm.maintenance import RESERVATION_COMMAND, job_command, read_job_rows
from slurm.pump import take_stderr
from slurm.signals import Signals
from slurm.squeue import random_word
from slurm.turns import Turns

from .jobs import COMMAND, node_command, parse, parse_nodes, parse_queue, queue_command

SQUEUE_S = 50
"""The controller waits for an answer a little longer."""
COMMANDS = 3
"""That run at once, for each port."""
MEMORY = 1 << 30
"""Bytes of squeue, which is to fail by itself before the container's limit ends all: 400,000 jobs."""
_BOUNDS = Bounds(clients=128, per_address=8, answer_s=SQUEUE_S + 10)
_SAYS_AGAIN_S = 60
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


def refuse(path: str, token: str) -> tuple[int, dict[str, object]] | None:
    """HTTP status and body for who need not be answered by Slurm."""
    if path not in LISTS:
        return 404, _fault(f"there is {', '.join(LISTS)}")
    if not TOKEN.match(token):
        return 511, _fault("no token in X-SLURM-USER-TOKEN")
    return None


def ask(path: str, token: str) -> tuple[int, dict[str, object]]:
    """HTTP status and body for one caller."""
    build, read, name = LISTS[path]
    between = random_word()
    command = build(between)
    environment = {**os.environ, "SLURM_JWT": token, "SLURM_TIME_FORMAT": "%s"}
    try:
        done = subprocess.run(
            ("prlimit", f"--as={MEMORY}", "--", *command),  # in a program of threads, Python may run nothing between fork and exec
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SQUEUE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 504, _fault(f"{command[0]} did not end within {SQUEUE_S} s")
    message = done.stderr.strip()
    if done.returncode:
        return (511 if "uthenticat" in message else 502), _fault(f"{command[0]}: {message}")
    try:
        return 200, {name: read(done.stdout, between), "errors": []}
    except (KeyError, ValueError) as error:
        return 502, _fault(f"{command[0]}'s answer makes no sense: {error}")


def listener(bounds: Bounds = _BOUNDS, asks: Callable[[str, str], tuple[int, dict[str, object]]] = ask) -> Listener:
    """Answers GET for each of LISTS. Who has no token, or asks for something else, costs no command."""
    turns, say = Turns(COMMANDS), _Sayer()

    def work(path: str, token: str) -> web.Answer:
        status, content = asks(path, token)
        say.failed(path, status, content)
        return _written(status, content)

    async def answer(asked: web.Asked) -> web.Answer:
        if asked.method not in ("GET", "HEAD"):
            return web.NOT_ALLOWED
        token = asked.headers.get("x-slurm-user-token", "")
        if (refusal := refuse(asked.path, token)) is not None:
            return _written(*refusal)
        return await turns.run(asked.address, work, asked.path, token)

    return web.listener(answer, bounds)


class _Sayer:
    """Says what Slurm does not answer: for each list once a minute, as anybody can ask for it again and again."""

    def __init__(self) -> None:
        self._said_at: dict[str, float] = {}

    def failed(self, path: str, status: int, content: dict[str, object]) -> None:
        now = time.monotonic()
        if status in (502, 504) and now - self._said_at.get(path, -_SAYS_AGAIN_S) >= _SAYS_AGAIN_S:
            self._said_at[path] = now
            logs.write(logs.line("running-jobs", f"GET {path} is answered {status}: {content['errors']}", logs.ERROR))


def _written(status: int, content: dict[str, object]) -> web.Answer:
    return web.Answer(json.dumps(content, separators=(",", ":")).encode(), "application/json", status)


def _fault(text: str) -> dict[str, object]:
    return {"jobs": [], "errors": [{"description": text, "error_number": 0, "error": "running-jobs"}]}


def main() -> int:
    signals = Signals()
    serving = InThread((listener(), ports.RUNNING_JOBS), (listener(), ports.QUEUE))
    while not signals.is_stopping:
        signals.wait(None)
    serving.close()
    return 0


if __name__ == "__main__":
    take_stderr("running-jobs")
    sys.exit(main())
