"""What slipway-login-session shows of the cluster to those who log in: two answers of slurmctld for all users together, and no login waits
for them. Files in /run/slipway/login: cluster, jobs (user, running, pending), read (when, in seconds since 1970). Thin.
"""

import time
from pathlib import Path

from slurm.commands import SlurmError, call
from slurm.ports import SLURMCTLD_PORT

from .plan import render_jobs, render_partitions

_FOLDER = Path("/run/slipway/login")
_SINFO_S = 20
_METRICS_S = 5


def write_state(controller: str) -> None:
    """Asks slurmctld and writes its answers, each file in one step. Raises SlurmError, OSError."""
    partitions = call("sinfo", "--noheader", "--format", "%R|%D|%T", timeout_s=_SINFO_S)
    url = f"http://{controller}:{SLURMCTLD_PORT}/metrics/jobs-users-accts"
    # A process of its own: Python's http.client would add 6 MB to this one.
    metrics = call("curl", "--silent", "--show-error", "--fail", "--max-time", str(_METRICS_S), url, timeout_s=2 * _METRICS_S)
    try:
        texts = {"cluster": render_partitions(partitions), "jobs": render_jobs(metrics), "read": f"{int(time.time())}\n"}
    except ValueError as error:
        raise SlurmError(f"the answer is not what 26.05 gives: {error}") from None
    _FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
    for name, text in texts.items():
        made = _FOLDER / f"{name}.new"
        made.write_text(text)
        made.replace(_FOLDER / name)
