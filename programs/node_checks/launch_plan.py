"""Decides what follows from a node's failed launches. Pure.

A test job is one of Slurm's own user, in a reservation of the node, with the script `true`. So it tests the node alone: no setting, file or
limit of a user is involved.
"""

from collections.abc import Mapping
from typing import Any, Literal

from slurm.check_results import FAILED, LAUNCH_MOST_PERCENT, PASSED, UNKNOWN
from slurm.scontrol import Node
from slurm.states import waits_for_power

from .plan import Outcome

NOT_STARTED = "slurmd could not start a job of Slurm's own user"
_GOES_ON = frozenset({"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "STAGE_OUT", "SUSPENDED", "STOPPED", "SIGNALING"})
_REQUEUE_S = 125
"""Seconds that Slurm has a requeued job wait, 121 as measured, with a margin."""
_CLOSED = frozenset({"DRAIN", "DOWN", "FAIL", "NOT_RESPONDING"})

Free = Literal["release", "start", "wait", ""]
"""What gives a job its place back: the end of a hold (`release`), or of the wait after a requeue (`start`).

It is `wait` while Slurm still takes the job back, or takes it for running, as Slurm may not have heard of the failure. It is empty for a
job that has ended, or waits for something else.
"""


def read_launch(row: str) -> Outcome | None:
    """The outcome of a test job, from its state and start as squeue prints them; None until it has ended.

    slurmd cancels a job that it could not start, as the job may not be requeued. A job that slurmd refuses is FAILED (measured on 26.05).
    """
    fields = row.split()
    if len(fields) != 2:
        return Outcome(UNKNOWN, "Slurm does not know the test job any more")
    state, start = fields
    if state == "COMPLETED":
        return Outcome(PASSED, "slurmd starts jobs")
    if state == "FAILED" or (state == "CANCELLED" and start[:1].isdecimal()):
        return Outcome(FAILED, NOT_STARTED)
    return None if state in _GOES_ON else Outcome(UNKNOWN, f"the test job ended as {state}")


def is_closed(node: Node) -> bool:
    """True for a node that gets no further job."""
    return bool(node.state.flags & _CLOSED) or waits_for_power(node.state)


def most_drained(nodes: Mapping[str, Node], name: str) -> int:
    """Nodes of that node's set that all checks together may hold drained, for this check to drain another."""
    node_set = name.rpartition("-")[0]
    return max(1, sum(node.rpartition("-")[0] == node_set for node in nodes) * LAUNCH_MOST_PERCENT // 100)


def plan_free(job: Mapping[str, Any]) -> Free:
    """How a job that its node could not start gets its place back, from its record in `scontrol show job --json`."""
    states, reason = job.get("job_state", ()), str(job.get("state_reason", ""))
    if "COMPLETING" in states or "RUNNING" in states:
        return "wait"
    if "PENDING" not in states or not job.get("restart_cnt"):
        return ""
    description = str(job.get("state_description", ""))
    if job.get("hold"):
        is_slurms = reason == "JobHoldMaxRequeue" or description.startswith(("launch fail", "launch_fail"))
        return "release" if is_slurms else ""
    waits_s = _number(job.get("eligible_time")) - _number(job.get("submit_time"))
    return "start" if reason == "BeginTime" and 0 < waits_s <= _REQUEUE_S else ""


def _number(value: Any) -> int:
    try:
        return int(value["number"])
    except (KeyError, TypeError, ValueError):
        return 0
