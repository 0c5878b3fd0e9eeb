"""Counts to the number that it is given, and keeps its place in a file: a training loop without the training."""

import json
import signal
import sys
import time
from pathlib import Path

CHECKPOINT = Path("checkpoint.json")
stop = False


def on_signal(*_: object) -> None:
    global stop
    stop = True


def save(step: int) -> None:
    """Whole or not at all: a job may be killed at any time."""
    partial = CHECKPOINT.with_suffix(".new")
    partial.write_text(json.dumps({"step": step}))
    partial.replace(CHECKPOINT)


signal.signal(signal.SIGUSR1, on_signal)
last = int(sys.argv[1])
first = json.loads(CHECKPOINT.read_text())["step"] if CHECKPOINT.exists() else 0
print(f"begins at step {first}", flush=True)
for step in range(first, last):
    time.sleep(0.2)
    if stop:
        save(step + 1)
        print(f"saved at step {step + 1}", flush=True)
        sys.exit(75)  # not done: the batch script has the job queued again
    if step % 50 == 0:
        save(step)
CHECKPOINT.unlink(missing_ok=True)
print(f"done at step {last}", flush=True)
