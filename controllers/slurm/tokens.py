"""A valid token for slurmrestd, from the file with the cluster's key."""

from collections.abc import Callable
from pathlib import Path

from slurm.tokens import mint

RENEWED_AT = 0.8
"""Share of its life after which a token is replaced."""


class KeyUnreadable(Exception):
    """The file with the key is missing, empty or not ours to read."""


class TokenSource:
    """Gives a valid token: replaced at 80 % of its life, and at once when the key's file changes."""

    def __init__(self, key_file: Path, wall: Callable[[], float], user: str = "slurm", life_s: float = 1800) -> None:
        self._key_file, self._wall, self._user, self._life_s = key_file, wall, user, life_s
        self._key = b""
        self._token = ""
        self._made_at = 0.0

    def token(self) -> str:
        """A token that is valid for a while. Raises KeyUnreadable."""
        try:
            key = self._key_file.read_bytes()
        except OSError as error:
            raise KeyUnreadable(f"{self._key_file}: {error.strerror}") from error
        if not key:
            raise KeyUnreadable(f"{self._key_file} is empty")
        now = self._wall()
        # A clock that was set back makes a token from the future, which Slurm refuses: so any age out of range renews.
        if key != self._key or not 0 <= now - self._made_at < self._life_s * RENEWED_AT or not self._token:
            self._key, self._made_at = key, now
            self._token = mint(key, self._user, now, self._life_s)
        return self._token

    def forget(self) -> None:
        """Makes the next call create a new token: the last was refused."""
        self._token = ""
