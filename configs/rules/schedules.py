"""Cron schedules, as Kubernetes reads those of its CronJobs."""

import re

from configs.faults import quoted

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)


def schedule_mistake(schedule: str) -> str | None:
    """The mistake in a cron schedule, or None. Source: Kubernetes' CronJob `schedule`: five fields, without a time zone."""
    fields = schedule.split(" ")
    if len(fields) != len(_FIELDS):
        return f'{quoted(schedule)} is not a cron schedule of five fields, such as "*/15 * * * *" for every quarter of an hour.'
    for field, (what, least, most, names) in zip(fields, _FIELDS, strict=True):
        if not all(_is_part(part, least, most, names) for part in field.split(",")):
            return f"{quoted(schedule)}: the {what} {quoted(field)} is not *, */n, or numbers from {least} to {most}, such as 1,5 or 1-5."
        if long := next((part for part in field.split(",") if int(part.partition("/")[2] or 1) > most - least), None):
            return f"{quoted(schedule)}: {quoted(long)} never takes its step: there is no other {what} so far on. Take a shorter one."
    return _never(schedule, fields)


def _never(schedule: str, fields: list[str]) -> str | None:
    """A day that no month of the schedule has, such as the 30th of February. With a day of the week, the schedule runs anyway."""
    day, month, weekday = fields[2:]
    if weekday != "*" or not day.isdecimal() or "/" in month or "-" in month or "*" in month:
        return None
    months = [_number(name, 1, _MONTHS) or 0 for name in month.split(",")]
    if all(int(day) > _LONGEST[number - 1] for number in months):
        return f"{quoted(schedule)} never comes: no such month has a day {day}. Take an earlier day."
    return None


_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _is_part(part: str, least: int, most: int, names: tuple[str, ...]) -> bool:
    match = re.fullmatch(r"(\*|\w{1,3})(?:-(\w{1,3}))?(?:/(\d{1,2}))?", part, re.ASCII)
    if match is None or (match[1] == "*" and match[2]) or match[3] in ("0", "00"):
        return False
    numbers = [_number(text, least, names) for text in (match[1], match[2]) if text and text != "*"]
    return all(number is not None and least <= number <= most for number in numbers) and numbers == sorted(
        numbers, key=lambda bound: bound or 0
    )


def _number(text: str, least: int, names: tuple[str, ...]) -> int | None:
    if text.isdecimal():
        return int(text)
    return names.index(text.lower()) + least if text.lower() in names else None
