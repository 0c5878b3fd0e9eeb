"""Documents stay true: the verbs they name exist, the layout they show is there, and the stack file stays small."""

import re
import subprocess
import textwrap
import tomllib
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


PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(str(page.relative_to(ROOT)) for folder in ("docs", "docs/use") for page in sorted((ROOT / folder).glob("*.md"))),
]
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md", "SECURITY.md"])
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    links = _LINK.findall((ROOT / page).read_text())
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_every_page_is_in_the_index() -> None:
    listed = {str(Path("docs", link)) for link in _LINK.findall((ROOT / "docs" / "README.md").read_text())}
    assert {page for page in PAGES if page.startswith("docs/")} - {"docs/README.md"} <= listed


def test_readme_stays_a_landing_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110


_ROOMS = "cli|components|configs|controllers|docs|engine|images|local|names|policies|programs|provider|slurm|templates|tests"
_FILE = re.compile(rf"`((?:{_ROOMS})/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_named_in_a_page_exists(page: str) -> None:
    named = set(_FILE.findall((ROOT / page).read_text()))
    assert [name for name in sorted(named) if not list(ROOT.glob(f"{name.rstrip('/')}*"))] == []


_IN_TEXT = re.compile(rf"(?<![\w./-])((?:{_ROOMS})/[\w/-]+\.(?:py|sh|c|md|j2|yaml))\b")
_WITH_PATHS = ("*.py", "*.sh", "*.c", "*.h", "*.j2", "*.yaml", "*Dockerfile", "*Makefile", ":!tests/unit")  # there, some are made up


def test_every_file_named_in_a_comment_exists() -> None:
    listed = subprocess.run(["git", "ls-files", *_WITH_PATHS], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    named = {(file, name) for file in listed for name in _IN_TEXT.findall((ROOT / file).read_text())}
    assert len(named) > 50
    assert [(file, name) for file, name in sorted(named) if not (ROOT / name).exists()] == []


def test_table_of_layers_is_what_import_linter_enforces() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    packages = set(lint["root_packages"])
    forbidden = {
        each["source_modules"][0]: set(each["forbidden_modules"])
        for each in lint["contracts"]
        if each["type"] == "forbidden" and each["source_modules"][0] in packages
    }
    rows = re.findall(r"^\| `(\w+)` \(.+?\) \| (.+) \|$", (ROOT / "docs/design.md").read_text(), re.MULTILINE)
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
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", (ROOT / "docs" / "support.md").read_text(), re.MULTILINE))
    [series] = re.findall(r"^ARG SLURM_SERIES=(\S+)$", (ROOT / "images/slurm/Dockerfile").read_text(), re.MULTILINE)
    [kubernetes] = re.findall(r"^\tk8s.io/kubernetes v(\d+\.\d+)\.", (ROOT / "local/modules/kubernetes/go.mod").read_text(), re.MULTILINE)
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    [cli] = re.findall(r"\(CLI (\d+\.\d+ or later)\) \|", (ROOT / "docs" / "pulumi.md").read_text())
    assert (rows["Slurm"], rows["Kubernetes"], rows["Python"]) == (series, f"tested with {kubernetes}", f"{python} or later")
    assert rows["Pulumi CLI"] == cli


def test_requirements_pin_every_dependency_of_the_project() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pinned = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    assert {re.split(r"[><=\[]", one)[0] for one in declared} <= pinned
