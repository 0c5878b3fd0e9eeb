"""Writes a mail about a job from what slurmctld gives to MailProg: a subject, an address, and variables about the job. Pure.

Job names, paths and addresses come from users: each stays on its line, and cannot add a header.
"""

import re
from collections.abc import Mapping

from names import variables
from slurm.records import record

KEPT = ("SLURM_JOB", "SLURM_ARRAY_", "SLURM_CLUSTER_NAME")
"""Prefixes of the variables that a mail needs."""
_LONGEST = 500
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,63}@[A-Za-z0-9][A-Za-z0-9.-]{0,188}", re.ASCII)
"""Neither part begins with a dash, as some relays pass an address to a program."""
_CANNOT_START = "0:53"
"""ExitCode of a batch job whose output file could not be opened on the node (seen with 26.05.5)."""

_WORDS: Mapping[str, str] = {
    "Began": "started",
    "Ended": "ended",
    "Failed": "failed",
    "Requeued": "was put back into the queue",
    "Invalid dependency": "can never start: a job that it depends on did not end as it has to",
    "Staged Out": "has its data staged out",
    "Reached time limit": "reached its time limit",
}
"""Slurm's kind of mail to the words of our subject."""
_ENDS: Mapping[str, str] = {
    "BOOT_FAIL": "failed: its nodes did not start",
    "CANCELLED": "was cancelled",
    "COMPLETED": "completed",
    "DEADLINE": "was ended at its deadline",
    "NODE_FAIL": "failed: a node went down",
    "OUT_OF_MEMORY": "failed: it needed more memory than it had asked for",
    "PREEMPTED": "was ended to make room for another job",
    "TIMEOUT": "was ended at its time limit",
}
"""How a job ended, by its state."""


@record
class Mail:
    """One mail, ready to be sent."""

    to: tuple[str, ...]
    """Addresses; empty if the user gave no valid address."""
    subject: str
    body: str


@record
class Told:
    """What mails, and messages of programs/notify, tell about a job."""

    number: str
    name: str
    kind: str
    """What happened, to follow the job's name: `completed`, `failed with exit code 3`."""
    facts: tuple[tuple[str, str], ...]
    """Label and value. Unknown facts are left out."""
    advice: str
    """What the user can do next; empty if nothing went wrong."""


def compose(subject: str, address: str, job: Mapping[str, str]) -> Mail:
    """The mail that slurmctld asked for. Without variables about a job, its text is MAIL_TEXT of another program, or Slurm's subject."""
    to = tuple(recipient for recipient in (part.strip() for part in address.split(",")) if _ADDRESS.fullmatch(recipient))
    told = describe(job)
    if not told.number:
        text = [one_line(line) for line in job.get(variables.MAIL_TEXT, subject).split("\n")]
        return Mail(to, one_line(subject), "\n".join(text) + "\n")
    lines = [f"{label + ':':<15}{value}" for label, value in told.facts]
    body = [f"Job {told.number} ({told.name}) {told.kind}.", "", *lines, *(["", told.advice] if told.advice else [])]
    cluster = one_line(job.get("SLURM_CLUSTER_NAME", ""))
    return Mail(to, one_line(f"[{cluster}] Job {told.number} ({told.name}) {told.kind}"), "\n".join(body) + "\n")


def describe(job: Mapping[str, str]) -> Told:
    """Describes a job, each part as one printable line. The number is empty if there is no job."""
    number = job_number(job)
    name = one_line(job.get("SLURM_JOB_NAME", ""))
    facts = [
        ("Job", number),
        ("Name", name),
        ("User", job.get("SLURM_JOB_USER", "")),
        ("Cluster", job.get("SLURM_CLUSTER_NAME", "")),
        ("Partition", job.get("SLURM_JOB_PARTITION", "")),
        ("Account", job.get("SLURM_JOB_ACCOUNT", "")),
        ("State", job.get("SLURM_JOB_STATE", "")),
        ("Exit code", _exit(job)),
        ("Nodes", job.get("SLURM_JOB_NODELIST", "")),
        ("Time in queue", job.get("SLURM_JOB_QUEUED_TIME", "")),
        ("Run time", job.get("SLURM_JOB_RUN_TIME", "")),
        ("Restarts", job.get("SLURM_JOB_RESTART_COUNT", "") if job.get("SLURM_JOB_RESTART_COUNT") != "0" else ""),
        ("Folder", job.get("SLURM_JOB_WORK_DIR", "")),
        ("Output", _path(job, "SLURM_JOB_STDOUT")),
        ("Errors", _path(job, "SLURM_JOB_STDERR")),
    ]
    known_facts = tuple((label, one_line(value)) for label, value in facts if value and value != "(null)")
    return Told(number, name, _kind(job), known_facts, _advice(job, number))


