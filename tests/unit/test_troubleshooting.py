"""The guides to faults and upgrades stay true: the product says every message that they quote, and their commands name what is there.

A quotation is a block of lines that start with `>`; `…` in it stands for a name, a number or other words that differ. Without a program
in front, the words are Slipway's own, as its source has them. Behind `Slurm:`, `Kubernetes:`, `ssh:`, `bash:` or `apt:` they are that
program's: a test has seen them.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SYMPTOMS = [(ROOT / "docs" / reader / "troubleshooting.md").read_text() for reader in ("use", "operate")]
PAGES = "".join(SYMPTOMS) + (ROOT / "docs" / "operate" / "upgrade.md").read_text()
PRODUCT = ("changes", "cli", "components", "configs", "controllers", "engine", "images", "local", "names", "programs", "slurm")
GAP = "…"
FEWEST_LETTERS = 7
"""Fewer are in too many texts to prove anything."""

_QUOTED = re.compile(r"(?:^>.*\n)+", re.MULTILINE)
_OTHERS = re.compile(r"(?:Slurm|Kubernetes|ssh|bash|apt): (.+)")
_SHELL_GAP = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}]*\}|\$[\w*@]+")
_C_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
_C_TEXT = re.compile(rf"{_C_LITERAL}(?:\s+(?:[A-Z_]+\s+)?{_C_LITERAL})*")
_C_GAP = re.compile(r'%[-.*\d]*[a-zA-Z]+|"\s+[A-Z_]+\s+"')


def read_quotations(text: str) -> list[str]:
    """The quoted messages of a page, each as one line."""
    blocks = (re.split(r"^>\s*$", block, flags=re.MULTILINE) for block in _QUOTED.findall(text))
    return [" ".join(re.sub(r"^> ?", "", part, flags=re.MULTILINE).split()) for block in blocks for part in block if part.strip()]


def python_texts(source: str) -> Iterator[str]:
    """The texts of a module without its docstrings, `…` in place of what is filled in, except a constant of the module."""
    tree = ast.parse(source)
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant)
    }
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    remarks = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(_part(part, constants) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | remarks:
            yield node.value


def _part(part: ast.expr, constants: Mapping[str, object]) -> str:
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
        return str(constants.get(part.value.id, GAP))
    return str(part.value) if isinstance(part, ast.Constant) else GAP


def shell_texts(source: str) -> Iterator[str]:
    """The lines of a script without its remarks."""
    for line in source.splitlines():
        if not line.lstrip().startswith("#"):
            yield _SHELL_GAP.sub(GAP, line).replace("\\`", "`")


def c_texts(source: str) -> Iterator[str]:
    """The texts of a C file."""
    for found in _C_TEXT.findall(source):
        yield _C_GAP.sub(GAP, re.sub(r'"\s+"', "", found))


@cache
def said_by_the_product() -> tuple[str, ...]:
    """All texts of the product's source that may be messages."""
    readers = {
        ".py": python_texts,
        ".sh": shell_texts,
        "": shell_texts,
        ".c": c_texts,
        ".h": c_texts,
        ".j2": str.splitlines,
        ".yaml": str.splitlines,
    }
    files = (file for folder in PRODUCT for file in sorted((ROOT / folder).rglob("*")) if file.suffix in readers and file.is_file())
    return tuple(text for file in files for text in readers[file.suffix](file.read_text()))


@cache
def seen_by_tests() -> str:
    """The source of all tests but this one."""
    return "\n".join(file.read_text() for file in sorted((ROOT / "tests").rglob("*.py")) if file != Path(__file__))


def is_said(message: str) -> bool:
    """True when one text of the product has the parts of the message in their order."""
    parts = [part for part in message.split(GAP) if part.strip()]
    pattern = re.compile(".*".join(re.escape(part) for part in parts), re.DOTALL)
    return sum(map(str.isalpha, "".join(parts))) >= FEWEST_LETTERS and any(pattern.search(text) for text in said_by_the_product())


def is_seen(message: str) -> bool:
    """True for another program's words that a test waits for; for Slipway's own, when the product says them."""
    others = _OTHERS.fullmatch(message)
    return others[1] in seen_by_tests() if others else is_said(message)


def commands() -> list[str]:
    """The commands of the guides, those in their text too."""
    return [*re.findall(r"^    (\S.*)$", PAGES, re.MULTILINE), *re.findall(r"`((?:kubectl|python|slipway|slurm) [^`]+)`", PAGES)]


@pytest.mark.parametrize("message", dict.fromkeys(read_quotations(PAGES)))
def test_quoted_message_is_said(message: str) -> None:
    assert is_seen(message)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("Slurm has not answered since … s", id="other-words"),
        pytest.param("nothing is removed until it does. Slurm has not answered for …", id="other-order"),
        pytest.param("… (…): …", id="no-words"),
        pytest.param("What is, and why: counts, phase, conditions", id="words-of-a-docstring"),
        pytest.param("Slurm: you have no jobs at all on this node", id="others-words-that-no-test-has-seen"),
    ],
)
def test_message_that_nobody_says_is_found_out(message: str) -> None:
    assert not is_seen(message)


def test_every_symptom_has_what_is_seen_and_what_to_do() -> None:
    users, operators = (re.split(rf"^{level} ", page, flags=re.MULTILINE)[1:] for level, page in zip(("##", "###"), SYMPTOMS, strict=True))
    symptoms = [*users, *operators]
    assert (len(users) > 20, len(operators) > 25) == (True, True)
    assert [one.splitlines()[0] for one in symptoms if not _QUOTED.search(one) or "**Do:**" not in one] == []


def test_containers_and_objects_in_commands_exist() -> None:
    declared = "\n".join(file.read_text() for file in sorted((ROOT / "components").glob("*.py")))
    made = "\n".join(commands())
    planned = "\n".join(file.read_text() for file in (ROOT / "tests" / "golden" / "plan" / "dev").iterdir())
    patterns = (r" -c ([\w-]+)", r"(?<![\w-])dev-([a-z-]*[a-z])(?:-0)?\b", r"/component=([\w-]+)")
    names = {name for pattern in patterns for name in re.findall(pattern, made)}
    assert len(names) > 10
    assert sorted(name for name in names if f'"{name}"' not in declared and f"\ndev-{name}:" not in planned) == []
