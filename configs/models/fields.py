"""The base of every config model, and the types of single values that several topics have: names, paths, times, sizes. The types of
a single topic are at the top of its own file.

Each type refuses with a whole plain sentence fragment ("... is not a DNS label: ..."), because users read it as it stands. Rules that
need more than one value are not here: `rules` has them.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictStr
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from configs.faults import quoted

_INITIALISMS = {"Mib": "MiB", "Gib": "GiB", "Ip": "IP"}


def camel(name: str) -> str:
    """`memory_mib` as users write it: `memoryMiB`."""
    out = to_camel(name)
    for ugly, fine in _INITIALISMS.items():
        out = re.sub(rf"{ugly}(?=$|[A-Z])", fine, out)
    return out


class Model(BaseModel):
    """Frozen, camelCase in YAML, unknown keys refused, and no guessing: the text "2" is not the number 2."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=camel, populate_by_name=True, use_attribute_docstrings=True)


def refuse(message: str) -> PydanticCustomError:
    """A refusal whose message reaches the user as it is. Braces in it are not placeholders."""
    return PydanticCustomError("slipway", "{message}", {"message": message})  # type: ignore[arg-type]


def is_one_line(text: str) -> bool:
    """True when the text cannot start a second line or hide one: printable characters only."""
    return text.isprintable()


@dataclass(frozen=True, eq=False)  # hashed as itself: types contain it, and it holds a mapping
class Shown:
    """What editors and docs/reference/stack-file.md show of a type whose check is a function. Checks nothing itself."""

    what: str
    """What a value is."""
    example: str | int | float | None = None
    """None: each key of the type has an example of its own."""
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """JSON schema of the values: it may accept more than the check does, never less."""


@dataclass(frozen=True)
class Matching:
    """The check of a text that a pattern describes, and what editors and docs/reference/stack-file.md show of it."""

    pattern: str
    what: str
    longest: int
    example: str

    def __call__(self, value: str) -> str:
        if len(value) > self.longest:
            raise refuse(f"{quoted(value)} has {len(value)} characters; {self.longest} are allowed.")
        if re.fullmatch(self.pattern, value, re.ASCII) is None:
            raise refuse(f"{quoted(value)} is not {self.what}.")
        return value


@dataclass(frozen=True)
class AtMost:
    """An upper bound as a validator: a field's own, lower `le` would not override a bound in its type."""

    most: int

    def __call__(self, value: int) -> int:
        if value > self.most:
            raise refuse(f"{quoted(value)} is more than {self.most}, the most allowed.")
        return value


def whole(value: object) -> object:
    """A double without a fraction as the whole number that it is."""
    # JSON of other languages, and Pulumi's own wire format, have doubles only: 2 arrives as 2.0. A true fraction is refused.
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole), Field(strict=True)]
"""A whole number, however the language of the program writes it: 2 and 2.0, but neither 2.5 nor the text "2"."""


def _quoted_time(value: object) -> object:
    # YAML 1.1 reads an unquoted 12:30:00 as a number in base 60, so the text that the user wrote is gone.
    if isinstance(value, int) and not isinstance(value, bool):
        raise refuse(f'{quoted(value)} is a number here. Write the time in quotes: "1-00:00:00" is a day, "30" is 30 minutes.')
    return value


def _time(value: str) -> str:
    if _TIME.fullmatch(value) is None:
        raise refuse(
            f'{quoted(value)} is not a time that Slurm knows. Write days-hours:minutes:seconds, as in "1-12:00:00", minutes, or UNLIMITED.'
        )
    return value


_TIME = re.compile(r"INFINITE|UNLIMITED|\d{1,8}|\d{1,6}:\d\d|\d{1,5}:\d\d:\d\d|\d{1,4}-\d{1,2}(:\d\d){0,2}", re.ASCII)


def seconds(time: str) -> float:
    """A time of Slurm in seconds. Source: slurm.conf(5), MaxTime: minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s."""
    if time in ("INFINITE", "UNLIMITED"):
        return float("inf")
    days, dash, rest = time.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:
        hours, minutes, secs = (*parts, 0, 0)[:3]
    elif len(parts) == 3:
        hours, minutes, secs = parts
    else:
        hours, (minutes, secs) = 0, (*parts, 0)[:2]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + secs


_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""Source: Kubernetes' DNS-1123 subdomain: labels with single dots between them."""


