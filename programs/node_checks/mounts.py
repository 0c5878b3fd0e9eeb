"""Health check of shared folders: each is mounted where jobs see it, and answers in time. Runs on the node; standard library only.

Settings: `paths`, `maxAnswerS`. A process of its own asks each path, all at once. At the deadline it is killed and not waited for, as it
may hang in the kernel (state D). It has none of the check's files, so a server that is away holds up nothing else.
"""

import errno
import json
import os
import signal
import sys
import time
from pathlib import Path

_POLL_S = 0.005
_FILES = 1024
"""More than a check has open; closing as many as there may be takes minutes on old kernels."""


def judge(answers: dict[str, str]) -> tuple[str, str]:
    """`passed` or `failed`, and what was found, from what came of each path: empty where it answered; every fault is named."""
    faults = [f"{path} {why}" for path, why in answers.items() if why]
    return ("failed", "; ".join(faults)) if faults else ("passed", f"{len(answers)} shared folders answer")


def mounted(mountinfo: str) -> set[str]:
    """The folders where something is mounted, from the text of /proc/self/mountinfo."""
    points = (line.split()[4] for line in mountinfo.splitlines() if len(line.split()) > 4)
    return {point.encode().decode("unicode_escape") for point in points}


def ask(paths: list[str], mounts: set[str], deadline_s: int) -> dict[str, str]:
    """The answer of each path, empty if it is fine; all are asked at once."""
    end = time.monotonic() + deadline_s
    asked = {path: _begin(path) for path in paths if path in mounts}
    answers = dict.fromkeys(paths, "is not mounted")
    while asked:
        for path, process in list(asked.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                # A folder that Slurm's user may not see into has answered.
                answers[path] = (
                    "" if code in (0, errno.EACCES) else f"gave an error: {os.strerror(code) if code > 0 else f'signal {-code}'}"
                )
                del asked[path]
            elif time.monotonic() > end:
                os.kill(process, signal.SIGKILL)
                answers[path] = f"does not answer within {deadline_s} s"
                del asked[path]
        time.sleep(_POLL_S if asked else 0)
    return answers


def _begin(path: str) -> int:
    """Forks a process that asks for the path's file system, and ends with the number of the error."""
    process = os.fork()
    if process == 0:
        os.closerange(0, _FILES)
        try:
            os.statvfs(path)
        except OSError as error:
            os._exit(error.errno or errno.EIO)
        os._exit(0)
    return process


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
