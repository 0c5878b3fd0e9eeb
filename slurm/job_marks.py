"""Slipway's notes in a job's AdminComment: `did not start on gpu-1: ... [slipway: requeue; warned m1@1795543524]`. Others own the text
before.

AdminComment survives a requeue and a restart of slurmctld, squeue lists it, and users cannot write it. scontrol neither sets SystemComment
nor appends to AdminComment (measured on 26.05).
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from urllib.parse import quote

_MARKS = re.compile(r"\s*\[slipway: ([^\[\]]*)\]")
_NONE = ("(null)", "N/A", "None")
_REQUEUE = "requeue"
_WARNED = "warned "
_LENT = "lent requeue"
_MOST_WARNINGS = 8
_LONGEST_TEXT, _LONGEST = 700, 1000
"""Slurm takes 1,024 characters."""


@dataclass(frozen=True)
class Marks:
    """An AdminComment, taken apart."""

    text: str = ""
    """What others wrote."""
    asked_for_requeue: bool = False
    """The job was submitted with --requeue: job_submit.lua notes it, as Slurm's record shows the cluster's default alike."""
    warned: tuple[str, ...] = ()
    """The windows of maintenance that the job was warned of, as `window_mark` names them; the latest last."""
    lent_requeue: bool = False
    """Requeue=1 is not the job's own: programs/config_sync gave it for one requeue, and takes it back."""


def window_mark(name: str, start: int) -> str:
    """One window of maintenance as a mark: a reservation that is moved is another one."""
    return f"{quote(name, safe='')}@{start}"


def read_marks(comment: str) -> Marks:
    """The parts of an AdminComment. Brackets that are not ours stay part of the text."""
    if comment.strip() in _NONE:
        return Marks()
    marks = [mark.strip() for group in _MARKS.findall(comment) for mark in group.split(";")]
    warned = tuple(dict.fromkeys(mark.removeprefix(_WARNED) for mark in marks if mark.startswith(_WARNED)))
    return Marks(_MARKS.sub("", comment).strip(), _REQUEUE in marks, warned, _LENT in marks)


def write_marks(marks: Marks) -> str:
    """The AdminComment with these parts; if it is too long, the others' text is cut, not the marks."""
    flags = [word for word, is_set in ((_REQUEUE, marks.asked_for_requeue), (_LENT, marks.lent_requeue)) if is_set]
    entries = [*flags, *(f"{_WARNED}{warning}" for warning in marks.warned[-_MOST_WARNINGS:])]
    ours = f"[slipway: {'; '.join(entries)}]" if entries else ""
    return " ".join(part for part in (marks.text[: max(0, min(_LONGEST_TEXT, _LONGEST - len(ours)))], ours) if part)


def with_text(comment: str, text: str) -> str:
    """The comment with another text, and the marks that it had."""
    return write_marks(replace(read_marks(comment), text=text))


def with_warning(comment: str, windows: Iterable[str], met: Collection[str] = ()) -> str:
    """The comment with these warnings added. If there are too many, those of windows that the job still meets (`met`) are dropped last."""
    marks = read_marks(comment)
    before = sorted(marks.warned, key=lambda mark: mark in met)
    return write_marks(replace(marks, warned=tuple(dict.fromkeys([*before, *windows]))))
