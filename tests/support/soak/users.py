"""The commands of docs/operate/accounting.md for the loss of the database."""

from tests.support.cluster.guides import commands

PAGE = "docs/operate/accounting.md"
SHOWN = {
    "back up": ("create job",),
    "backed up": ("logs -f job/now",),
    "copies": ("ls -lR",),
    "lose": ("delete pvc",),
    "restored": ("dev-mariadb-0 -c restore",),
    "jobs": ("sacct", "tail"),
}
"""What the page shows, and the words of each command."""


def shown() -> dict[str, str]:
    """The commands of the page. Raises StopIteration where one is not there any more."""
    return {name: next(command for command in commands(PAGE) if all(word in command for word in words)) for name, words in SHOWN.items()}
