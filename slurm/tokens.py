"""Tokens for slurmrestd, signed with the cluster's own key (JWT, HS256), so that no process runs `scontrol token`. Pure.

Source: Slurm's JWT guide: `sun` is the user, `iat` and `exp` are seconds since 1970. slurmrestd refuses tokens for root.
"""

import base64
import hashlib
import hmac
import json


def mint(key: bytes, user: str, now: float, life_s: float) -> str:
    """A token for a user, valid for `life_s` seconds from `now` (seconds since 1970).

    PyJWT refuses PEM text as a key for HS256, which Slurm's JWT guide makes with `openssl genrsa`.
    """
    header = _encoded(b'{"alg":"HS256","typ":"JWT"}')
    claims = _encoded(json.dumps({"exp": int(now + life_s), "iat": int(now), "sun": user}, separators=(",", ":")).encode())
    signature = hmac.new(key, f"{header}.{claims}".encode(), hashlib.sha256).digest()
    return f"{header}.{claims}.{_encoded(signature)}"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
