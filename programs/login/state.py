"""Writes what login sessions show of the cluster, so that no login waits for slurmctld. Files in /run/slipway/login: cluster, jobs (user,
running, pending), read (when, in seconds since 1970). Thin.
"""

import time
from pathlib import Path

from names import paths, ports
from slurm.commands import SlurmError, call

from .plan import render_jobs, render_partitions

_FOLDER = Path(paths.LOGIN_STATE)
_SINFO_S = 20
_METRICS_S = 5
_CLOSED = "401"
"""slurmctld's answer about jobs of users while PrivateData is set, of whatever kind (26.05.5). Then nobody is shown them here, either."""


def write_state(controller: str) -> None:
    """Asks slurmctld and writes its answers, each file in one step. Raises SlurmError, OSError."""
    partitions = call("sinfo", "--noheader", "--format", "%R|%D|%T", timeout_s=_SINFO_S)
    url = f"http://{controller}:{ports.SLURMCTLD}/metrics/jobs-users-accts"
    # A process of its own: Python's http.client would add 6 MB to this one.
    ask = ("curl", "--silent", "--show-error", "--max-time", str(_METRICS_S), "--write-out", "\n%{http_code}", url)
    metrics, _, code = call(*ask, timeout_s=2 * _METRICS_S).rpartition("\n")
    if code not in ("200", _CLOSED):
        raise SlurmError(f"{url} is answered {code}: {metrics[:200]}")
    try:
        jobs = {"jobs": render_jobs(metrics)} if code != _CLOSED else {}
        texts = {"cluster": render_partitions(partitions), **jobs, "read": f"{int(time.time())}\n"}
    except ValueError as error:
        raise SlurmError(f"the answer is not what 26.05 gives: {error}") from None
    _FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
    if code == _CLOSED:
        (_FOLDER / "jobs").unlink(missing_ok=True)
    for name, text in texts.items():
        new_file = _FOLDER / f"{name}.new"
        new_file.write_text(text)
        new_file.replace(_FOLDER / name)
