"""The base of every config model, and the types of single values: names, paths, times, sizes.

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

MAX_NODES = 65_536
"""Slurm's own limit on nodes of one cluster. Source: MAX_SLURM_NODES in Slurm's src/common/node_conf.h."""

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


@dataclass(frozen=True, eq=False)  # hashed as itself: it stands in types, and holds a mapping
class Shown:
    """What editors and docs/reference.md show of a type whose check is a function. Checks nothing itself."""

    what: str
    """What a value is."""
    example: str | int | float | None = None
    """None: each key of the type has one of its own."""
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """JSON schema of the values: it may accept more than the check does, never less."""


@dataclass(frozen=True)
class Matching:
    """The check of a text that a pattern describes, and what editors and docs/reference.md show of it."""

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


def _free_ending(value: str) -> str:
    if value.endswith(_RECORDS):
        raise refuse(f"{quoted(value)} ends like the records that lie beside a version ({', '.join(_RECORDS)}).")
    return value


_RECORDS = (".carried", ".lock", ".manifest", ".new", ".part", ".tar", ".unused")
"""Ends of names in the folders sources and filling of the shared root; see programs/root_fill/place.py."""


@dataclass(frozen=True)
class AtMost:
    """An upper bound as a validator: a field's own, lower `le` would not win over one in its type."""

    most: int

    def __call__(self, value: int) -> int:
        if value > self.most:
            raise refuse(f"{quoted(value)} is more than {self.most}, the most allowed.")
        return value


def whole(value: object) -> object:
    """A double without a fraction as the whole number that it is."""
    # JSON of other languages, and Pulumi's own wire format, have doubles only: 2 arrives as 2.0. A true fraction stays one, and is refused.
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

_LONGEST_TEXT = 4000

_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_SAYS = "a DNS label: lower-case letters, digits and dashes, first a letter, last no dash"


def _one_line(value: str) -> str:
    if not is_one_line(value):
        raise refuse(f"{quoted(value)} holds a line break or another control character. One line of printable characters is allowed.")
    return value


def _text(value: str) -> str:
    for line in value.splitlines():
        if not is_one_line(line.replace("\t", " ")):
            raise refuse(f"{quoted(line)} holds a control character. Lines of printable characters are allowed.")
    if len(value) > _LONGEST_TEXT:
        raise refuse(f"has {len(value)} characters; {_LONGEST_TEXT} are allowed.")
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


def _address(value: str) -> str:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        raise refuse(f"{quoted(value)} is not an IP address, such as 10.96.20.49.") from None
    if address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local:
        raise refuse(f"{quoted(value)} is an address that no other machine can reach. Take a free one, such as 10.96.20.49.")
    return str(address)


def _network(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value))
    except ValueError:
        raise refuse(f"{quoted(value)} is not a network, such as 10.0.0.0/16.") from None


