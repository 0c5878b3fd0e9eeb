"""Parses `squeue --Format`, with fields of any width and content.

Slurm keeps any byte of a user's comment, line ends and separators too (measured on 26.05). So an unpredictable word ends each field:
otherwise a comment could fake other users' jobs.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence


class ReadingError(ValueError):
    """The text is not a known form of Slurm's answer."""


def random_word() -> str:
    """The word that ends the fields of one answer. It begins with no digit: Slurm would read it as part of the field's width."""
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
