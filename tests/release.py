"""What makes a commit a release: its tag, the package's version, CHANGELOG.md and the kept plans agree.

    python -m tests.release v0.2.0    # prints the release's notes, or everything that does not agree

The workflow `release` runs it first.
"""

import re
import sys
from collections.abc import Collection

from provider import __version__
from tests.support.project import ROOT
from tests.support.releases import releases

CHANGELOG = ROOT / "CHANGELOG.md"
_HEADING = re.compile(r"^## (\S+)(?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def section(changelog: str, version: str) -> str | None:
    """The text below a version's heading, each sentence on one line, as a release's page shows line breaks; None without the heading."""
    headings = list(_HEADING.finditer(changelog))
    ends = [*(heading.start() for heading in headings[1:]), len(changelog)]
    texts = {heading[1]: changelog[heading.end() : end].strip() for heading, end in zip(headings, ends, strict=True)}
    return re.sub(r"(?<=\S)\n *(?=[^\s#-])", " ", texts[version]) if version in texts else None


def find_faults(tag: str, version: str, changelog: str, kept: Collection[str]) -> list[str]:
    """Everything that does not agree, each with its remedy. `kept` are the versions with plans in tests/golden/releases."""
    faults: list[str] = []
    if tag != f"v{version}":
        faults.append(f"The tag is {tag}, and provider/__init__.py has the version {version}. Change one of them.")
    dates = {heading[1]: heading[2] for heading in _HEADING.finditer(changelog)}
    first = next((name for name in dates if name != "Unreleased"), None)
    heading = f"Head its section ## {version} - DATE, such as 2026-11-27."
    if first != version:
        faults.append(f"The newest version in CHANGELOG.md is {first}, and that of the package {version}. {heading}")
    elif not dates[version]:
        faults.append(f"CHANGELOG.md has no date for {version}. {heading}")
    if version in dates and not section(changelog, version):
        faults.append(f"The section {version} of CHANGELOG.md is empty. List what users notice.")
    if section(changelog, "Unreleased"):
        faults.append(f"CHANGELOG.md has entries below Unreleased. The tagged commit has these changes: move them to {version}.")
    if version not in kept:
        faults.append(f"The plans of {version} are not kept. Run: make release VERSION={version}")
    return faults


def main(tag: str) -> None:
    """Prints the notes of the present version. Exit code 1 where something does not agree."""
    changelog = CHANGELOG.read_text()
    if faults := find_faults(tag, __version__, changelog, releases()):
        sys.exit("\n".join([f"{tag} cannot be released:", *(f"  {fault}" for fault in faults)]))
    print(section(changelog, __version__))


if __name__ == "__main__":
    main(*sys.argv[1:])
