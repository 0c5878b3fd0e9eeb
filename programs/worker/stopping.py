"""What the stop hook and the worker's program tell each other: a file that is there from the moment the pod is about to end.

Without `pathlib`, which takes 5 ms of each start and each stop of a worker.
"""

import os

from names import paths

_STOPPING = paths.STOPPING


def say_stopping() -> None:
    """Makes the file. Raises OSError."""
    os.close(os.open(_STOPPING, os.O_WRONLY | os.O_CREAT, 0o644))


def is_stopping() -> bool:
    """True when the pod is about to end."""
    return os.access(_STOPPING, os.F_OK)
