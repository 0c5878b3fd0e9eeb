"""What `squeue --Format` prints of jobs, with fields of any width and content.

Slurm keeps any byte that a user gives as a comment: line ends and separators, too (measured on 26.05). So what ends a field is a word that
nobody can know beforehand: otherwise a user's comment could pass for other users' jobs.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence


class ReadingError(ValueError):
    """The text is no answer of Slurm's that is known here."""


def random_word() -> str:
    """What ends a field of one answer. It begins with no digit, as Slurm would read that as a part of the field's width."""
    return f"\x1f{secrets.token_hex(8)}"


def format_option(fields: Sequence[str], end: str) -> str:
    """The option that asks for these fields, each with this word behind it."""
    return f"--Format={','.join(f'{field}:0{end}' for field in fields)}"


def read_rows(text: str, fields: Sequence[str], end: str) -> Iterator[dict[str, str]]:
    """The fields of each job, by their names. Raises ReadingError."""
    *lines, unended = text.split(f"{end}\n")
    if unended.strip():
        raise ReadingError(f"squeue's answer is cut: {unended[-120:]!r}")
    for line in lines:
        values = [value.strip() for value in line.split(end)]
        if len(values) != len(fields):
            raise ReadingError(f"squeue's line has not {len(fields)} fields: {line[:120]!r}")
        yield dict(zip(fields, values, strict=True))


def leader_of(row: Mapping[str, str]) -> str | None:
    """The number of a heterogeneous job's leader, for a part of one. The row has HetJobID."""
    number = row["HetJobID"]
    return number if number.isdecimal() and number != "0" else None
