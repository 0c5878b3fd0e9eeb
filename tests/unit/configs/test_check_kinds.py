"""The rows of programs/node_checks/kinds.py: one for each kind of check, and each names only what is there."""

import re
from pathlib import Path
from typing import get_args

import pytest

from configs.models import check_texts
from configs.render.check_facts import FACTS
from programs.node_checks.kinds import KINDS, CheckKind

HEADINGS = re.findall(r"^#+ (.+)$", Path("docs/reference/checks.md").read_text(), re.MULTILINE)
SECTIONS = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in HEADINGS}


def test_each_kind_has_a_row_and_a_program() -> None:
    assert tuple(KINDS) == get_args(CheckKind)
    assert [name for name in KINDS if not Path(f"programs/node_checks/{name}.py").exists()] == []


@pytest.mark.parametrize("name", KINDS)
def test_a_row_names_limits_facts_and_sections_that_exist(name: CheckKind) -> None:
    check = KINDS[name]
    assert {*check.notes, *check.beside_jobs, *([check.waits] if check.waits else ())} <= check.limits.keys()
    assert {*check.facts.values()} <= FACTS.keys()
    assert check.section == "" or check.section in SECTIONS


def test_every_fact_is_read_by_a_kind() -> None:
    assert {fact for check in KINDS.values() for fact in check.facts.values()} == FACTS.keys()


def test_the_table_has_a_line_for_each_kind() -> None:
    lines = check_texts.table().splitlines()
    assert [line.split("`")[1] for line in lines[2:]] == [*KINDS]
    assert all(line.count(" | ") == 2 for line in lines[2:])


@pytest.mark.parametrize(
    ("words", "text"),
    [pytest.param(["a"], "a", id="one"), pytest.param("ab", "a and b", id="two"), pytest.param("abc", "a, b and c", id="three")],
)
def test_words_are_listed(words: list[str], text: str) -> None:
    assert check_texts.listed(words) == text