ClusterName = Annotated[StrictStr, AfterValidator(Matching(_LABEL, _LABEL_SAYS, 20, "ml"))]
"""At most 20 characters: `<cluster>-slurmrestd-<hash>` and longer names must stay under Kubernetes' 63."""
DnsLabel = Annotated[StrictStr, AfterValidator(Matching(_LABEL, _LABEL_SAYS, 63, "scratch"))]
NodeSetName = Annotated[StrictStr, AfterValidator(Matching(_LABEL, _LABEL_SAYS, 30, "gpu"))]
CheckName = Annotated[StrictStr, AfterValidator(Matching(_LABEL, _LABEL_SAYS, 20, "disk"))]
"""A CronJob is called `<cluster>-check-<name>`, and its name may have 52 characters."""
MountName = Annotated[StrictStr, AfterValidator(Matching(_LABEL, _LABEL_SAYS, 40, "datasets"))]
"""A volume of the pods is called `mount-<name>`, and its name may have 63 characters."""
RootVersionName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[A-Za-z0-9][A-Za-z0-9._-]*",
            "a version name: letters, digits, dots, dashes, underscores, first a letter or digit",
            64,
            "2026-01",
        )
    ),
    AfterValidator(_free_ending),
]
"""A folder on the shared volume, and a word of `srun --root-version`."""
TarUrl = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?/[\w.~:/?#\[\]@!$&'()*+,;=%-]+|file:///shared(/(?!\.\.?(/|$))[\w.@+-]+)+",
            "where a tar is: https://host/path, http://host/path, or file:///shared/path for one on the shared volume",
            2000,
            "https://files.example.com/root-2026-01.tar.zst",
        )
    ),
]
Sha256 = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[0-9a-f]{64}",
            "a SHA-256 digest: 64 hexadecimal digits, as sha256sum prints them",
            64,
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
        )
    ),
]
PartitionName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z][A-Za-z0-9_-]*", "a partition name: letters, digits, dashes and underscores, first a letter", 40, "train")
    ),
]
ObjectName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", "a Kubernetes object name: lower-case letters, digits, dashes and dots", 253, "efs")
    ),
]
Feature = Annotated[
    StrictStr,
    AfterValidator(Matching(r"[A-Za-z_][A-Za-z0-9_.=-]*", "a feature: letters, digits and any of _ . = -, first a letter", 64, "h100")),
]
GpuModel = Annotated[StrictStr, AfterValidator(Matching(r"[a-z][a-z0-9_.-]*", "a GPU model: lower case, as in h100 or a10g", 32, "h100"))]
LabelText = Annotated[
    StrictStr, AfterValidator(Matching(r"([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?", "a Kubernetes label value", 63, "gpu"))
]
LabelKey = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?",
            "a Kubernetes label key",
            317,
            "slipway.dev/pool",
        )
    ),
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
            r"[a-z0-9][A-Za-z0-9._/:-]*(:[\w][\w.-]{0,127}|@sha256:[a-f0-9]{64})",
            "an image with its tag or digest, such as registry.example/slurm:26.05",
            500,
            "registry.example/slurm:26.05",
        )
    ),
]
Size = Annotated[
    StrictStr, AfterValidator(Matching(r"[1-9]\d{0,8}(Mi|Gi|Ti|M|G|T)", "a size such as 100Gi (units Mi, Gi, Ti, M, G, T)", 12, "100Gi"))
]
CpuQuantity = Annotated[
    StrictStr,
    AfterValidator(Matching(r"[1-9]\d{0,5}m|[1-9]\d{0,3}(\.\d{1,3})?|0\.\d{1,3}", 'a CPU quantity such as "500m" or "2"', 8, "500m")),
]
Host = Annotated[
    StrictStr, AfterValidator(Matching(r"[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?", "a host name or an IP address", 253, "db.example.com"))
]
IPAddress = Annotated[StrictStr, AfterValidator(_address), Shown("an IP address", "10.96.20.49", {"pattern": r"^[\w.:%]+$"})]
Network = Annotated[StrictStr, AfterValidator(_network), Shown("a network", "10.0.0.0/16", {"pattern": r"^[\w.:%]+(/[\d.]+)?$"})]
Line = Annotated[
    StrictStr, AfterValidator(_one_line), Shown("one line of printable characters", keywords={"pattern": r"^[^\x00-\x1f\x7f]*$"})
]
Text = Annotated[StrictStr, AfterValidator(_text), Shown("lines of printable characters", "Welcome.", {"maxLength": _LONGEST_TEXT})]
"""Lines for people to read on a terminal."""
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


_TRES = re.compile(r"(cpu|node|billing|gres/gpu(?::[a-z][a-z0-9_.-]*)?)=\d{1,15}|mem=\d{1,15}[MGTP]?", re.ASCII)


def _tres(value: str) -> str:
    items = value.split(",")
    for item in items:
        if _TRES.fullmatch(item) is None:
            raise refuse(
                f"{quoted(item)} is not an amount of cpu, mem, node, billing, gres/gpu or gres/gpu:<model>, as in "
                "cpu=64,mem=512G,gres/gpu=8 (mem in MiB without a unit)."
            )
    names = [item.partition("=")[0] for item in items]
    if twice := next((name for at, name in enumerate(names) if name in names[:at]), None):
        raise refuse(f"{quoted(value)} says {twice} twice.")
    return value


def _max_unavailable(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"([1-9]\d?|100)%", value, re.ASCII):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise refuse(f'{quoted(value)} is neither a number of at least 1 nor a percentage from "1%" to "100%".')


