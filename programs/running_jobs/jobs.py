"""The commands of squeue and sinfo, and how to read their output: as slurmrestd's /jobs/, or field by field for people. Pure."""

from collections.abc import Sequence

STATES = "RUNNING,SUSPENDED,CONFIGURING,COMPLETING,STOPPED,SIGNALING,STAGE_OUT,RESIZING"
FIELDS = ("JobID", "State", "NodeList", "EndTime", "BatchFlag", "Requeue", "ArrayJobID", "ArrayTaskID", "HetJobID")
COMMAND = ("squeue", "--noheader", "--all", "--local", f"--states={STATES}", f"--Format={','.join(f'{field}:0|' for field in FIELDS)}")
"""Run it with SLURM_TIME_FORMAT=%s, for times in seconds since 1970."""

QUEUE_FIELDS = (
    *("JobArrayID", "State", "NodeList", "EndTime", "TimeLimit", "UserName", "Account", "Partition"),
    *("ReqNodes", "Feature", "tres-alloc", "SubmitTime", "Reason", "Name"),
)
NODE_FIELDS = ("NodeList", "StateComplete", "CPUsState", "Gres", "GresUsed", "Reason", "User", "TimeStamp", "Extra")


def queue_command(between: str) -> tuple[str, ...]:
    """Lists every running or waiting job. The waiting tasks of an array are one row.

    `between` ends each field and has to be random, as a job's name may have any byte and must not forge rows.
    """
    return ("squeue", "--noheader", "--all", "--local", _format(QUEUE_FIELDS, between))


def node_command(between: str) -> tuple[str, ...]:
    """Lists every node once per partition."""
    return ("sinfo", "--noheader", "--all", "--local", "--Node", _format(NODE_FIELDS, between))


def _format(fields: Sequence[str], between: str) -> str:
    return f"--Format={','.join(f'{field}:0{between}' for field in fields)}"


def parse_queue(text: str, between: str) -> list[dict[str, object]]:
    """squeue's rows by field, as text. Raises ValueError for a row without all fields."""
    return _rows(text, QUEUE_FIELDS, between)


def parse_nodes(text: str, between: str) -> list[dict[str, object]]:
    """sinfo's rows by field, each node once. Raises ValueError for a row without all fields."""
    return [*{row["NodeList"]: row for row in _rows(text, NODE_FIELDS, between)}.values()]


def _rows(text: str, fields: Sequence[str], between: str) -> list[dict[str, object]]:
    *values, trailing = text.split(between)
    if trailing.strip() or len(values) % len(fields):
        raise ValueError(f"{len(values)} values and {trailing[:200]!r} are not rows of {len(fields)} fields")
    return [
        # The newline after a row is part of the next row's first field.
        {name: " ".join(value.split()) for name, value in zip(fields, values[at : at + len(fields)], strict=True)}
        for at in range(0, len(values), len(fields))
    ]


def parse(text: str) -> list[dict[str, object]]:
    """squeue's lines as jobs of slurmrestd's /jobs/. Raises ValueError or KeyError for any other line."""
    jobs: list[dict[str, object]] = []
    for line in text.splitlines():
        values = dict(zip(FIELDS, (value.strip() for value in line.split("|")), strict=False))
        job: dict[str, object] = {
            "job_id": int(values["JobID"]),
            "job_state": [values["State"]],
            "nodes": values["NodeList"],
            "end_time": _number(values["EndTime"]),
            "batch_flag": values["BatchFlag"] == "1",
            "requeue": values["Requeue"] == "1",
            "array_job_id": _number(values["ArrayJobID"]),
            "array_task_id": _number(values["ArrayTaskID"]),
            "het_job_id": _number(values["HetJobID"]),
        }
        if values["NodeList"]:
            jobs.append(job)
    return jobs


def _number(text: str) -> dict[str, object]:
    return {"set": text.isdecimal(), "infinite": False, "number": int(text) if text.isdecimal() else 0}
