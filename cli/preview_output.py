"""What `preview` and `explain` print and write: the story, what slurmctld says of its files, and the exit code.

Thin: previews makes the story, changes.printed and config_check the words.
"""

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
    """Prints the story."""
    for line in printed.text(story):
        screen.say(line)


def check(screen: Screen, manifests: list[Mapping[str, Any]], wish: str | None) -> list[config_check.Check]:
    """What slurmctld makes of its files; says it, but for what it refuses. Raises SlipwayError."""
    with screen.waiting("slurmctld reads its files"):
        checks = config_check.check(manifests, wish)
    for each in checks:
        if each.words and not each.mistakes:
            screen.say(each.words)
        screen.warn(*(f"{line.file}: {line.text} (slurmctld {each.version})" for line in each.notes))
    return checks


def with_words(counted: str, checks: Sequence[config_check.Check]) -> str:
    """The counts of a comment, and below them what slurmctld says of its files, but for what it refuses."""
    return "\n\n".join([counted, *(each.words for each in checks if each.words and not each.mistakes)])


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
    """Writes the files that were asked for. Raises SlipwayError where one cannot be written."""
    texts = {
        json_file: json_files.as_text({**plan, "story": printed.as_json(story)}),
        markdown_file: printed.markdown(story, title, counts) + policy.markdown(advice),
    }
    for file, text in texts.items():
        if file:
            json_files.write_text(file, screen.hidden(text))


def end(story: Story, checks: Sequence[config_check.Check], exit_code: bool) -> None:
    """Raises SlipwayError with what slurmctld refuses, and Exit with the story's code where that was asked for."""
    if refused := [each.words for each in checks if each.mistakes]:
        raise SlipwayError("\n".join(refused))
    if exit_code:
        raise typer.Exit(story.level)