MaxUnavailable = Annotated[
    int | str,
    BeforeValidator(_max_unavailable),
    BeforeValidator(whole),
    Shown("a number of at least 1, or a percentage", "10%", {"type": ["integer", "string"], "minimum": 1, "pattern": r"^([1-9]\d?|100)%$"}),
]
ReservationName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z][A-Za-z0-9_.-]*", "a reservation's name: letters, digits and any of _ . -, first a letter", 64, "maintenance")
    ),
]
LimitName = Annotated[
    StrictStr, AfterValidator(Matching(r"[a-z][A-Za-z0-9]*", "the name of a limit, such as minFreeMiB", 64, "minFreeMiB"))
]
DatabaseName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z][A-Za-z0-9_]*", "a database's name: letters, digits and underscores, first a letter", 64, "slurm_acct_db")
    ),
]
StorageUser = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z_][A-Za-z0-9_.@-]*", "a user of a database: letters, digits and any of _ . @ -, first a letter", 80, "slurm")
    ),
]
PurgeAge = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[1-9]\d{0,4}(hours?|days?|months?)", "an age that slurmdbd knows, such as 12months, 30days or 48hours", 12, "12months"),
    ),
]
"""slurmdbd takes a number alone for months, and hours, days and months by the start of the word. Source: slurmdb_parse_purge of 26.05."""
RestorePoint = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"latest|nothing|\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ",
            "latest, nothing, or a time as backups are called, such as 2026-01-31T02-30-00Z",
            20,
            "2026-01-31T02-30-00Z",
        )
    ),
]
AccountName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[a-z][a-z0-9_.-]*", "a name for Slurm's database: lower-case letters, digits and any of _ . -, first a letter", 40, "research"
        )
    ),
]
"""Of an account or a QOS. sacctmgr makes capitals small, so they are refused."""
Tres = Annotated[
    StrictStr,
    AfterValidator(_tres),
    Shown(
        "amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit",
        "cpu=512,mem=4T,gres/gpu=16",
        {"pattern": f"^({_TRES.pattern})(,({_TRES.pattern}))*$"},
    ),
]
"""Trackable resources, as sacctmgr takes them."""
Name = StrictStr
"""A reference to something that has the name."""

Arn = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+",
            "a role's ARN, such as arn:aws:iam::123456789012:role/node",
            2048,
            "arn:aws:iam::123456789012:role/node",
        )
    ),
]
SubnetId = Annotated[
    StrictStr,
    AfterValidator(Matching(r"subnet-[0-9a-f]{8,32}", "a subnet's id, such as subnet-0a1b2c3d4e5f60718", 40, "subnet-0a1b2c3d4e5f60718")),
]
SecurityGroupId = Annotated[
    StrictStr,
    AfterValidator(Matching(r"sg-[0-9a-f]{8,32}", "a security group's id, such as sg-0a1b2c3d4e5f60718", 40, "sg-0a1b2c3d4e5f60718")),
]
ReservationId = Annotated[
    StrictStr,
    AfterValidator(Matching(r"cr-[0-9a-f]{8,32}", "a capacity reservation's id, such as cr-0a1b2c3d4e5f60718", 40, "cr-0a1b2c3d4e5f60718")),
]
ChartVersion = Annotated[StrictStr, AfterValidator(Matching(r"v\d+\.\d+\.\d+", "a chart version, such as v25.3.4", 20, "v25.3.4"))]
ExportPath = Annotated[
    StrictStr, AfterValidator(Matching(r'/[^\s,\\"#]*', "an absolute path on the NFS server, such as /export/data", 1024, "/export/data"))
]
MountOption = Annotated[
    StrictStr, AfterValidator(Matching(r"[a-z0-9_]+(=[\w.:/-]+)?", "one mount option, such as nfsvers=4.1", 100, "nfsvers=4.1"))
]
ClusterText = Annotated[StrictStr, AfterValidator(Matching(r"[\w.:/@-]+", "a name without spaces", 253, "ml"))]

Count = Annotated[Whole, Field(ge=0), AfterValidator(AtMost(2_147_483_647))]
Positive = Annotated[Whole, Field(ge=1), AfterValidator(AtMost(2_147_483_647))]
Port = Annotated[Whole, Field(ge=1), AfterValidator(AtMost(65_535))]
Days = Annotated[Whole, Field(ge=0), AfterValidator(AtMost(3650))]
Seconds = Annotated[Whole, Field(ge=1), AfterValidator(AtMost(31_536_000))]
MiB = Annotated[Whole, Field(ge=1), AfterValidator(AtMost(1_000_000_000))]
Flag = Annotated[bool, Field(strict=True)]
