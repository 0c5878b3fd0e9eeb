"""Serves lists from Slurm for the caller's JWT: jobs with nodes in slurmrestd's format (/jobs/), all jobs (/queue/), all nodes (/nodes/).

/running/ and /reservations/ are for maintenance. squeue costs far less than slurmrestd (docs/explain/slurm-facts.md, REST).

`python3 -m programs.running_jobs.run`. It has no key: squeue uses the caller's token. Few commands run at once, each with a time-out, and
addresses take turns. People have their own port, so that a network policy can reserve the other one for controllers.
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
"""The controller's time-out is a little longer."""
COMMANDS = 3
"""Most commands that run at once, per port."""
MEMORY = 1 << 30
"""Most bytes of squeue, so that it fails alone, before the container's limit ends everything. Enough for 400,000 jobs."""
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
"""By path: the command and the reader of its output, both for a given separator, and the list's name."""


def refuse(path: str, token: str) -> tuple[int, dict[str, object]] | None:
    """HTTP status and body for a request that needs no command."""
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
            ("prlimit", f"--as={MEMORY}", "--", *command),  # not preexec_fn, which is unsafe with threads
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
    """Answers GET for each of LISTS. Requests without a token, or for other paths, run no command."""
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
    """Logs failures once a minute per list, as anybody can repeat a request."""

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