def job_number(job: Mapping[str, str]) -> str:
    """The job's number as users know it: 17, or 15_2 for a task of an array. Empty if there is none."""
    array, task = job.get("SLURM_ARRAY_JOB_ID", ""), job.get("SLURM_ARRAY_TASK_ID", "")
    number = f"{array}_{task}" if array and task else job.get("SLURM_JOB_ID", "")
    return one_line(number)


def _kind(job: Mapping[str, str]) -> str:
    kind, state = job.get("SLURM_JOB_MAIL_TYPE", ""), job.get("SLURM_JOB_STATE", "")
    share = re.fullmatch(r"Reached %?(\d+)%? of time limit", kind)
    if share:
        return f"has used {share[1]} % of its time limit"
    if kind not in ("Ended", "Failed"):
        return _WORDS.get(kind, one_line(kind) or "has news")
    if state in _ENDS and job.get("SLURM_JOB_EXIT_CODE2") != _CANNOT_START:
        return _ENDS[state]
    code = _exit(job)
    return _WORDS[kind] + (f" with {'exit code ' if code[:1].isdigit() else ''}{code}" if code and kind == "Failed" else "")


def _exit(job: Mapping[str, str]) -> str:
    """The exit code, or the signal that ended the job; empty while it runs."""
    match = re.fullmatch(r"(\d+):(\d+)", job.get("SLURM_JOB_EXIT_CODE2", ""))
    if match is None:
        return ""
    if match[0] == _CANNOT_START:
        return "its output file not opened"
    return f"signal {match[2]}" if match[2] != "0" else match[1]


def _path(job: Mapping[str, str], key: str) -> str:
    """The output file, with the patterns filled in that are the same for the whole job. Source: sbatch(1), filename pattern."""
    text = job.get(key, "")
    if not text or text == "/dev/null":
        return ""
    parts = {
        "A": job.get("SLURM_ARRAY_JOB_ID") or job.get("SLURM_JOB_ID", ""),
        "a": job.get("SLURM_ARRAY_TASK_ID", ""),
        "j": job.get("SLURM_JOB_ID", ""),
        "u": job.get("SLURM_JOB_USER", ""),
        "x": job.get("SLURM_JOB_NAME", ""),
        "%": "%",
    }
    filled = re.sub(r"%([Aajux%])", lambda match: parts[match[1]] or match[0], text)
    return filled if filled.startswith("/") else f"{job.get('SLURM_JOB_WORK_DIR', '').rstrip('/')}/{filled}"


def _advice(job: Mapping[str, str], number: str) -> str:
    state, kind = job.get("SLURM_JOB_STATE", ""), job.get("SLURM_JOB_MAIL_TYPE", "")
    if job.get("SLURM_JOB_EXIT_CODE2") == _CANNOT_START:
        return "The node could not open the output file: check that its folder exists and that you may write there."
    if state == "OUT_OF_MEMORY":
        return "Ask for more memory with --mem or --mem-per-cpu."
    if state == "TIMEOUT" or kind == "Reached time limit":
        return "Ask for more time with --time, or write checkpoints."
    if kind == "Requeued":
        return "Slurm starts it again by itself: its nodes failed, or were needed for another job. You need not submit it again."
    if kind == "Invalid dependency":
        return f"Remove it with `scancel {number}`, or give it another dependency with `scontrol update`."
    return ""


def one_line(text: str) -> str:
    """A user's text as one printable line of bounded length."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:_LONGEST]
