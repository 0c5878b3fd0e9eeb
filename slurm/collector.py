"""Sends a node's reports, one line each, to the program beside slurmctld (programs/node_checks/collect.py). Thin.

Each line is a munge credential that only Slurm's user can read; it proves to the collector that root on a node made it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # each job pays for what is imported here
    from typing import Any

LAUNCH = "launch"
"""The context of a node whose slurmd could not start a job."""
_SEND_S = 5
ANSWER_S = 20
"""Seconds in which the collector has an answer, if only that Slurm has not taken the report yet. A prolog waits for it: a job that starts
sooner may start on a node that is about to be drained."""
_SLACK_S = 5


def tell(host: str, port: int, user: int, report: "dict[str, Any]") -> "dict[str, Any]":
    """Sends a report in a credential that only this user can read. Gives the answer. Raises OSError or ValueError."""
    import json  # a job whose checks pass pays for none of these
    import socket
    import subprocess

    seal = ["munge", f"--restrict-uid={user}"]
    try:
        sealed = subprocess.run(seal, input=json.dumps(report), capture_output=True, text=True, timeout=_SEND_S, check=True).stdout
    except subprocess.SubprocessError as error:
        raise ValueError(f"munge: {error}") from None
    with socket.create_connection((host, port), timeout=_SEND_S) as connection:
        connection.sendall(sealed.strip().encode() + b"\n")
        connection.settimeout(ANSWER_S + _SLACK_S)
        answer = connection.makefile().readline()
    return json.loads(answer)
