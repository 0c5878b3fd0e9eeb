"""Prints and writes the results of `preview` and `explain`: the story, slurmctld's check of its files, and the exit code."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from changes import printed
from changes.story import Story
from cli import config_check, json_files
from engine import policy
from engine.faults import SlipwayError
from engine.screen import Screen


def tell(screen: Screen, story: Story) -> None:
    for line in printed.text(story):
        screen.say(line)


def check(screen: Screen, manifests: list[Mapping[str, Any]], wish: str | None) -> list[config_check.Check]:
    """Has slurmctld read its files, and prints the result unless there are mistakes. Raises SlipwayError."""
    with screen.waiting("slurmctld reads its files"):
        checks = config_check.check(manifests, wish)
    for result in checks:
        if result.words and not result.mistakes:
            screen.say(result.words)
        screen.warn(*(f"{line.file}: {line.text} (slurmctld {result.version})" for line in result.notes))
    return checks


def with_words(counted: str, checks: Sequence[config_check.Check]) -> str:
    """The counts of a comment, and below them the checks without mistakes."""
    return "\n\n".join([counted, *(result.words for result in checks if result.words and not result.mistakes)])


def write(
    screen: Screen,
    story: Story,
    title: str,
    counts: str,
    plan: dict[str, Any],
    json_file: Path | None,
    markdown_file: Path | None,
    advice: tuple[str, ...] = (),
) -> None:
    """Writes the requested files. Raises SlipwayError."""
    texts = {
        json_file: json_files.as_text({**plan, "story": printed.as_json(story)}),
        markdown_file: printed.markdown(story, title, counts) + policy.markdown(advice),
    }
    for file, text in texts.items():
        if file:
            json_files.write_text(file, screen.hidden(text))


def end(story: Story, checks: Sequence[config_check.Check], exit_code: bool) -> None:
    """Raises SlipwayError with slurmctld's mistakes, or Exit with the story's code if that was requested."""
    if refused := [result.words for result in checks if result.mistakes]:
        raise SlipwayError("\n".join(refused))
    if exit_code:
        raise typer.Exit(story.level)
