"""Sections of pages are read as their readers type them."""

import pytest

from tests.support.cluster import guides


def test_commands_of_a_section_are_read_from_its_page() -> None:
    assert guides.section("docs/use/first-day.md", "A sweep") == [
        ["cd ~/examples/array", "sbatch sweep.sh", "sort -g -k2 sweep-*.out | head -1"]
    ]
    (packages,) = guides.section("docs/use/containers.md", "What is in a container")
    assert len(packages) == 2
    assert packages[0].endswith("--container-save=/home/alice/mine.sqsh sh -c 'apt-get update && apt-get install -y jq'")
    assert len(guides.section("docs/use/first-day.md", "Training on several nodes")) == 2


def test_heading_that_a_page_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="No such section"):
        guides.section("docs/use/first-day.md", "No such section")


@pytest.mark.parametrize(
    ("guide", "elsewhere"),
    [
        pytest.param("docs/use/first-day.md", set[str](), id="first day"),
        # A part of a stack file, and a script: tests/slurm/test_container_flags.py has its header.
        pytest.param("docs/use/containers.md", {"For administrators", "Use Slurm in a container"}, id="containers"),
    ],
)
def test_every_section_with_commands_is_followed_by_a_test(guide: str, elsewhere: set[str]) -> None:
    folders = ("cluster", "soak", "support/cluster", "support/soak")
    tests = "".join(file.read_text() for folder in folders for file in (guides.ROOT / "tests" / folder).glob("*.py"))
    assert [heading for heading in guides.headings(guide) if heading not in elsewhere and f'"{heading}"' not in tests] == []
