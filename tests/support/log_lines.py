"""The lines of our programs' logs, as people read them (`worker: slurmd ended`), and what Slurm's daemons say of nodes there."""

import re
from datetime import datetime

from slurm.logs import readable, said

NODE_HEARD = r"Node (\S+) now responding"
"""slurmctld's words for the first news of a node after a silence."""


def as_words(text: str) -> str:
    """Each line of it that is JSON of ours in words, and all others as they are."""
    return "\n".join(readable(line) for line in text.split("\n"))


def times_of(pattern: str, log: str) -> list[tuple[str, float]]:
    """What the group of the pattern is in each message that begins so, for instance a node's name, and when that was said, in Unix time;
    in the order of the log."""
    lines = (said(line) for line in log.splitlines())
    found = ((line, re.match(pattern, line["message"])) for line in lines if line is not None)
    return [(match[1], datetime.fromisoformat(line["time"]).timestamp()) for line, match in found if match]
