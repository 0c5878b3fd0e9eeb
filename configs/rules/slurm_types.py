"""The values that Slurm 26.05 can read, by key: numbers, booleans, times and words. Slurm refuses a file with any other value.

Source: Slurm's parser; tests/slurm/test_types.py compares every bound with it. Keys with their own grammar (lists, paths) are left out.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from configs.faults import Fault, did_you_mean, quoted, repeats
from slurm.conf import known, number_of

_TIME = re.compile(r"\d{1,6}|\d{1,6}:\d\d|\d{1,5}:\d\d:\d\d|\d{1,4}-\d{1,2}(:\d\d){0,2}", re.ASCII)
_ENDLESS = ("INFINITE", "UNLIMITED")


@dataclass(frozen=True)
class Number:
    """A whole number, as C writes it: 8, 010 and 0x8 are the same one."""

    most: int
    least: int = 0
    endless: bool = True
    """Slurm reads INFINITE and UNLIMITED too."""

    def reads(self, value: str) -> bool:
        if self.endless and value.upper() in _ENDLESS:
            return True
        number = number_of(value)
        return number is not None and self.least <= number <= self.most

    def __str__(self) -> str:
        return f"a whole number from {self.least} to {self.most}, without a unit{' (or INFINITE)' if self.endless else ''}"


@dataclass(frozen=True)
class Words:
    """One of some words, whatever their case."""

    words: tuple[str, ...]
    more: tuple[str, ...] = ()
    """Further spellings that Slurm reads, and a person would not write."""

    def reads(self, value: str) -> bool:
        return value.lower() in {word.lower() for word in (*self.words, *self.more)}

    def __str__(self) -> str:
        return " or ".join(filter(None, [", ".join(self.words[:-1]), self.words[-1]]))


@dataclass(frozen=True)
class Time:
    """A time, in minutes or as days-hours:minutes:seconds."""

    endless: bool = True
    may_be_none: bool = True

    def reads(self, value: str) -> bool:
        if value.upper() in (*_ENDLESS, "-1"):
            return self.endless
        return _TIME.fullmatch(value) is not None and (self.may_be_none or re.search("[1-9]", value) is not None)

    def __str__(self) -> str:
        return f"a time such as 90 (minutes) or 7-12:00:00{' (or INFINITE)' if self.endless else ''}"


@dataclass(frozen=True)
class Text:
    """A text of a form of its own."""

    pattern: str
    what: str
    """Such as `licenses with their count, as in matlab:4,ansys`."""

    def reads(self, value: str) -> bool:
        return re.fullmatch(self.pattern, value, re.ASCII | re.IGNORECASE) is not None

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class Items:
    """Comma-separated words, case-insensitive, some with a value after `=`. Slurm often ignores words that it does not know."""

    flags: tuple[str, ...]
    valued: Mapping[str, "Number | Words | Text"] = field(default_factory=dict[str, "Number | Words | Text"])
    """Words that have a value, and of which kind."""
    more: tuple[str, ...] = ()
    """Further spellings that Slurm reads, and a person would not write."""
    retired: Mapping[str, str] = field(default_factory=dict[str, str])
    """Words of older releases, and what became of each."""

    def reads(self, value: str) -> bool:
        items = value.split(",")
        return all(self.mistake(item) is None for item in items) and len({_word(item) for item in items}) == len(items)

    def mistake(self, item: str) -> str | None:
        """Why Slurm would ignore or misread one item; None if it reads it."""
        word, sign, item_value = item.partition("=")
        if retired := known(word, self.retired):
            return f"{retired} {self.retired[retired]}"
        if valued := known(word, self.valued):
            kind = self.valued[valued]
            return None if kind.reads(item_value) else f"{quoted(item)} does not say what {valued} is to be. Give {valued}={kind}."
        if known(word, (*self.flags, *self.more)) is None:
            return f"{quoted(item)} is none of the words that Slurm knows here. {did_you_mean(word, (*self.flags, *self.valued))}"
        return f"{word} takes no value. Say {word} alone." if sign else None

    def why(self, value: str) -> str:
        """What is wrong with a list that is not read."""
        items = value.split(",")
        mistakes = [mistake for item in items if (mistake := self.mistake(item))]
        return mistakes[0] if mistakes else f"{quoted(value)} has a word twice. Keep one of each."

    def __str__(self) -> str:
        return f"one or more of {', '.join((*self.flags, *self.valued))}"


def _word(item: str) -> str:
    return item.partition("=")[0].lower()


Type = Number | Words | Time
"""What Slurm's parser itself reads, or refuses with the file."""
Value = Type | Text | Items
"""What Slurm heeds."""
_Kind = TypeVar("_Kind", bound=Value)


_16, _32, _64 = Number(2**16 - 1), Number(2**32 - 1), Number(2**64 - 1)
_YES_NO = Words(("yes", "no"), ("true", "false", "up", "down", "1", "0"))
_LEVEL = Words(("quiet", "fatal", "error", "info", "verbose", "debug", *(f"debug{at}" for at in range(2, 6))), tuple("0123456789"))


def all_of(kind: _Kind, keys: str) -> dict[str, _Kind]:
    """One type for many keys."""
    return dict.fromkeys(keys.split(), kind)


