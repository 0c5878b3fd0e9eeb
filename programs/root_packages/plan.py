"""Decides which packages a version of the shared root lacks, and judges an install. Pure.

It parses the output of dpkg-query and apt-get with LC_ALL=C.
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
    """The packages to install, and the version to install them in."""

    version: str
    packages: tuple[str, ...]
    """As apt-get takes them: `name`, or `name=version`."""


def read_wanted(env: Mapping[str, str]) -> Wanted:
    """Reads the Job's variables. Raises KeyError for a missing one."""
    return Wanted(env[variables.ROOT_VERSION], tuple(env[variables.ROOT_PACKAGES].split()))


def find_missing(packages: Sequence[str], listing: str) -> list[str]:
    """Packages that are not installed, or not in the named version. `listing` has lines of name, state and version."""
    installed = {name: version for name, state, version in (line.split(" ") for line in listing.splitlines()) if state == "installed"}

    def is_there(package: str) -> bool:
        name, _, version = package.partition("=")
        return name in installed and version in ("", installed[name])

    return [package for package in packages if not is_there(package)]


class Outcome(Enum):
    """Result of apt-get."""

    DONE = auto()
    REFUSED = auto()
    """The next try cannot help."""
    AGAIN = auto()


def judge(code: int, output: str, version: str) -> tuple[Outcome, str]:
    """Judges an install with fresh lists. If it failed, the text tells the admin why."""
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
