"""The lines of our programs' logs, as people read them: `worker: slurmd ended`."""

from slurm.logs import readable


def as_words(text: str) -> str:
    """Each line of it that is JSON of ours in words, and all others as they are."""
    return "\n".join(readable(line) for line in text.split("\n"))