GLOBAL_TYPES: Mapping[str, Type] = {
    **all_of(
        _16,
        """
        AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout CompleteWait EioTimeout EpilogTimeout FairShareDampeningFactor
        GroupUpdateForce GroupUpdateTime HealthCheckInterval HealthCheckTimeout InactiveLimit JobFileAppend JobRequeue KillOnBadExit
        KillWait MaxTasksPerNode MessageTimeout OverTimeLimit PrologEpilogTimeout PrologTimeout ResumeRate ResumeTimeout ResvOverRun
        ReturnToService SlurmctldTimeout SlurmdTimeout SuspendRate SuspendTimeout TCPTimeout UnkillableStepTimeout VSizeFactor WaitTime
        """,
    ),
    **all_of(
        _32,
        """
        JobCompPort MaxBatchRequeue MinJobAge PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize
        PriorityWeightPartition PriorityWeightQOS SlurmdPort
        """,
    ),
    **all_of(_64, "DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"),
    **all_of(_YES_NO, "AllowSpecResourcesUsage DisableRootJobs PriorityFavorSmall TrackWCKey UsePAM"),
    **all_of(_LEVEL, "SlurmctldDebug SlurmctldSyslogDebug SlurmdDebug SlurmdSyslogDebug"),
    "EnforcePartLimits": Words(("ALL", "ANY", "NO"), ("yes", "true", "up", "1", "false", "down", "0")),
    "EpilogMsgTime": Number(1_000_000, endless=False),
    "FirstJobId": Number(67_043_328, 1, endless=False),
    "MaxArraySize": Number(4_000_001, endless=False),
    "MaxDBDMsgs": Number(2**32 - 1, 10_000),
    "MaxJobCount": Number(2**32 - 1, 1),
    "MaxJobId": Number(67_108_863, 1, endless=False),
    "MaxNodeCount": Number(65_536, endless=False),
    "MaxStepCount": Number(2**32 - 1, 1),
    "PreemptExemptTime": Time(),
    "PriorityCalcPeriod": Time(endless=False, may_be_none=False),
    "PriorityDecayHalfLife": Time(may_be_none=False),
    "PriorityMaxAge": Time(),
    "PriorityUsageResetPeriod": Words(("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")),
    "PropagatePrioProcess": Number(2, endless=False),
    "SchedulerTimeSlice": Number(2**16 - 1, 5),
    "TreeWidth": Number(2**16 - 1, 1),
}
"""Of slurm.conf. Source of the bounds: measured on 26.05.5."""

NODE_TYPES: Mapping[str, Type] = {
    **all_of(_16, "Boards CoreSpecCount CoresPerSocket CPUs RestrictedCoresPerGPU Sockets SocketsPerBoard ThreadsPerCore"),
    **all_of(_32, "TmpDisk Weight"),
    **all_of(_64, "MemSpecLimit RealMemory"),
}
"""Of a node line."""

PARTITION_TYPES: Mapping[str, Type] = {
    **all_of(_16, "PriorityJobFactor PriorityTier ResumeTimeout SuspendTimeout"),
    **all_of(_32, "GraceTime MaxCPUsPerNode MaxCPUsPerSocket MaxNodes MinNodes"),
    **all_of(_64, "DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"),
    **all_of(_YES_NO, "Default DisableRootJobs Hidden LLN PowerDownOnIdle ReqResv RootOnly"),
    **all_of(Time(), "DefaultTime MaxTime"),
}
"""Of a partition line."""


def unreadable(key: str, value: str, types: Mapping[str, Value]) -> str | None:
    """Why Slurm cannot read a key's value, and what it can read; None if it can, or if the key is not in the table."""
    name = known(key, types)
    if name is None or types[name].reads(value):
        return None
    kind = types[name]
    if isinstance(kind, Items):
        return kind.why(value)
    more = ""
    if isinstance(types[name], Number) and value.lower() in ("yes", "no", "true", "false"):
        more = f" For {value.lower()} that is {int(value.lower() in ('yes', 'true'))}."
    return f"{quoted(value)} is nothing that Slurm reads as {name}. Give {types[name]}.{more}"


def readable(settings: Mapping[str, str], types: Mapping[str, Value]) -> dict[str, tuple[str, str]]:
    """The settings of a line that Slurm can read, by Slurm's spelling: the user's spelling and the value. Others are reported elsewhere."""
    return {known(key, types) or key: (key, value) for key, value in settings.items() if unreadable(key, value, types) is None}


def unreadable_pairs(pairs: Iterable[tuple[str, str]], types: Mapping[str, Value]) -> list[str]:
    """The same for each pair of a line."""
    return [why for key, value in pairs if (why := unreadable(key, value, types))]


def check_settings(
    path: str, kind: str, settings: Mapping[str, str], keys: frozenset[str], own_keys: frozenset[str], types: Mapping[str, Value]
) -> list[Fault]:
    """Faults of further keys of a node or partition line (`kind`): unknown to Slurm, Slipway's own, repeated in another case, or
    unreadable."""
    faults: list[Fault] = []
    for key, value in settings.items():
        name = known(key, keys)
        if name is None:
            faults.append(Fault(f"{path}.{key}", f"Slurm knows no such key of a {kind}. {did_you_mean(key, keys - own_keys)}"))
        elif name in own_keys:
            faults.append(Fault(f"{path}.{key}", f"{name} is rendered from other keys of this {kind}. Change those instead."))
        elif why := unreadable(key, value, types):
            faults.append(Fault(f"{path}.{key}", why))
    names = list(settings)
    twice = repeats([key.lower() for key in names])
    return faults + [Fault(f"{path}.{names[at]}", f"is {names[first]} again: Slurm's keys are case-insensitive.") for at, first in twice]