def _host(value: str) -> str:
    """Source: RFC 1123, 2.1: labels of letters, digits and dashes; four numbers with dots are an address."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        if len(value) > 253 or _HOST.fullmatch(value) is None or re.fullmatch(r"[\d.]+", value, re.ASCII):
            port = " Its port has a key of its own, or none." if re.fullmatch(r"[^:]+:\d+", value, re.ASCII) else ""
            raise refuse(f"{quoted(value)} is not a host name or an IP address.{port}") from None
    else:
        if address.is_unspecified or address.is_multicast:
            raise refuse(f"{quoted(value)} is the address of no machine. Give a host name or an address.")
    return value


_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*", re.ASCII)


def dns_label(longest: int, example: str) -> Matching:
    """The check of a DNS label. Kubernetes allows 63 characters; a name that is a part of others may have fewer."""
    what = "a DNS label: lower-case letters, digits and dashes, first a letter, last no dash"
    return Matching(r"[a-z]([-a-z0-9]*[a-z0-9])?", what, longest, example)


def _one_line(value: str) -> str:
    if not is_one_line(value):
        raise refuse(f"{quoted(value)} holds a line break or another control character. One line of printable characters is allowed.")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        raise refuse(f"{quoted(value)} is a relative path. Write it from the root: {quoted('/' + value.lstrip('./'))}.")
    if re.fullmatch(r"(/[A-Za-z0-9._@+-]+)+", value) is None or {".", ".."} & set(value.split("/")):
        raise refuse(f"{quoted(value)} is not a plain absolute path, such as /data/sets: no trailing slash, no spaces, no `..`.")
    return value


def _setting(value: object) -> object:
    # YAML's yes and no, and plain numbers, are how Slurm's own files say them.
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return quoted(whole(value))
    return value


def _setting_text(value: str) -> str:
    if not value.strip():
        raise refuse("is empty. Slurm would read the next key as its value; leave the key out instead.")
    if found := set('#"\\') & set(value):
        raise refuse(f"{quoted(value)} holds {' and '.join(sorted(found))}, which has a meaning of its own in Slurm's files.")
    return _one_line(value)


DnsLabel = Annotated[StrictStr, AfterValidator(dns_label(63, "scratch"))]
NodeSetName = Annotated[StrictStr, AfterValidator(dns_label(30, "gpu"))]
ObjectName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(_SUBDOMAIN, "a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them", 253, "efs")
    ),
]
GpuModel = Annotated[StrictStr, AfterValidator(Matching(r"[a-z][a-z0-9_.-]*", "a GPU model: lower case, as in h100 or a10g", 32, "h100"))]
MigProfile = Annotated[
    StrictStr,
    AfterValidator(Matching(r"[1-7]g\.[1-9]\d{0,2}gb", "a profile of NVIDIA's MIG, as nvidia-smi writes it", 32, "1g.10gb")),
]
UserName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[a-z_][a-z0-9_-]*", "a user name: lower-case letters, digits, dashes and underscores, first a letter", 32, "ada")
    ),
]
ImageReference = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"([A-Za-z0-9][A-Za-z0-9.-]*(:\d{1,5})?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
            r"(:\w[\w.-]{0,127}(@sha256:[a-f0-9]{64})?|@sha256:[a-f0-9]{64})",
            "an image with its tag or digest, such as registry.example/slurm:26.05",
            500,
            "registry.example/slurm:26.05",
        )
    ),
]
Size = Annotated[
    StrictStr, AfterValidator(Matching(r"[1-9]\d{0,8}(Mi|Gi|Ti|M|G|T)", "a size such as 100Gi (units Mi, Gi, Ti, M, G, T)", 12, "100Gi"))
]
Host = Annotated[
    StrictStr,
    AfterValidator(_host),
    Shown("a host name or an IP address", "db.example.com", {"maxLength": 253, "pattern": r"^[A-Za-z0-9:]([A-Za-z0-9.:-]*[A-Za-z0-9:])?$"}),
]
Line = Annotated[
    StrictStr, AfterValidator(_one_line), Shown("one line of printable characters", keywords={"pattern": r"^[^\x00-\x1f\x7f]*$"})
]
AbsolutePath = Annotated[
    StrictStr,
    AfterValidator(_absolute),
    Shown("a plain absolute path, without spaces, `..` or a slash at the end", "/data", {"pattern": r"^(/[A-Za-z0-9._@+-]+)+$"}),
]
SlurmTime = Annotated[
    StrictStr,
    BeforeValidator(_quoted_time),
    AfterValidator(_time),
    Shown(
        "a time as Slurm writes it: days-hours:minutes:seconds, minutes, or UNLIMITED; in quotes",
        "1-00:00:00",
        {"pattern": f"^({_TIME.pattern})$"},
    ),
]
SettingKey = Annotated[
    StrictStr, AfterValidator(Matching(r"[A-Za-z][A-Za-z0-9_]*", "a key of Slurm: letters, digits and underscores", 64, "MemSpecLimit"))
]
SettingText = Annotated[
    StrictStr,
    BeforeValidator(_setting),
    AfterValidator(_setting_text),
    Shown(
        'a value without `#`, `"` and `\\`',
        512,
        {"type": ["string", "number", "boolean"], "pattern": r'^[^#"\\\x00-\x1f\x7f]*[^#"\\\s\x00-\x1f\x7f][^#"\\\x00-\x1f\x7f]*$'},
    ),
]
Settings = dict[SettingKey, SettingText]
"""`Key: value` as in slurm.conf. Numbers and yes/no may stand without quotes."""


MOST_UNAVAILABLE = 65_536


def _max_unavailable(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"([1-9]\d?|100)%", value, re.ASCII):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_UNAVAILABLE:
        return value
    raise refuse(f'{quoted(value)} is neither a number of at least 1 (to {MOST_UNAVAILABLE}) nor a percentage from "1%" to "100%".')


MaxUnavailable = Annotated[
    int | str,
    BeforeValidator(_max_unavailable),
    BeforeValidator(whole),
    Shown(
        "a number of at least 1, or a percentage",
        "10%",
        {"type": ["integer", "string"], "minimum": 1, "maximum": MOST_UNAVAILABLE, "pattern": r"^([1-9]\d?|100)%$"},
    ),
]
Name = StrictStr
"""A reference to something that has the name."""

ClusterText = Annotated[StrictStr, AfterValidator(Matching(r"[\w.:/@-]+", "a name without spaces", 253, "ml"))]

Count = Annotated[Whole, Field(ge=0), AfterValidator(AtMost(2_147_483_647))]
Positive = Annotated[Whole, Field(ge=1), AfterValidator(AtMost(2_147_483_647))]
Port = Annotated[Whole, Field(ge=1), AfterValidator(AtMost(65_535))]
Seconds = Annotated[Whole, Field(ge=1), AfterValidator(AtMost(31_536_000))]
MiB = Annotated[Whole, Field(ge=1), AfterValidator(AtMost(1_000_000_000))]
Flag = Annotated[bool, Field(strict=True)]
