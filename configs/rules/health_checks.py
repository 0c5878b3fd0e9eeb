"""Rules of health checks: that they can run where they should, when they should, with limits that they know."""

import re

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.health_checks import CHECK_SETTINGS, HealthCheck
from configs.rules.names import Names, check_references, check_unique

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)


def check_health_checks(cluster: Cluster, names: Names) -> list[Fault]:
    """Faults of the health checks."""
    faults = check_unique("cluster.healthChecks", "health check", [check.name for check in cluster.health_checks])
    for at, check in enumerate(cluster.health_checks):
        faults += _check_one(f"cluster.healthChecks[{at}]", check, cluster, names)
    return faults


def schedule_mistake(schedule: str) -> str | None:
    """What is wrong with a cron schedule, or None. Source: Kubernetes' CronJob `schedule`: five fields, no time zone in it."""
    fields = schedule.split(" ")
    if len(fields) != len(_FIELDS):
        return f'{quoted(schedule)} is not a cron schedule of five fields, such as "*/15 * * * *" for every quarter of an hour.'
    for field, (what, least, most, words) in zip(fields, _FIELDS, strict=True):
        if not all(_is_part(part, least, most, words) for part in field.split(",")):
            return f"{quoted(schedule)}: the {what} {quoted(field)} is not *, */n, or numbers from {least} to {most}, such as 1,5 or 1-5."
    return None


def _is_part(part: str, least: int, most: int, words: tuple[str, ...]) -> bool:
    match = re.fullmatch(r"(\*|\w{1,3})(?:-(\w{1,3}))?(?:/(\d{1,2}))?", part, re.ASCII)
    if match is None or (match[1] == "*" and match[2]) or match[3] in ("0", "00"):
        return False
    numbers = [_number(text, least, words) for text in (match[1], match[2]) if text and text != "*"]
    return all(number is not None and least <= number <= most for number in numbers) and numbers == sorted(
        numbers, key=lambda each: each or 0
    )


def _number(text: str, least: int, words: tuple[str, ...]) -> int | None:
    if text.isdecimal():
        return int(text)
    return words.index(text.lower()) + least if text.lower() in words else None


def _check_one(path: str, check: HealthCheck, cluster: Cluster, names: Names) -> list[Fault]:
    faults = check_references(f"{path}.nodeSets", "node set", check.node_sets, names.node_sets)
    if not check.node_sets:
        faults.append(Fault(f"{path}.nodeSets", "is empty: the check would look at nothing."))
    if mistake := schedule_mistake(check.schedule):
        faults.append(Fault(f"{path}.schedule", mistake))
    if check.check == "gpu":
        positions = {node_set.name: position for position, node_set in reversed([*enumerate(cluster.node_sets)])}
        for at, name in enumerate(check.node_sets):
            index = positions.get(name)
            if index is not None and cluster.node_sets[index].gpus is None:
                message = f"the node set {quoted(name)} has no GPUs to check. Leave it out."
                faults.append(Fault(f"{path}.nodeSets[{at}]", message, (f"cluster.nodeSets[{index}].gpus", f"{path}.check")))
    limits = CHECK_SETTINGS[check.check]
    for key, value in check.settings.items():
        if key not in limits:
            message = f"the {check.check} check has no such limit. {did_you_mean(key, limits)}"
            faults.append(Fault(f"{path}.settings.{key}", message, (f"{path}.check",)))
        elif key.endswith("Percent") and value > 100:
            faults.append(Fault(f"{path}.settings.{key}", f"{value} is more than 100 percent."))
    return faults
