"""Health check of shared folders: each is mounted where jobs see it, and answers in time. Runs on the node; standard library only.

Settings: `paths`, `maxAnswerS`. Each path is asked by a process of its own, which is killed at the deadline: a server that is away holds up
nothing else.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

_ASK = "import os, sys; os.statvfs(sys.argv[1])"


def judge(answers: dict[str, str]) -> tuple[str, str]:
    """`passed` or `failed`, and what was found, from what came of each path: empty where it answered; every fault is named."""
    faults = [f"{path} {why}" for path, why in answers.items() if why]
    return ("failed", "; ".join(faults)) if faults else ("passed", f"{len(answers)} shared folders answer")


def mounted(mountinfo: str) -> set[str]:
    """The folders where something is mounted, from the text of /proc/self/mountinfo."""
    points = (line.split()[4] for line in mountinfo.splitlines() if len(line.split()) > 4)
    return {point.encode().decode("unicode_escape") for point in points}


def ask(paths: list[str], mounts: set[str], deadline_s: int) -> dict[str, str]:
    """What came of each path; all are asked at once."""
    end = time.monotonic() + deadline_s
    asked = {
        path: subprocess.Popen([sys.executable, "-I", "-c", _ASK, path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for path in paths
        if path in mounts
    }
    answers = dict.fromkeys(paths, "is not mounted")
    for path, process in asked.items():
        try:
            process.wait(max(0.0, end - time.monotonic()))
            errors = process.stderr.read() if process.stderr else ""
            error = (errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
            # A folder that Slurm's user may not see into has answered.
            answers[path] = "" if process.returncode == 0 or error.startswith("PermissionError") else f"gave an error: {error}"
        except subprocess.TimeoutExpired:
            process.kill()
            answers[path] = f"does not answer within {deadline_s} s"
    return answers


def main() -> None:
    settings = json.loads(sys.argv[1])
    try:
        mounts = mounted(Path("/proc/self/mountinfo").read_text())
        result, found = judge(ask(settings["paths"], mounts, settings["maxAnswerS"]))
    except OSError as error:
        result, found = "unknown", str(error)
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
