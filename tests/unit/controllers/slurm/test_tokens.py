import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from controllers.slurm.tokens import KeyUnreadable, TokenSource


class Wall:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def claims(token: str, key: bytes) -> dict[str, Any]:
    """Checks the signature as RFC 7515 says it, and gives the claims."""
    head, body, signature = token.split(".")
    expected = hmac.new(key, f"{head}.{body}".encode(), hashlib.sha256).digest()
    assert base64.urlsafe_b64decode(signature + "==") == expected
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "HS256", "typ": "JWT"}
    return json.loads(base64.urlsafe_b64decode(body + "=="))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "jwt_hs256.key"
    file.write_bytes(b"first key, 32 bytes of it, or so")
    return file


def test_token_is_signed_for_slurm_and_ends(key: Path) -> None:
    wall = Wall()
    said = claims(TokenSource(key, wall, life_s=1000).token(), key.read_bytes())
    assert said == {"sun": "slurm", "iat": int(wall.now), "exp": int(wall.now) + 1000}


@pytest.mark.parametrize(
    ("seconds", "same"),
    [
        pytest.param(0, True, id="at-once"),
        pytest.param(799, True, id="before-80-percent"),
        pytest.param(801, False, id="past-80-percent"),
        pytest.param(-5, False, id="clock-set-back"),
    ],
)
def test_token_is_made_anew_in_time(key: Path, seconds: float, same: bool) -> None:
    wall = Wall()
    source = TokenSource(key, wall, life_s=1000)
    first = source.token()
    wall.now += seconds
    assert (source.token() == first) is same


def test_changed_key_counts_at_once(key: Path) -> None:
    source = TokenSource(key, Wall())
    source.token()
    key.write_bytes(b"another key")
    claims(source.token(), b"another key")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"-----BEGIN PRIVATE KEY-----\nMIIEvgIBADAN\n-----END PRIVATE KEY-----\n", id="pem-as-slurms-guide-makes-it"),
        pytest.param(bytes(range(256)), id="any-bytes"),
        pytest.param(b"x", id="short"),
    ],
)
def test_any_key_that_slurm_takes_signs(key: Path, content: bytes) -> None:
    key.write_bytes(content)
    assert claims(TokenSource(key, Wall()).token(), content)["sun"] == "slurm"


@pytest.mark.parametrize("content", [pytest.param(None, id="missing"), pytest.param(b"", id="empty")])
def test_key_that_cannot_be_read_is_said(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(KeyUnreadable, match="key"):
        TokenSource(file, Wall()).token()
