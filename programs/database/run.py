"""Before slurmdbd starts: `python3 -m programs.database.run FILE` writes slurmdbd.conf with the database's password, writes the settings of
MariaDB's clients to FILE, and waits until the accounting database answers."""

import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType

from names import paths
from slurm.logs import teller
from slurm.pump import take_stderr

from .client import Client, read_password, write_private
from .settings import PasswordError, read_database, with_password

GIVEN = Path(f"{paths.SLURMDBD}/slurmdbd.conf")
WRITTEN = Path(f"{paths.SLURM}/slurmdbd.conf")

say = teller("database")


def _end_at_once(_number: int, _: FrameType | None) -> None:
    os._exit(0)


def write_slurmdbd_conf(given: Path, written: Path) -> None:
    """Writes slurmdbd.conf with the password, for user slurm alone. Raises OSError, PasswordError."""
    write_private(written, with_password(given.read_text(encoding="utf-8"), read_password()))
    if os.geteuid() == 0:
        shutil.chown(written, "slurm", "slurm")


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)
    try:
        write_slurmdbd_conf(GIVEN, WRITTEN)
    except PasswordError as error:
        say(f"FAILED: {error}")
        raise SystemExit(1) from None
    client = Client(read_database(os.environ), Path(sys.argv[1]))
    client.write_settings()
    client.wait(say)


if __name__ == "__main__":
    take_stderr("database")
    main()
