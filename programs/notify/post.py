"""Posts one message to a webhook, and says what came of it. Thin: no redirect is followed, and no proxy is asked.

The address is a secret: it is in no answer, and in no line of a log.
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
"""The webhook will never take this message. All else may be mended: an address in the Secret, or the service behind it."""


@record
class Outcome:
    """What came of a post."""

    is_taken: bool
    is_refused: bool = False
    """True when this message will never be taken."""
    why: str = ""
    wait_s: float | None = None
    """So many seconds the webhook wants to be left alone."""


def post(url: str, body: str) -> Outcome:
    """Posts JSON. Whatever goes wrong is in the outcome."""
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
    """What an answer means. Source: Slack's "Sending messages using incoming webhooks" and RFC 9110, 10.2.3."""
    if 200 <= status < 300:
        return Outcome(is_taken=True)
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in answer).split())
    why = f"it answers with {status}{f': {text[:100]}' if text else ''}"
    wait_s = min(int(retry_after), _LONGEST_WAIT_S) if retry_after.strip().isdecimal() else None
    return Outcome(is_taken=False, is_refused=status in _REFUSED, why=why, wait_s=wait_s)


def _is_plain(url: str) -> bool:
    """True for an address of visible ASCII, as all are: no library's complaint then quotes it."""
    return url.isascii() and url.isprintable() and " " not in url


def _without(url: str, text: str) -> str:
    parts = urlsplit(url)
    for secret in (url, f"{parts.path}?{parts.query}", parts.query, parts.path):
        text = text.replace(secret, "...") if secret.strip("/?") else text
    return text
