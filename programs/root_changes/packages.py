"""dpkg's own files: installed packages, their paths, and how to merge a package's record into another root. Pure.

Sources: dpkg's lib/dpkg/parse.c (the status file) and infodb-access.c (names of files in info/).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

INFO = b"var/lib/dpkg/info"
STATUS = b"var/lib/dpkg/status"
TRIGGERS = b"var/lib/dpkg/triggers"
_AT_REST = ("config-files", "not-installed")


class Package(NamedTuple):
    """One paragraph of the status file."""

    name: str
    """Prefix of its files in info/: `bash`, or `libc6:amd64` for packages that can be installed for two architectures."""
    version: str
    state: str
    """installed, config-files, unpacked, half-installed..."""
    conffiles: frozenset[bytes]
    """Its configuration files, which users may change."""
    paragraph: str

    @property
    def is_installed(self) -> bool:
        """True if it is installed and configured."""
        return self.state == "installed"

    @property
    def is_unfinished(self) -> bool:
        """True if dpkg was interrupted."""
        return not self.is_installed and self.state not in _AT_REST


def read_status(text: str) -> dict[str, Package]:
    """All packages in a status file. Other paragraphs are left out."""
    packages = (_read_paragraph(paragraph) for paragraph in text.split("\n\n"))
    return {package.name: package for package in packages if package}


def owned_paths(listing: bytes, aliases: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """The paths of one .list file. `aliases` are links at the top, such as lib to usr/lib, which are resolved."""
    for line in listing.split(b"\n"):
        path = line.lstrip(b"/").rstrip(b"\r")
        if path in (b"", b"."):
            continue
        top, slash, below = path.partition(b"/")
        yield aliases.get(top, top) + slash + below if slash else path


def merge_status(text: str, packages: Iterable[Package]) -> str:
    """A status file with the paragraphs of these packages added or replaced."""
    added = {package.name: package for package in packages}
    unchanged = [
        paragraph.strip("\n")
        for paragraph in text.split("\n\n")
        if paragraph.strip() and (package := _read_paragraph(paragraph)) and package.name not in added
    ]
    return "".join(f"{paragraph}\n\n" for paragraph in [*unchanged, *(package.paragraph.strip("\n") for package in added.values())])


def merge_triggers(new: str, old: str, packages: Iterable[str]) -> str:
    """A file of var/lib/dpkg/triggers with the old root's lines for these packages. Each line ends with a package's name."""
    names = set(packages)
    lines = new.splitlines()
    wanted = [line for line in old.splitlines() if line.split() and line.split()[-1].removesuffix("/noawait") in names]
    return "".join(f"{line}\n" for line in [*lines, *(line for line in wanted if line not in lines)])


def _read_paragraph(paragraph: str) -> Package | None:
    fields: dict[str, str] = {}
    last = ""
    for line in paragraph.split("\n"):
        if line[:1] in (" ", "\t"):
            if last == "conffiles":  # the only multi-line field that is needed here
                fields[last] += f"\n{line}"
        elif ":" in line:
            key, _, value = line.partition(":")
            last = key.lower()
            fields[last] = value.strip()
    if "package" not in fields or "status" not in fields:
        return None
    is_many = fields.get("multi-arch") == "same"
    name = f"{fields['package']}:{fields.get('architecture', '')}" if is_many else fields["package"]
    # A file's line is ` /path md5sum [obsolete]`; a name may hold spaces.
    lines = (line.strip().removesuffix(" obsolete").removesuffix(" remove-on-upgrade") for line in fields.get("conffiles", "").split("\n"))
    conffiles = frozenset(line.rpartition(" ")[0].lstrip("/").encode("utf-8", "surrogateescape") for line in lines if line.startswith("/"))
    return Package(name, fields.get("version", ""), fields["status"].split(" ")[-1], conffiles, paragraph)
