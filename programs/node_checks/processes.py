"""Health check of processes that hang in the kernel (state D), as on a disk or a mount that does not answer. Runs on the node; standard
library only.

Settings: `maxStuck`, `stuckS`. Only a process that is in state D at every look, a second apart and for so many seconds, counts: waiting
for a disk for a moment is no fault.
"""

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

_NAMED = 3
"""So many processes are named."""


def stuck_of(stat: str) -> tuple[int, int, str] | None:
    """Number, start and name of a process in state D, from the text of /proc/N/stat; None in any other state, and for other text."""
    match = re.match(r"(\d+) \((.*)\) (\w)((?: -?\d+){19})", stat, re.DOTALL)
    return (int(match[1]), int(match[4].split()[18]), match[2]) if match and match[3] == "D" else None


def look(proc: Path) -> set[tuple[int, int, str]]:
    """The processes in state D now."""
    found: set[tuple[int, int, str]] = set()
    for stat in proc.glob("[0-9]*/stat"):
        try:
            process = stuck_of(stat.read_text(errors="replace"))
        except OSError:
            continue  # it has ended
        if process is not None:
            found.add(process)
    return found


def judge(stuck: set[tuple[int, int, str]], settings: dict[str, Any]) -> tuple[str, str]:
    """`passed` or `failed`, and what was found."""
    if len(stuck) <= settings["maxStuck"]:
        return "passed", f"{len(stuck)} processes hang in the kernel" if stuck else "no process hangs in the kernel"
    named = ", ".join(f"{name} ({number})" for number, _, name in sorted(stuck)[:_NAMED])
    more = f" and {len(stuck) - _NAMED} more" if len(stuck) > _NAMED else ""
    return "failed", f"{named}{more} in state D for {settings['stuckS']} s, {settings['maxStuck']} allowed"


def main() -> None:
    settings, proc = json.loads(sys.argv[1]), Path("/proc")
    stuck = look(proc)
    for _ in range(settings["stuckS"]):
        if not stuck:
            break
        time.sleep(1)
        stuck &= look(proc)
    result, found = judge(stuck, settings)
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
