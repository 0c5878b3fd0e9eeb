"""The Markdown comment that CI adds to a change: a line for each stack, then the reports. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NOTHING, MISTAKES, CHANGES, DANGEROUS = 0, 1, 2, 3
"""Exit codes, of a preview and of CI."""
MOST = 60_000
"""Characters of a comment; GitHub takes 65,536."""

_WORDS = {NOTHING: "nothing changes", MISTAKES: "mistakes", CHANGES: "changes", DANGEROUS: "**dangerous**"}


@dataclass(frozen=True)
class Report:
    """The findings on one stack."""

    stack: str
    code: int
    """NOTHING, MISTAKES, CHANGES or DANGEROUS."""
    text: str
    """Markdown: the story of the changes, or the mistakes."""


def exit_code(reports: Iterable[Report]) -> int:
    """The code of all stacks: MISTAKES if any has some, else the most dangerous."""
    codes = {report.code for report in reports}
    return MISTAKES if MISTAKES in codes else max(codes, default=NOTHING)


def render(compared: str, reports: Sequence[Report]) -> str:
    """The comment, cut to the longest that is allowed. `compared` says what was compared."""
    lines = [f"## Slipway: {_WORDS[exit_code(reports)]}", "", compared, "", "| Stack | Result |", "|---|---|"]
    lines += [f"| {report.stack} | {_WORDS[report.code]} |" for report in reports]
    text = "\n".join([*lines, *("\n" + report.text.strip() for report in reports if report.text.strip())]) + "\n"
    note = "\n\nThis comment is too long and was cut here. The report of the job has all of it.\n"
    return text if len(text) <= MOST else _closed(text[: MOST - len(note) - _ROOM]) + note


_FENCE = "```"
_UNFOLDED = "\n\n</details>"
_ROOM = 100
"""Characters to close a text that was cut."""


def _closed(text: str) -> str:
    """A text that was cut, without its broken last line, with open code blocks and folds closed."""
    closed = text.rpartition("\n")[0]
    if fence := _open_fence(closed):
        closed += f"\n{fence}"
    return closed + _UNFOLDED if closed.count("<details>") > closed.count("</details>") else closed


def _open_fence(text: str) -> str:
    """The backticks that close the block at the end of a text; empty outside of blocks."""
    fence = ""
    for line in text.splitlines():
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if fence and line == fence:
            fence = ""
        elif not fence and len(ticks) >= len(_FENCE):
            fence = ticks
    return fence


def mistakes(stack: str, output: str) -> Report:
    """The report of a stack that cannot be planned, or that a policy refuses."""
    return Report(stack, MISTAKES, f"### {stack}: mistakes\n\n{block(output)}")


def folded(summary: str, text: str) -> str:
    """A text as it was printed, folded below its summary."""
    return f"<details><summary>{summary}</summary>\n\n{block(text)}\n\n</details>"


def block(text: str) -> str:
    """A text as it was printed, in a code block."""
    longest = max((len(line) - len(line.lstrip("`")) for line in text.splitlines()), default=0)
    fence = "`" * max(len(_FENCE), longest + 1)
    return f"{fence}text\n{text.strip()}\n{fence}"
