"""MariaDB's client program with the accounting database. Thin: it decides nothing."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from names import paths

from .settings import Database, client_settings

PASSWORD = Path(f"{paths.DATABASE_PASSWORD}/password")
SETTINGS = Path("/tmp/client.cnf")  # noqa: S108 - a mount of the container's own, of those that make backups and restore them
_PAUSE_S = 1
_TOLD_EACH = 10


class DatabaseError(Exception):
    """The database does not answer, or refuses; in the client's own words."""


class Client:
    """One database, by a file with the client's settings."""

    def __init__(self, database: Database, settings: Path | None = None) -> None:
        self.database = database
        self._settings = settings or SETTINGS

    def write_settings(self) -> None:
        """Writes the settings, readable for this user only. Raises OSError."""
        write_private(self._settings, client_settings(self.database, read_password()))

    def command(self, *arguments: str, program: str = "mariadb") -> list[str]:
        """A client program with the database."""
        return [program, f"--defaults-file={self._settings}", *arguments, self.database.name]

    def query(self, statement: str) -> list[str]:
        """The rows of a statement's answer. Raises DatabaseError."""
        return run(self.command("--skip-column-names", "--batch", "--execute", statement)).splitlines()

    def wait(self, say: Callable[[str], None]) -> None:
        """Returns once the database answers, and says now and then why it does not."""
        tries = 0
        while True:
            try:
                self.query("SELECT 1")
            except DatabaseError as error:
                if tries % _TOLD_EACH == 0:
                    say(f"waiting for the database at {self.database.host}: {error}")
            else:
                return
            tries += 1
            time.sleep(_PAUSE_S)


def read_password() -> str:
    """The password, in any bytes that somebody gave it. Raises OSError."""
    return PASSWORD.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n")


def write_private(path: Path, text: str) -> None:
    """Writes a file anew, readable for this user only. Raises OSError."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def run(command: Sequence[str]) -> str:
    """What a client program prints. Raises DatabaseError."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise DatabaseError(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
    return done.stdout
