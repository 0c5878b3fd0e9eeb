"""The commands of docs/use/first-day.md that need large packages."""

from tests.support.cluster.guides import section

PAGE = "docs/use/first-day.md"


def training() -> list[str]:
    """The page's commands for training. Raises ValueError where it has others."""
    _, (fetch, train) = section(PAGE, "Training on several nodes")
    return [fetch, train]


def notebook() -> list[str]:
    """The page's commands for a notebook, without that of the reader's own machine. Raises ValueError where it has others."""
    ((*commands, _),) = section(PAGE, "A notebook")
    return commands
