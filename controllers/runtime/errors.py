"""Errors of requests to the API server, by what the caller can do about them."""

import msgspec


class ApiError(Exception):
    """A request that failed."""

    result = "error"

    def __init__(self, message: str, status: int = 0, reason: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        """The HTTP status; 0 without an answer."""
        self.reason = reason
        """Kubernetes' word, such as AlreadyExists."""
        self.retry_after_s = retry_after_s
        """Seconds to wait, if the server asks for that."""


class NotFound(ApiError):
    """There is no such object, or no such kind."""

    result = "not_found"


class Conflict(ApiError):
    """The object is not what the caller expected: it exists already (reason AlreadyExists), or has changed (reason Conflict)."""

    result = "conflict"


class Gone(ApiError):
    """The resource version or the continue token is too old: list again."""

    result = "gone"


class Refused(ApiError):
    """The server refused: invalid, forbidden, over a quota, overloaded, or broken."""

    result = "refused"


class Unreachable(ApiError):
    """No answer: refused, cut, or silent past the deadline. A write may have happened."""

    result = "unreachable"


class Unreadable(ApiError):
    """The answer is not what the struct expects. A write has happened."""

    result = "unreadable"


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: float | None = None


class _Status(msgspec.Struct, rename="camel"):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_TYPES: dict[int, type[ApiError]] = {404: NotFound, 409: Conflict, 410: Gone}


def error_of(body: bytes | msgspec.Raw, status: int = 0, retry_after: str = "") -> ApiError:
    """The error in a Status object, from the body of an answer or the ERROR event of a watch."""
    try:
        answer = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:  # a proxy's page, or nothing
        answer = _Status(message=bytes(body[:200]).decode(errors="replace"))
    code = status or answer.code
    wait = float(retry_after) if retry_after.isdigit() else answer.details.retry_after_seconds if answer.details else None
    message = answer.message or answer.reason or "no reason given"
    return _TYPES.get(code, Refused)(f"{code}: {message}", code, answer.reason, wait)
