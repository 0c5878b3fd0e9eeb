"""Runs, receivers and answers of sacct and sinfo for the tests."""

from typing import Any

from programs.notify import nodes, runs
from programs.notify.runs import Run, read_runs
from programs.notify.settings import Receiver

BETWEEN = "\x1fab"
NOW = 1_800_000_000.0
ROW = {
    "JobID": "17",
    "JobName": "train",
    "User": "alice",
    "Account": "ml",
    "Partition": "gpu",
    "State": "COMPLETED",
    "ExitCode": "0:0",
    "Start": str(int(NOW) - 60),
    "End": str(int(NOW)),
    "Elapsed": "00:01:00",
    "Planned": "00:00:05",
    "Restarts": "0",
    "NodeList": "gpu-0",
    "WorkDir": "/home/alice",
    "StdOut": "out-%j.txt",
    "StdErr": "",
    "Comment": "",
}


def rows(*changes: dict[str, str]) -> str:
    """sacct's answer."""
    made = [{**ROW, **each} for each in changes]
    return "".join("".join(f"{row[name]}{BETWEEN}" for name in runs.FIELDS) + "\n" for row in made)


def run(**changes: str) -> Run:
    [found] = read_runs(rows(changes), BETWEEN, "dev")
    return found


def sinfo(*lines: dict[str, str]) -> str:
    """sinfo's answer."""
    base = {"NodeList": "gpu-0", "Partition": "gpu*", "StateComplete": "idle", "Reason": "none", "User": "Unknown", "Extra": "(null)"}
    return "".join("".join(f"{({**base, **line})[name]}{BETWEEN}" for name in nodes.FIELDS) + "\n" for line in lines)


def receiver(**changes: Any) -> Receiver:
    given: dict[str, Any] = {"name": "chat", "kind": "slack", "to": (), "events": frozenset({"jobEnd"}), "only_asked": False}
    given |= {key: frozenset[str]() for key in ("accounts", "users", "partitions")}
    return Receiver(**{**given, **changes})
