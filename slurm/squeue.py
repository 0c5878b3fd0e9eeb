"""What `squeue --Format` prints of jobs, with fields of any width and content. Pure."""

from collections.abc import Iterator, Mapping, Sequence

_BETWEEN = "\x1f"


class ReadingError(ValueError):
    """The text is no answer of Slurm's that is known here."""


def format_option(fields: Sequence[str]) -> str:
    """The option that asks for these fields."""
    return f"--Format={','.join(f'{field}:0{_BETWEEN}' for field in fields)}"


def read_rows(text: str, fields: Sequence[str]) -> Iterator[dict[str, str]]:
    """The fields of each job, by their names. The last one may hold line ends and separators of its own. Raises ReadingError."""
    end = f"{_BETWEEN}\n"
    whole = text if not text or text.endswith("\n") else f"{text}\n"
    *lines, rest = whole.split(end)
    if rest.strip():
        raise ReadingError(f"squeue's answer is cut: {rest[-120:]!r}")
    for line in lines:
        values = [value.strip() for value in line.split(_BETWEEN, len(fields) - 1)]
        if len(values) != len(fields):
            raise ReadingError(f"squeue's line has not {len(fields)} fields: {line[:120]!r}")
        yield dict(zip(fields, values, strict=True))


def leader_of(row: Mapping[str, str]) -> str | None:
    """The number of a heterogeneous job's leader, for a part of one. The row has HetJobID."""
    number = row["HetJobID"]
    return number if number.isdecimal() and number != "0" else None
