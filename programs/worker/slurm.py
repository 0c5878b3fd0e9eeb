"""Slurm as a worker reaches it: its own node, read as JSON and written with scontrol. Thin: it decides nothing.

Every call has a deadline. A write is made only while the reading that it is based on is fresh.
"""

import time

from slurm.commands import SlurmError, call
from slurm.records import record
from slurm.scontrol import AnswerError, Node, read_nodes

from .plan import Drain, Lift, Remark, SetDown, SetInstance

_CALL_S = 10
_FRESH_S = 5


@record
class Reading:
    """What slurmctld had for the node when it was asked."""

    node: Node | None
    """None for a node that slurmctld does not know."""
    asked_at: float
    """Monotonic seconds."""


def read(name: str, server: str = "") -> Reading:
    """The node as slurmctld has it. `server` is slurmctld's host and port, for a pod that has no files yet. Raises SlurmError."""
    asked_at = time.monotonic()
    try:
        nodes = read_nodes(_call(server, "show", "node", name, "--json"))
    except AnswerError as error:
        raise SlurmError(str(error)) from None
    return Reading(nodes.get(name), asked_at)


def write(name: str, change: Drain | Lift | SetInstance | Remark | SetDown, reading: Reading, server: str = "") -> None:
    """Makes one change that was decided from this reading. Raises SlurmError, also if the reading is too old."""
    age_s = time.monotonic() - reading.asked_at
    if age_s > _FRESH_S:
        raise SlurmError(f"the reading is {age_s:.0f} s old")
    match change:
        case Drain(reason):
            words = ["State=DRAIN", f"Reason={reason}"]
        case SetDown(reason):
            words = ["State=DOWN", f"Reason={reason}"]
        case Lift():
            words = ["State=UNDRAIN"]
        case SetInstance(instance):
            words = [f"InstanceId={instance}"]
        case Remark(text):
            words = [f"Comment={text}"]
    _call(server, "update", f"NodeName={name}", *words)


def _call(server: str, *words: str) -> str:
    return call("scontrol", *words, timeout_s=_CALL_S, env={"SLURM_CONF_SERVER": server} if server else None)
