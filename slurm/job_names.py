"""Finds the job and the step that a line of a log is about. Pure.

Slurm 26.05 writes jobs in many ways: `JobId=12`, `JobId=12_3(15)` (array task), `JobId=12+1(13)` (component of a heterogeneous job),
`StepId=12.0`, `StepId=12.batch`, `[12.extern]` (slurmstepd), `jobid [12]`, `job 12`, `STEP 12.0`.
"""

import re

_JOB = r"(?P<{0}>[1-9]\d{{0,9}}(?:[_+]\d+)?)"
_STEP = r"(?P<{0}>\d+|batch|extern|interactive|TBD)(?:\+\d+)?"
_MENTION = re.compile(
    rf"\[{_JOB.format('j1')}\.{_STEP.format('s1')}\]"
    rf"|\bStepId=(?:Job)?{_JOB.format('j2')}(?:\.{_STEP.format('s2')})?"
    rf"|\b(?:JOB|STEP) {_JOB.format('j3')}(?:\.{_STEP.format('s3')})?(?!\d)"
    rf"|\bjob_?id[= ]+\[?{_JOB.format('j4')}(?:\.{_STEP.format('s4')})?(?!\d)"
    rf"|\bjob[= ]{_JOB.format('j5')}(?:\.{_STEP.format('s5')})?(?!\d)",
    re.IGNORECASE,
)
_MAY_MENTION = re.compile(r"job|step|\[\d[_+.\d]*\.", re.IGNORECASE)
_LAST_JOB = 0x03FFFFFF
"""Slurm's own limit of job numbers, MAX_JOB_ID; above it are its marks for "none" and "all"."""
_LONGEST = 4096
"""Characters that are looked at: a line may quote what a user wrote, and slurmctld waits where its lines are not taken."""


def find_job(text: str) -> tuple[str, str]:
    """The first job and step that the text names, as Slurm's commands take them: ("12_3", "0"). Empty if it names none."""
    text = text[:_LONGEST]
    if not _MAY_MENTION.search(text):
        return "", ""
    for match in _MENTION.finditer(text):
        job = next(filter(None, (match[f"j{form}"] for form in range(1, 6))))
        if int(re.split("[_+]", job)[0]) <= _LAST_JOB:
            return job, next(filter(None, (match[f"s{form}"] for form in range(1, 6))), "").lower()
    return "", ""
