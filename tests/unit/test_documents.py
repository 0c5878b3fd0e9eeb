"""Documents stay true: the verbs they name exist, the layout they show is there, and the stack file stays small."""

import re
import subprocess
import textwrap
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

from configs.load import load_cluster

ROOT = Path(__file__).parents[2]


def makefile_verbs() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_verb_in_a_page_exists(page: str) -> None:
    named = set(re.findall(r"`?make ([a-z]+)\b", (ROOT / page).read_text())) - {"it", "sure"}
    assert named
    assert named <= makefile_verbs()


DOCUMENTS = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", *DOCUMENTS]
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


@cache
def anchors(page: Path) -> set[str]:
    """What links to headings of a page are called, by GitHub's rule."""
    shown = re.sub(r"^(```|    ).*$", "", page.read_text(), flags=re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", shown, re.MULTILINE)]
    return {slug if not slugs[:at].count(slug) else f"{slug}-{slugs[:at].count(slug)}" for at, slug in enumerate(slugs)}


def leads_somewhere(page: Path, anchor: str) -> bool:
    return page.exists() and (not anchor or anchor in anchors(page))


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    here = ROOT / page
    links = [(here.parent / link if link else here, anchor) for link, anchor in _LINK.findall(here.read_text())]
    assert [(str(target), anchor) for target, anchor in links if not leads_somewhere(target, anchor)] == []


def test_every_page_is_in_the_index() -> None:
    listed = {str(Path("docs", link)) for link, _ in _LINK.findall((ROOT / "docs" / "README.md").read_text())}
    assert set(DOCUMENTS) - {"docs/README.md"} <= listed


def test_manual_on_the_cluster_lists_every_guide_for_researchers() -> None:
    listed = re.findall(r"^\.I (\S+\.md)$", (ROOT / "images/root/man/slipway.7").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs" / "use").glob("*.md"))


_READERS = {
    "start": "platform teams",
    "use": "researchers",
    "operate": "platform teams|researchers and platform teams",
    "reference": "platform teams",
    "explain": "platform teams|engineers",
}
"""Who reads the pages of a folder of docs/."""


@pytest.mark.parametrize("page", [page for page in DOCUMENTS if page != "docs/README.md"])
def test_first_line_of_a_page_names_its_reader_and_what_they_can_do_then(page: str) -> None:
    readers = _READERS[Path(page).parts[1]]
    assert re.match(rf"# .+\n\nFor (?:{readers})(?: [\w ]+)?:\s+\w+", (ROOT / page).read_text())


def test_readme_stays_a_landing_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110


_ROOMS = "cli|components|configs|controllers|docs|engine|images|local|names|policies|programs|provider|slurm|templates|tests"
_FILE = re.compile(rf"`((?:{_ROOMS})/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_named_in_a_page_exists(page: str) -> None:
    named = set(_FILE.findall((ROOT / page).read_text()))
    assert [name for name in sorted(named) if not list(ROOT.glob(f"{name.rstrip('/')}*"))] == []


_IN_TEXT = re.compile(rf"(?<![\w./-])((?:{_ROOMS})/[\w/-]+\.(?:py|sh|c|md|j2|yaml))\b")
_WITH_PATHS = ("*.py", "*.sh", "*.c", "*.h", "*.j2", "*.yaml", "*.yml", "*.toml", "*Dockerfile", "*Makefile")
_MADE_UP = (":!tests/unit", ":!tests/golden/releases")  # there, some are made up, or of an earlier version


def texts_with_paths() -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files", *_WITH_PATHS, *_MADE_UP], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {file: (ROOT / file).read_text() for file in listed.split()}


def test_every_file_named_in_a_comment_exists() -> None:
    named = {(file, name) for file, text in texts_with_paths().items() for name in _IN_TEXT.findall(text)}
    assert len(named) > 50
    assert [(file, name) for file, name in sorted(named) if not (ROOT / name).exists()] == []


_SECTION = re.compile(r"(docs/[\w/-]+\.md)(?:#([\w-]+)|,\s+\\?\"([^\"\\]+)\\?\")")


def test_every_section_named_in_a_text_exists() -> None:
    """Anchors, and names in quotes behind a page, which are headings or words of the page."""
    named = {(file, *section) for file, text in texts_with_paths().items() for section in _SECTION.findall(text)}
    pages = {page: " ".join((ROOT / page).read_text().split()) for _, page, _, _ in named}
    assert len(named) > 3
    lost = [each for each in sorted(named) if not leads_somewhere(ROOT / each[1], each[2]) or each[3] not in pages[each[1]]]
    assert lost == []


def test_table_of_layers_is_what_import_linter_enforces() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    packages = set(lint["root_packages"])
    forbidden = {
        each["source_modules"][0]: set(each["forbidden_modules"])
        for each in lint["contracts"]
        if each["type"] == "forbidden" and each["source_modules"][0] in packages
    }
    rows = re.findall(r"^\| `(\w+)` \(.+?\) \| (.+) \|$", (ROOT / "docs/explain/architecture.md").read_text(), re.MULTILINE)
    told = {package: set(re.findall(r"`(\w+)`", imports)) for package, imports in rows}
    assert told == {package: packages - {package} - forbidden[package] for package in packages}


def test_stack_file_of_the_readme_is_accepted(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"^    config:\n(?:    .*\n)+", page, re.MULTILINE)
    said = yaml.safe_load(textwrap.dedent(block))["config"]["slipway:cluster"]
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "id_ed25519")], check=True)
    assert len(block.splitlines()) == 15
    assert load_cluster(said, tmp_path, "README.md").name == "mini"


def test_main_stays_under_sixty_lines() -> None:
    assert len((ROOT / "__main__.py").read_text().splitlines()) < 60


def test_page_of_support_names_the_versions_that_are_used() -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", (ROOT / "docs" / "reference" / "support.md").read_text(), re.MULTILINE))
    [series] = re.findall(r"^ARG SLURM_SERIES=(\S+)$", (ROOT / "images/slurm/Dockerfile").read_text(), re.MULTILINE)
    [kubernetes] = re.findall(r"^\tk8s.io/kubernetes v(\d+\.\d+)\.", (ROOT / "local/modules/kubernetes/go.mod").read_text(), re.MULTILINE)
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    [cli] = re.findall(r"\(CLI (\d+\.\d+ or later)\) \|", (ROOT / "docs" / "start" / "pulumi.md").read_text())
    assert (rows["Slurm"], rows["Kubernetes"], rows["Python"]) == (series, f"tested with {kubernetes}", f"{python} or later")
    assert rows["Pulumi CLI"] == cli


def test_requirements_pin_every_dependency_of_the_project() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pinned = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    assert {re.split(r"[><=\[]", one)[0] for one in declared} <= pinned
