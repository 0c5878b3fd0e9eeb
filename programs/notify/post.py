"""Posts one message to a webhook. Thin: it follows no redirect, and uses no proxy.

The address is a secret: it is removed from outcomes, which are logged.
"""

import http.client
import ssl
from urllib.parse import urlsplit

from slurm.records import record

_ANSWER_S = 10
_MOST_BYTES = 300
_LONGEST_WAIT_S = 3600
_NO_ADDRESS = "the key url of its Secret is no http:// or https:// address"
_REFUSED = frozenset({400, 413, 415, 422})
"""Statuses for a message that the webhook will never take. Others may be temporary: a wrong address, a broken service."""


@record
class Outcome:
    """Result of a post."""

    is_taken: bool
    is_refused: bool = False
    """True if the webhook will never take this message."""
    why: str = ""
    wait_s: float | None = None
    """Seconds that the webhook asks to wait."""


def post(url: str, body: str) -> Outcome:
    """Posts JSON. Never raises: an error is in the outcome."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return Outcome(is_taken=False, why=_NO_ADDRESS)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _is_plain(url):
        return Outcome(is_taken=False, why=_NO_ADDRESS)
    connection: http.client.HTTPConnection | None = None
    try:
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(parts.hostname, port, timeout=_ANSWER_S, context=context)
        else:
            connection = http.client.HTTPConnection(parts.hostname, port, timeout=_ANSWER_S)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body.encode(), {"Content-Type": "application/json", "User-Agent": "slipway-notify"})
        answer = connection.getresponse()
        text = answer.read(_MOST_BYTES).decode(errors="replace")
        return judge(answer.status, answer.getheader("Retry-After", ""), text)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Outcome(is_taken=False, why=f"{type(error).__name__}: {_without(url, str(error))}")
    finally:
        if connection is not None:
            connection.close()


def judge(status: int, retry_after: str, answer: str) -> Outcome:
    """The outcome of an answer. Source: Slack's "Sending messages using incoming webhooks" and RFC 9110, 10.2.3."""
    if 200 <= status < 300:
        return Outcome(is_taken=True)
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in answer).split())
    why = f"it answers with {status}{f': {text[:100]}' if text else ''}"
    wait_s = min(int(retry_after), _LONGEST_WAIT_S) if retry_after.strip().isdecimal() else None
    return Outcome(is_taken=False, is_refused=status in _REFUSED, why=why, wait_s=wait_s)


def _is_plain(url: str) -> bool:
    """True for visible ASCII, as in every valid address: errors of libraries then do not quote it."""
    return url.isascii() and url.isprintable() and " " not in url


def _without(url: str, text: str) -> str:
    parts = urlsplit(url)
    for secret in (url, f"{parts.path}?{parts.query}", parts.query, parts.path):
        text = text.replace(secret, "...") if secret.strip("/?") else text
    return text
