"""The folder of waiting mails, one file each, on slurmctld's disk. The number of mails is bounded, in all and per user. Lost mails are
counted."""

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from names import paths
from slurm.records import record

SPOOL = Path(paths.MAIL_SPOOL)
MOST = 10_000
"""Most mails that wait: about 20 MB."""
MOST_OF_USER = 1_000
"""Most mails about jobs of one user, so that no user fills the spool."""
_USER = "SLURM_JOB_USER"
_LOST = "lost"
_HALF_S = 3600
"""Seconds after which a draft is abandoned."""
_MOST_BYTES = 65_536


@record
class Waiting:
    """One mail as slurmctld asked for it."""

    asked_at: float
    """Seconds since 1970."""
    subject: str
    address: str
    job: Mapping[str, str]
    """Variables about the job."""


class Spool:
    """The folder. Any number of processes may add mails; one removes them."""

    def __init__(self, folder: Path = SPOOL, most: int = MOST, most_of_user: int = MOST_OF_USER) -> None:
        self._folder = folder
        self._most, self._most_of_user = most, most_of_user

    def add(self, mail: Waiting) -> bool:
        """Adds a mail; False if there is no room, which is counted. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps([mail.asked_at, mail.subject, mail.address, dict(mail.job)])
        names, owner = self.names(), mail.job.get(_USER, "").encode().hex()[:64]
        user_mails = sum(name.endswith(f"-{owner}.json") for name in names) if owner else 0
        if len(text) > _MOST_BYTES or len(names) >= self._most or user_mails >= self._most_of_user:
            with (self._folder / _LOST).open("ab") as lost:
                lost.write(b"x")
            return False
        name = f"{time.time_ns():020}-{os.getpid()}-{owner}"  # the owner in hex, which is valid in any file name
        draft = self._folder / f".{name}"
        try:
            draft.write_text(text)
            draft.rename(self._folder / f"{name}.json")
        except OSError:  # a full disk: the draft would stay for good
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        self._remove_halves()
        return True

    def names(self) -> list[str]:
        """Names of the waiting mails, the oldest first."""
        try:
            return sorted(file.name for file in self._folder.iterdir() if file.suffix == ".json")
        except FileNotFoundError:
            return []

    def _remove_halves(self) -> None:
        """Removes drafts of killed processes."""
        for file in self._folder.glob(".*"):
            with contextlib.suppress(OSError):
                if time.time() - file.stat().st_mtime > _HALF_S:
                    file.unlink()

    def read(self, name: str) -> Waiting:
        """Reads a mail. Raises OSError, and ValueError if the file is not a mail."""
        asked_at, subject, address, job = json.loads((self._folder / name).read_text())
        return Waiting(float(asked_at), str(subject), str(address), {str(key): str(value) for key, value in job.items()})

    def remove(self, name: str) -> None:
        """Removes a mail, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            (self._folder / name).unlink()

    def take_lost(self) -> int:
        """The number of mails that found no room since the last call."""
        file = self._folder / _LOST
        try:
            count = file.stat().st_size
            file.unlink()
        except FileNotFoundError:
            return 0
        return count
