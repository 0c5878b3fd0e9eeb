"""Before slurmdbd starts: `python3 -m programs.database.run FILE` writes the settings of MariaDB's clients to a file, and waits until the
accounting database answers."""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

from .client import Client
from .settings import read_database


def say(text: str) -> None:
    sys.stderr.write(f"database: {text}\n")
    sys.stderr.flush()


def _end_at_once(_number: int, _: FrameType | None) -> None:
    os._exit(0)


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)
    client = Client(read_database(os.environ), Path(sys.argv[1]))
    client.write_settings()
    client.wait(say)


if __name__ == "__main__":
    main()
