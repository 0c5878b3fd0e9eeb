"""The result of a check, as a line of the log. Pure."""

from typing import Any

from slurm import logs
from slurm.check_results import FAILED, UNKNOWN

from .plan import Outcome

_LEVELS = {FAILED: logs.ERROR, UNKNOWN: logs.WARNING}


def check_line(daemon: str, check: str, about: dict[str, Any], at: str, outcome: Outcome) -> str:
    """`about` is what was looked at: its `node` or its `pair` of nodes, and the `job` beside which the check ran, if any."""
    fields = {"result": outcome.result, "found": outcome.found, "action": outcome.action}
    message = f"check {check} {outcome.result}: {outcome.found}{f' ({outcome.action})' if outcome.action else ''}"
    return logs.line(daemon, message, _LEVELS.get(outcome.result, logs.INFO), check=check, **about, at=at, **fields)
