"""Decides which packages a version of the shared root lacks, and what came of an install. Pure.

The words are those of dpkg-query and apt-get, with LC_ALL=C.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from names import variables

_UNKNOWN = re.compile(
    r"^E: (?:Unable to locate package (?P<name>\S+)|Package '(?P<gone>[^']+)' has no installation candidate"
    r"|Version '(?P<version>[^']+)' for '(?P<of>[^']+)' was not found)",
    re.MULTILINE,
)
_FULL = re.compile(r"No space left on device|Disk quota exceeded|You don't have enough free space")


@dataclass(frozen=True)
class Wanted:
    """What the Job is to install, and where."""

    version: str
    packages: tuple[str, ...]
    """As apt-get takes them: `name`, or `name=version`."""


def read_wanted(env: Mapping[str, str]) -> Wanted:
    """The Job's variables. Raises KeyError for one that is missing."""
    return Wanted(env[variables.ROOT_VERSION], tuple(env[variables.ROOT_PACKAGES].split()))


def find_missing(packages: Sequence[str], listing: str) -> list[str]:
    """The packages that are not installed, or in another version than the named one. `listing` has lines of name, state and version."""
    installed = {name: version for name, state, version in (line.split(" ") for line in listing.splitlines()) if state == "installed"}

    def is_there(package: str) -> bool:
        name, _, version = package.partition("=")
        return name in installed and version in ("", installed[name])

    return [package for package in packages if not is_there(package)]


class Outcome(Enum):
    """What came of apt-get."""

    DONE = auto()
    REFUSED = auto()
    """The next try cannot help."""
    AGAIN = auto()


def judge(code: int, output: str, version: str) -> tuple[Outcome, str]:
    """What came of an install with fresh lists, and a sentence for whoever deploys."""
    if code == 0:
        return Outcome.DONE, ""
    if unknown := _tell_unknown(output):
        return Outcome.REFUSED, (
            f"{unknown}. Correct storage.root.packages, or add the archive that has it to /etc/apt/sources.list.d of version {version}"
        )
    if _FULL.search(output):
        return Outcome.AGAIN, "the shared volume is full: remove versions, or give it more room"
    last = next((line for line in reversed(output.splitlines()) if line.startswith("E: ")), "")
    return Outcome.AGAIN, f"apt-get gave {code}: {last.removeprefix('E: ') or 'see above'}"


def _tell_unknown(output: str) -> str:
    matches = [match.groupdict() for match in _UNKNOWN.finditer(output)]
    names = [name for match in matches if (name := match["name"] or match["gone"])]
    versions = [f"version {match['version']} of {match['of']}" for match in matches if match["of"]]
    parts = [*([f"package {', '.join(names)}"] if names else []), *versions]
    return f"no archive of the version has {' and '.join(parts)}" if parts else ""
