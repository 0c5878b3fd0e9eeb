"""The format of log lines in our pods: a JSON object on stdout (docs/operate/logs.md). Never raises: no daemon may end over its log.

`time` (RFC 3339, UTC, milliseconds), `level`, `cluster`, `node`, `daemon`, `job` and `step` if known, further keys, `message` last.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping

from names import variables
from slurm.job_names import find_job

TYPE_CHECKING = False  # `typing` takes long to import
if TYPE_CHECKING:
    from typing import Any

"""The environment variable with the cluster's name, in every container."""
NODE = "SLURMD_NODENAME"
"""The environment variable with the node's name, in what slurmd runs. Elsewhere the host's name is the node's, or the pod's."""
DEBUG, INFO, WARNING, ERROR, CRITICAL = "debug", "info", "warning", "error", "critical"
LONGEST = 16_000
"""Bytes of a line. containerd and CRI-O break longer ones than 16 KiB in two, and then neither part is JSON."""
_STDOUT = 1
_REFUSALS = ("FAILED", "REFUSED", "LOST", "NOT SENT")
_OWN_KEYS = ("time", "level", "cluster", "node", "daemon", "job", "step", "message")
_writing = threading.RLock()  # one that a handler of signals may take again


def line(daemon: str, message: str, level: str = INFO, when: float | None = None, /, **more: "Any") -> str:
    """One line, without its end. `when` is Unix time, by default now; `more` are further keys before the message. Its `node`, `job` and
    `step` override the values known otherwise."""
    job, step = find_job(message) if not more.get("job") else ("", "")
    try:
        record = {
            "time": stamp(time.time() if when is None else when),
            "level": level,
            "cluster": os.environ.get(variables.CLUSTER, ""),
            "node": more.get("node") or os.environ.get(NODE) or os.uname().nodename,
            "daemon": daemon,
            **_named(more.get("job") or job, more.get("step") or step),
            **{key: value for key, value in more.items() if key not in _OWN_KEYS},
            "message": message,
        }
        return _bounded(record)
    except Exception as error:  # a value that JSON does not have, for instance
        return json.dumps({"time": stamp(0), "level": ERROR, "daemon": daemon, "message": f"a line of the log is lost: {error!r}"})


def stamp(at: float) -> str:
    """Unix time as RFC 3339 in UTC, with milliseconds. The epoch for an invalid time."""
    try:
        thousandths = int(at * 1000)
        return f"{_second(thousandths // 1000)}.{thousandths % 1000:03d}Z"
    except (OverflowError, ValueError, OSError):
        return "1970-01-01T00:00:00.000Z"


def write(text: str) -> None:
    """Writes lines to stdout, at once and together. If nobody reads any more, they are lost."""
    data = (text + "\n").encode("utf-8", "replace")
    try:
        with _writing:
            while data:
                data = data[os.write(_STDOUT, data) :]
    except OSError:
        return


def teller(daemon: str) -> "Callable[..., None]":
    """The function with which a program of ours logs: `say("made the home of ada")`, `say("job 12 waits", job="12")`. Lines that begin with
    FAILED, REFUSED, LOST or NOT SENT are errors unless `level` is given."""

    def say(message: str, level: str = "", /, **more: "Any") -> None:
        write(line(daemon, message, level or level_of(message), **more))

    return say


def level_of(message: str) -> str:
    """The level of a message of our programs."""
    return ERROR if message.startswith(_REFUSALS) else INFO


def said(text: str) -> "Mapping[str, Any] | None":
    """The keys of a line of such a log; None for any other line."""
    if not text.startswith('{"time": '):
        return None
    try:
        record: dict[str, Any] = json.loads(text)  # an object, as it begins like one
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record.get("message"), str) else None


def is_own(text: str) -> bool:
    """True for a line of a program in this cluster's pods."""
    record = said(text)
    return record is not None and record.get("cluster") == os.environ.get(variables.CLUSTER, "")


def readable(text: str) -> str:
    """A log line for people: the daemon and the message. Other lines stay as they are."""
    record = said(text)
    return text if record is None else f"{record.get('daemon', '')}: {record['message']}"


def _dumps(value: "Any") -> str:
    """JSON without control characters that a terminal obeys: JSON itself escapes only those below a space."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    """Surrogate halves stay and are written as question marks: not every reader accepts them."""
    return character if character.isprintable() or "\ud800" <= character <= "\udfff" else json.dumps(character)[1:-1]


def _named(job: str, step: str) -> dict[str, str]:
    return {**({"job": job} if job else {}), **({"step": step} if step and job else {})}


def _bounded(record: "dict[str, Any]") -> str:
    text = _dumps(record)
    if len(text) * 4 <= LONGEST or len(text.encode("utf-8", "replace")) <= LONGEST:
        return text
    short_record = {key: value for key, value in record.items() if key in _OWN_KEYS or len(_dumps(value)) <= LONGEST // 16}
    message, room = record["message"], LONGEST - 4096
    while room > 0:
        left = len(message) - room
        short_record["message"] = f"{message[:room]} [{left} more characters]" if left > 0 else message
        text = _dumps(short_record)
        if len(text.encode("utf-8", "replace")) <= LONGEST:
            return text
        room //= 2
    return json.dumps({key: value[:256] if isinstance(value, str) else value for key, value in short_record.items() if key in _OWN_KEYS})


_last_second = (-1, "")


def _second(second: int) -> str:
    global _last_second
    known, text = _last_second
    if known != second:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _last_second = second, text
    return text
