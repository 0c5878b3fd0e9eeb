"""Tokens for slurmrestd, signed with the cluster's own key (JWT, HS256), so that no process has to run `scontrol token`.

Source: Slurm's JWT guide: `sun` is the user, `iat` and `exp` are seconds since 1970. slurmrestd refuses tokens for root.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path

RENEWED_AT = 0.8
"""Share of its life after which a token is replaced."""


class KeyUnreadable(Exception):
    """The file with the key is missing, empty or not ours to read."""


def mint(key: bytes, user: str, now: float, life_s: float) -> str:
    """A token for a user that is valid for `life_s` seconds from `now` (seconds since 1970).

    Not by PyJWT: as a key for HS256 it refuses PEM text, which is what Slurm's JWT guide makes with `openssl genrsa`.
    """
    header = _encoded(b'{"alg":"HS256","typ":"JWT"}')
    claims = _encoded(json.dumps({"exp": int(now + life_s), "iat": int(now), "sun": user}, separators=(",", ":")).encode())
    signature = hmac.new(key, f"{header}.{claims}".encode(), hashlib.sha256).digest()
    return f"{header}.{claims}.{_encoded(signature)}"


class TokenSource:
    """Gives a valid token: replaced at 80 % of its life, and at once when the key's file has changed."""

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
        """Has the next call make a new token: the last was refused."""
        self._token = ""


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
