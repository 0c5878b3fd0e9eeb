"""What squeue and sinfo are asked for, and their lines: as jobs of slurmrestd's /jobs/, or field by field for people's commands. Pure."""

from collections.abc import Sequence

STATES = "RUNNING,SUSPENDED,CONFIGURING,COMPLETING,STOPPED,SIGNALING,STAGE_OUT,RESIZING"
FIELDS = ("JobID", "State", "NodeList", "EndTime", "BatchFlag", "Requeue", "ArrayJobID", "ArrayTaskID", "HetJobID")
COMMAND = ("squeue", "--noheader", "--all", "--local", f"--states={STATES}", f"--Format={','.join(f'{field}:0|' for field in FIELDS)}")
"""Its times are to be seconds since 1970: SLURM_TIME_FORMAT=%s."""

QUEUE_FIELDS = (
    *("JobArrayID", "State", "NodeList", "EndTime", "TimeLimit", "UserName", "Account", "Partition"),
    *("ReqNodes", "Feature", "tres-alloc", "SubmitTime", "Reason"),
)
NODE_FIELDS = ("NodeList", "StateComplete", "CPUsState", "Gres", "GresUsed", "Reason", "User", "TimeStamp", "Extra")
_BETWEEN = "\x1f"
"""Ends each field: a constraint may hold the bar that ends those of FIELDS."""
QUEUE_COMMAND = ("squeue", "--noheader", "--all", "--local", f"--Format={','.join(f'{field}:0{_BETWEEN}' for field in QUEUE_FIELDS)}")
"""Every job that runs or waits. The waiting tasks of an array are a single line."""
_NODES = ",".join(f"{field}:0{_BETWEEN}" for field in NODE_FIELDS)
NODE_COMMAND = ("sinfo", "--noheader", "--all", "--local", "--Node", f"--Format={_NODES}")
"""Every node, once for each of its partitions."""


def parse_queue(text: str) -> list[dict[str, object]]:
    """squeue's lines by field, as text. Raises ValueError for a line that has not all fields."""
    return _rows(text, QUEUE_FIELDS)


def parse_nodes(text: str) -> list[dict[str, object]]:
    """sinfo's lines by field, each node once. Raises ValueError for a line that has not all fields."""
    return [*{row["NodeList"]: row for row in _rows(text, NODE_FIELDS)}.values()]


def _rows(text: str, fields: Sequence[str]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for line in text.splitlines():
        values = [value.strip() for value in line.split(_BETWEEN)]
        if len(values) != len(fields) + 1:
            raise ValueError(f"{line!r} has not {len(fields)} fields")
        rows.append(dict(zip(fields, values, strict=False)))
    return rows


def parse(text: str) -> list[dict[str, object]]:
    """squeue's lines as jobs of slurmrestd's /jobs/. Raises ValueError or KeyError for a line that is no job."""
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
