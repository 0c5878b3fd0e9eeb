"""The settings of an association and of a QOS, and one spelling for each value, so that two can be compared.

`sacctmgr show` prints minutes as 01:30:00, memory as 10G and no limit as nothing, and lower-cases some texts (measured on 26.05.5).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

Settings = Mapping[str, str]
"""Option of sacctmgr to its value as `plain` writes it; an option that is not there is at its default."""


@dataclass(frozen=True)
class Field:
    """One setting."""

    option: str
    """Its name in `sacctmgr add` and `modify`."""
    column: str
    """Its name in `sacctmgr show format=`."""
    kind: str = "number"
    """`number`, `decimal`, `minutes`, `seconds`, `clock`, `tres`, `names` or `word`."""
    default: str = ""
    """What sacctmgr shows while nobody has set it."""
    cleared: str = "-1"
    """The value that resets it to the default. TRES are cleared one by one instead."""


_LIMITS = (
    Field("GrpTRES", "grptres", "tres"),
    Field("GrpTRESMins", "grptresmins", "tres"),
    Field("GrpTRESRunMins", "grptresrunmins", "tres"),
    Field("GrpJobs", "grpjobs"),
    Field("GrpJobsAccrue", "grpjobsaccrue"),
    Field("GrpSubmitJobs", "grpsubmit"),
    Field("GrpWall", "grpwall", "minutes"),
    Field("MaxTRESPerJob", "maxtres", "tres"),
    Field("MaxTRESPerNode", "maxtrespernode", "tres"),
    Field("MaxTRESMinsPerJob", "maxtresmins", "tres"),
    Field("MaxWall", "maxwall", "minutes"),
)

ASSOCIATION = (
    Field("Fairshare", "share", "word", "1", "1"),
    Field("Priority", "priority"),
    *_LIMITS,
    Field("MaxJobs", "maxjobs"),
    Field("MaxJobsAccrue", "maxjobsaccrue"),
    Field("MaxSubmitJobs", "maxsubmit"),
    Field("QosLevel", "qos", "names", cleared=""),
    Field("DefaultQOS", "defaultqos", "word"),
)

QOS = (
    Field("Priority", "priority", default="0", cleared="0"),
    *_LIMITS,
    Field("MaxTRESPerUser", "maxtrespu", "tres"),
    Field("MaxTRESPerAccount", "maxtrespa", "tres"),
    Field("MaxTRESRunMinsPerUser", "maxtresrunminspu", "tres"),
    Field("MaxTRESRunMinsPerAccount", "maxtresrunminspa", "tres"),
    Field("MaxJobsPerUser", "maxjobspu"),
    Field("MaxJobsPerAccount", "maxjobspa"),
    Field("MaxJobsAccruePerUser", "maxjobsaccruepu"),
    Field("MaxJobsAccruePerAccount", "maxjobsaccruepa"),
    Field("MaxSubmitJobsPerUser", "maxsubmitpu"),
    Field("MaxSubmitJobsPerAccount", "maxsubmitpa"),
    Field("MinTRESPerJob", "mintres", "tres"),
    Field("Preempt", "preempt", "names", cleared=""),
    Field("PreemptMode", "preemptmode", "word", "cluster", "cluster"),
    Field("PreemptExemptTime", "preemptexempttime", "clock"),
    Field("GraceTime", "gracetime", "seconds", "0", "0"),
    Field("Flags", "flags", "names"),
    Field("UsageFactor", "usagefactor", "decimal", "1", "1"),
    Field("UsageThreshold", "usagethres", "decimal"),
    Field("LimitFactor", "limitfactor", "decimal"),
)

_MIB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")


def read(fields: tuple[Field, ...], columns: list[str]) -> dict[str, str]:
    """Reads the columns of `sacctmgr show`, in the order of the fields. Raises ValueError for a text of another kind."""
    return plain(fields, {field.option: text for field, text in zip(fields, columns, strict=True)})


def plain(fields: tuple[Field, ...], settings: Settings) -> dict[str, str]:
    """The settings in their one spelling, without defaults. Raises ValueError for a text of another kind."""
    values = ((field, _plain(field.kind, settings.get(field.option, ""))) for field in fields)
    return {field.option: value for field, value in values if value != field.default and value}


def changes(fields: tuple[Field, ...], wanted: Settings, present: Settings) -> tuple[tuple[str, str], ...]:
    """The options that turn `present` into `wanted`. Both are results of `plain`."""
    changed: list[tuple[str, str]] = []
    for field in fields:
        new, old = wanted.get(field.option, ""), present.get(field.option, "")
        if new != old:
            changed.append((field.option, _tres_change(new, old) if field.kind == "tres" else new or field.cleared))
    return tuple(changed)


def _tres_change(new: str, old: str) -> str:
    """sacctmgr adds new TRES to the old ones, so removed TRES are set to -1."""
    wanted, present = _pairs(new), _pairs(old)
    gone = {name: "-1" for name in present if name not in wanted}
    return ",".join(f"{name}={value}" for name, value in sorted({**wanted, **gone}.items()))


def _plain(kind: str, text: str) -> str:
    if not text or kind == "word":
        return text
    match kind:
        case "tres":
            return ",".join(f"{name}={_amount(name, value)}" for name, value in sorted(_pairs(text).items()))
        case "names":
            return ",".join(sorted(text.split(",")))
        case "minutes":
            return str(-(-_seconds(text, 60) // 60))
        case "seconds":
            return str(_seconds(text, 1))
        case "clock":
            seconds = _seconds(text, 60)
            return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        case "decimal":
            return f"{float(text):g}"
        case _:
            return str(int(text))


def _pairs(text: str) -> dict[str, str]:
    pairs = (item.partition("=") for item in text.split(",") if item)
    return {name: value for name, _, value in pairs}


def _amount(name: str, value: str) -> str:
    """Memory is in MiB, sacctmgr's default unit. Source: sacctmgr(1), TRES."""
    if name == "mem" and value[-1:] in _MIB:
        return str(round(float(value[:-1]) * _MIB[value[-1]]))
    return str(int(value))


def _seconds(text: str, unit: int) -> int:
    """Reads `1-12:30:00`, `00:30:00`, or a number of `unit` seconds."""
    if text.isdecimal():
        return int(text) * unit
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
