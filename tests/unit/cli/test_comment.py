"""The comment on a change: the verdict of all stacks, mistakes as they were printed, and a length that GitHub takes."""

import pytest

from cli.comment import CHANGES, DANGEROUS, MISTAKES, MOST, NOTHING, Report, block, exit_code, folded, mistakes, render


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param([], NOTHING, id="no-stack"),
        pytest.param([NOTHING, NOTHING], NOTHING, id="nothing"),
        pytest.param([NOTHING, CHANGES], CHANGES, id="changes-of-one"),
        pytest.param([DANGEROUS, CHANGES], DANGEROUS, id="dangerous"),
        pytest.param([DANGEROUS, MISTAKES, NOTHING], MISTAKES, id="mistakes-before-all-else"),
    ],
)
def test_code_of_all_stacks(codes: list[int], expected: int) -> None:
    assert exit_code([Report(f"s{at}", code, "") for at, code in enumerate(codes)]) == expected


def test_comment_has_the_verdict_a_row_for_each_stack_and_their_texts() -> None:
    text = render("Compared with main.", [Report("dev", CHANGES, "### dev: changes\n"), Report("prod", NOTHING, "")])
    assert text == (
        "## Slipway: changes\n\nCompared with main.\n\n| Stack | Result |\n|---|---|\n"
        "| dev | changes |\n| prod | nothing changes |\n\n### dev: changes\n"
    )


def test_mistakes_are_shown_as_they_were_printed() -> None:
    assert mistakes("dev", "Pulumi.dev.yaml: 1 mistake\n  a.b: is *wrong*\n").text == (
        "### dev: mistakes\n\n```text\nPulumi.dev.yaml: 1 mistake\n  a.b: is *wrong*\n```"
    )


def test_block_ends_where_its_text_ends() -> None:
    assert block("a\n```\nb") == "````text\na\n```\nb\n````"


LONG = "\n".join(f"line {at}" for at in range(MOST))


@pytest.mark.parametrize(
    ("long", "fences", "folds"),
    [
        pytest.param(LONG, 0, 0, id="cut-in-text"),
        pytest.param(block(LONG), 2, 0, id="cut-in-a-block"),
        pytest.param(folded("All", LONG), 2, 1, id="cut-in-a-fold"),
        pytest.param(block(f"```x\n{LONG}"), 2, 0, id="cut-in-a-longer-fence"),
    ],
)
def test_long_comment_is_cut_at_a_line_and_says_so(long: str, fences: int, folds: int) -> None:
    text = render("Compared.", [Report("dev", CHANGES, long)])
    assert len(text) <= MOST
    assert sum(line.startswith("```") and line != "```x" for line in text.splitlines()) == fences
    assert (text.count("<details>"), text.count("</details>")) == (folds, folds)
    assert text.endswith("The report of the job has all of it.\n")
