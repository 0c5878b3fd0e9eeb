"""Health check of a node's clock against slurmctld's. Runs on the node; standard library and `scontrol` only. Setting: `maxOffsetS`.

`scontrol show config` gives whole seconds, so a reading bounds the offset to about a second. The check fails only if all possible offsets
are outside the limit.
"""

import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any


def judge(before: float, controller: int, after: float, settings: dict[str, Any]) -> tuple[str, str]:
    """From the node's clock before and after a reading of slurmctld's whole seconds: `passed` or `failed`, and what was found.

    The offset is the node's time less slurmctld's. slurmctld looked at its clock between `before` and `after`, and cut off up to a second.
    """
    lowest, highest = before - controller - 1, after - controller
    limit = settings["maxOffsetS"]
    found = f"clock is {lowest:+.1f} to {highest:+.1f} s off slurmctld's, {limit} allowed"
    return ("failed" if lowest > limit or highest < -limit else "passed"), found


def read_controller(text: str) -> int:
    """Seconds since the epoch from the first line of `scontrol show config` in UTC. Raises ValueError for any other text."""
    match = re.match(r"Configuration data as of (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s", text)
    if not match:
        raise ValueError(f"scontrol said {text[:60]!r}")
    return int(datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp())


def main() -> None:
    environment = {**os.environ, "TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}
    before = time.time()
    try:
        done = subprocess.run(["scontrol", "show", "config"], env=environment, capture_output=True, text=True, timeout=30, check=True)
        result, found = judge(before, read_controller(done.stdout), time.time(), json.loads(sys.argv[1]))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        result, found = "unknown", f"slurmctld's time could not be read: {error}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
