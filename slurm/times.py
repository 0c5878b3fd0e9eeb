"""Times as Kubernetes, checks and administrators write them. Pure."""

from datetime import UTC, datetime


def read_time(text: object, is_utc: bool = False) -> float | None:
    """RFC 3339 in seconds since 1970; None for anything else, and for an impossible time. A time without an offset is UTC with `is_utc`,
    else the machine's own."""
    try:
        at = datetime.fromisoformat(str(text).strip())
        return (at.replace(tzinfo=UTC) if is_utc and at.tzinfo is None else at).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
