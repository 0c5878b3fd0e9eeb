"""Texts in a plan as data, or named by the file of the repository that they are copies of.

The order of keys in a JSON or YAML text is not shown.
"""

import functools
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from configs.yaml_text import parse_yaml
from tests.plan.folding import Part, fold
from tests.support.configs.golden import slurm_files
from tests.support.project import ROOT

SOURCES = ("names", "programs", "slurm")
"""Folders whose files a plan has copies of."""


def files_by_folder(data: Mapping[str, Any], stack: str) -> Part:
    """The files of a ConfigMap: `folder: [names]` for copies of files in the repository, `name: content` for all else."""
    copies = _copies(stack)
    left = dict(data)
    found: Part = {}
    while folders := Counter(folder for name, text in left.items() for folder, copy in copies.get(name, {}).items() if copy == text):
        folder = min(folders, key=lambda each: (-folders[each], each))
        found[folder] = [name for name, text in left.items() if copies.get(name, {}).get(folder) == text]
        left = {name: text for name, text in left.items() if name not in found[folder]}
    return found | {name: parsed(name, text) if isinstance(text, str) else text for name, text in left.items()}


@functools.cache
def _copies(stack: str) -> dict[str, dict[str, str]]:
    """The texts that the repository has elsewhere, by name, then by folder. Slurm's files are taken as they are rendered now, so that their
    change is a change of their own golden files alone."""
    found = {name: {f"tests/golden/slurm/{stack}": text} for name, text in slurm_files(stack).items()}
    for file in sorted(file for top in SOURCES for file in (ROOT / top).rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            found.setdefault(file.name, {})[str(file.parent.relative_to(ROOT))] = file.read_text(errors="replace")
    return found


@functools.cache
def parsed(name: str, text: Any) -> Any:
    """A file of JSON or YAML as data where writing that gives the same text again, else the text."""
    try:
        if name.endswith(".json"):
            value = json.loads(text)
            return value if json.dumps(value, indent=1) + "\n" == text else text
        if name.endswith(".yml"):
            value = parse_yaml(text)
            return value if yaml.safe_dump(value, sort_keys=False, width=1000, allow_unicode=True) == text else text
    except (ValueError, TypeError, yaml.YAMLError):
        pass
    return text


def parsed_words(words: Any) -> Any:
    """A command whose settings in JSON are data."""
    return [_parsed_word(word) for word in cast(list[Any], words)] if isinstance(words, list) else words


def _parsed_word(word: Any) -> Any:
    if isinstance(word, str) and word.startswith("{") and word.endswith("}"):
        value = json.loads(word)
        return value if json.dumps(value) == word else word
    return word


def like_a_kind(spec: Part) -> Part:
    """The spec of a CustomResourceDefinition: what differs from the file of its kind."""
    file = ROOT / "components" / "crds" / f"{spec['names']['plural']}.yaml"
    if not file.is_file() or len({each["name"] for each in spec["versions"]}) < len(spec["versions"]):
        return spec
    return {"like": str(file.relative_to(ROOT)), **cast(Part, fold(_by_version(spec), _by_version(_kind(file))))}


@functools.cache
def _kind(file: Path) -> Part:
    return parse_yaml(file.read_text())["spec"]


def _by_version(spec: Part) -> Part:
    return {**spec, "versions": {each["name"]: each for each in spec["versions"]}}
