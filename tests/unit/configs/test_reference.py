"""The page and the JSON schema of the stack files' keys: whole, up to date, and never stricter than the loader.

`mistakes` is a small validator for the part of JSON schema that is used; it stops at a keyword that it does not know.
"""

import copy
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from configs.faults import ConfigFaults
from configs.key_facts import unit_of
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.models.fields import Model
from configs.reference import ARGUMENTS, CHECKS, PAGE, SCHEMA, files, main, outdated
from configs.rules.structure import read_structure
from configs.schema import KEY, flow, key_of, models, stack_schema
from programs.node_checks.kinds import KINDS
from tests.support.configs.stacks import GONE, ROOT, edited, places

STACKS = ("dev", "h100", "cluster")
SAYS = {"description", "title", "default", "examples", "patternErrorMessage", "$schema", "definitions"}
"""Keywords that check nothing."""
SECTIONS = {
    part.partition("\n")[0].strip("`"): part
    for part in (ROOT / PAGE).read_text().split("\n## ")
    if part.partition("\n")[0] not in ("Contents",)
}
ENTRY = re.compile(r"^- \*\*`(\w+)`\*\*: (.+?)\n  - (Type: .+?)\n  - Example: `(.+?)`$", re.MULTILINE | re.DOTALL)
WHOLE = stack_schema(ROOT)


def has_type(value: Any, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, {"string": str, "array": list, "object": dict}[kind])


def mistakes(value: Any, schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """What JSON schema (draft 7) finds wrong with a value, each with its path."""
    if "$ref" in schema:  # whatever stands beside it counts for nothing
        yield from mistakes(value, WHOLE["definitions"][schema["$ref"].removeprefix("#/definitions/")], path)
        return
    items = cast(list[Any], value) if isinstance(value, list) else []
    entries = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    for keyword, told in schema.items():
        match keyword:
            case "type":
                if not any(has_type(value, kind) for kind in ([told] if isinstance(told, str) else told)):
                    yield f"{path}: type"
            case "anyOf":
                found = [list(mistakes(value, each, path)) for each in told]
                if all(found):  # those of the alternative that comes furthest
                    yield from max(found, key=lambda each: max(map(len, each)))
            case "enum" if value not in told:
                yield f"{path}: enum"
            case "minimum" if number is not None and number < told:
                yield f"{path}: minimum"
            case "maximum" if number is not None and number > told:
                yield f"{path}: maximum"
            case "maxLength" if isinstance(value, str) and len(value) > told:
                yield f"{path}: maxLength"
            case "pattern" if isinstance(value, str) and not re.search(told.removesuffix("$") + r"\Z", value, re.ASCII):
                yield f"{path}: pattern"
            case "minItems" if isinstance(value, list) and len(items) < told:
                yield f"{path}: minItems"
            case "items":
                for at, item in enumerate(items):
                    yield from mistakes(item, told, f"{path}[{at}]")
            case "required":
                yield from (f"{path}: required {key}" for key in told if isinstance(value, dict) and key not in entries)
            case "propertyNames":
                for key in entries:
                    yield from mistakes(key, told, f"{path}.{key}")
            case "properties" | "patternProperties" | "additionalProperties":
                pass  # together, below
            case "enum" | "minimum" | "maximum" | "maxLength" | "pattern" | "minItems":
                pass
            case _:
                assert keyword in SAYS, keyword
    for key, item in entries.items():
        known = [schema["properties"][key]] if key in schema.get("properties", {}) else []
        known += [each for pattern, each in schema.get("patternProperties", {}).items() if re.search(pattern, key)]
        further = schema.get("additionalProperties", True)
        if not known and further is False:
            yield f"{path}.{key}: unknown"
        for each in known or ([further] if isinstance(further, dict) else []):
            yield from mistakes(item, each, f"{path}.{key}")


def stack(name: str) -> Any:
    return yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text())


def wrong(raw: Any) -> list[str]:
    """The schema's opinion of a cluster."""
    return list(mistakes({"config": {KEY: raw}}, WHOLE))


def errors_of(model: type[Model], data: Any) -> list[ErrorDetails]:
    """The model's opinion."""
    try:
        model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as refused:
        return refused.errors()
    return []


def keys_of(model: type[Model]) -> list[str]:
    return [key_of(name, field) for name, field in model.model_fields.items()]


def test_committed_files_are_what_the_models_give() -> None:
    assert outdated(ROOT) == [], "run `make reference`"


@pytest.mark.parametrize("path", [PAGE, SCHEMA, ARGUMENTS])
def test_check_names_the_file_that_is_out_of_date_and_the_command(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in STACKS:
        shutil.copy(ROOT / f"Pulumi.{name}.yaml", tmp_path)
    for file in (PAGE, CHECKS, ARGUMENTS):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / CHECKS, tmp_path / CHECKS)
    assert main(["write"], tmp_path) == 0
    assert main(["check"], tmp_path) == 0
    (tmp_path / path).write_text((tmp_path / path).read_text().replace("Kubernetes", "kubernetes", 1))
    assert main(["check"], tmp_path) == 1
    assert capsys.readouterr().err == f"{path} is out of date: run `make reference`\n"
    (tmp_path / path).unlink()
    assert main(["check"], tmp_path) == 1


def test_outdated_check_table_is_found_and_a_page_without_marks_refused(tmp_path: Path) -> None:
    page = (ROOT / CHECKS).read_text()
    for path in files(ROOT):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    for name in STACKS:
        shutil.copy(ROOT / f"Pulumi.{name}.yaml", tmp_path)
    (tmp_path / CHECKS).write_text(page.replace("`minFreeMiB` (1024)", "`minFreeMiB` (1023)"))
    assert outdated(tmp_path) == [CHECKS]
    (tmp_path / CHECKS).write_text(page.replace("<!-- The end of the table. -->", ""))
    with pytest.raises(ValueError, match="belongs between the lines"):
        outdated(tmp_path)


def test_writing_twice_gives_the_same_bytes() -> None:
    assert files(ROOT) == files(ROOT)


def test_models_of_the_reference_are_all_that_a_cluster_holds() -> None:
    held = {name for name in Cluster.model_json_schema()["$defs"] if name != "Cluster"} | {"Cluster"}
    assert {model.__name__ for model in models()} == held == set(WHOLE["definitions"]) == set(SECTIONS) - {next(iter(SECTIONS))}


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_every_key_of_a_model_is_in_page_and_schema(model: type[Model]) -> None:
    assert [key for key, *_ in ENTRY.findall(SECTIONS[model.__name__])] == keys_of(model)
    assert list(WHOLE["definitions"][model.__name__]["properties"]) == keys_of(model)


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_every_key_has_description_type_unit_and_default(model: type[Model]) -> None:
    required = {key_of(name, field) for name, field in model.model_fields.items() if field.is_required()}
    for key, text, wrapped, _ in ENTRY.findall(SECTIONS[model.__name__]):
        facts = " ".join(wrapped.split()) + " "
        assert len(text) > 4, key
        assert ("Required." in facts) == (key in required), key
        assert ("Default: " in facts) == (key not in required), key
        assert ("Unit: " in facts) == (unit_of(key) is not None), key


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_model_and_schema_accept_each_example_of_the_page(model: type[Model]) -> None:
    for key, _, _, example in ENTRY.findall(SECTIONS[model.__name__]):
        given = yaml.safe_load(example)
        assert list(given) == [key]
        assert list(mistakes(given[key], WHOLE["definitions"][model.__name__]["properties"][key])) == []
        assert key not in {error["loc"][0] for error in errors_of(model, given)}, example


@pytest.mark.parametrize("name", STACKS)
def test_schema_accepts_the_stack_file_and_its_first_line_names_it(name: str) -> None:
    assert list(mistakes(stack(name), WHOLE)) == []
    first = (ROOT / f"Pulumi.{name}.yaml").read_text().partition("\n")[0]
    assert first == f"# yaml-language-server: $schema={SCHEMA}"


@pytest.mark.parametrize(
    ("edits", "mistake"),
    [
        pytest.param({"nodeSets[0].szie": 4}, "nodeSets[0].szie: unknown", id="unknown-key"),
        pytest.param({"nodesets": []}, "nodesets: unknown", id="key-in-another-case"),
        pytest.param({"nodePools[0].existing.count": "2"}, "nodePools[0].existing.count: type", id="number-in-quotes"),
        pytest.param({"nodePools[0].max": 2.5}, "nodePools[0].max: type", id="fraction-of-a-machine"),
        pytest.param({"createNamespace": "true"}, "createNamespace: type", id="truth-value-in-quotes"),
        pytest.param({"partitions[0].maxTime": 60}, "partitions[0].maxTime: type", id="time-without-quotes"),
        pytest.param({"partitions[0].nodeSets": "cpu"}, "partitions[0].nodeSets: type", id="text-for-a-list"),
        pytest.param({"login.users[0]": "alice"}, "login.users[0]: type", id="text-for-a-mapping"),
        pytest.param({"storage": None}, "storage: type", id="required-key-without-a-value"),
        pytest.param({"login.replicas": 21}, "login.replicas: maximum", id="number-above-the-key's-own-limit"),
        pytest.param({"accounting.external.port": 65_536}, "accounting.external.port: maximum", id="number-above-its-type's-limit"),
        pytest.param({"nodeSets[0].cpus": 0}, "nodeSets[0].cpus: minimum", id="number-below-its-limit"),
        pytest.param({"backup.stateIntervalS": 9}, "backup.stateIntervalS: minimum", id="seconds-below-their-limit"),
        pytest.param({"nodeSets[0].update.maxUnavailable": "101%"}, "nodeSets[0].update.maxUnavailable: pattern", id="percentage"),
        pytest.param({"name": "Dev"}, "name: pattern", id="name-with-a-capital"),
        pytest.param({"name": "d" * 21}, "name: maxLength", id="name-too-long"),
        pytest.param({"storage.state.size": "5GB"}, "storage.state.size: pattern", id="size-in-an-unknown-unit"),
        pytest.param({"partitions[0].state": "up"}, "partitions[0].state: enum", id="choice-in-another-case"),
        pytest.param({"nodePools[0].machine": "p5.49xlarge"}, "nodePools[0].machine: enum", id="machine-not-in-the-catalogue"),
        pytest.param({"login.ldap.uris": []}, "login.ldap.uris: minItems", id="empty-list"),
        pytest.param({"nodePools[0].max": GONE}, "nodePools[0]: required max", id="required-key-missing"),
        pytest.param({"nodeSets[0].slurmd": {"Mem-Spec": 1}}, "nodeSets[0].slurmd.Mem-Spec: pattern", id="key-of-slurm-with-a-dash"),
        pytest.param({"nodeSets[0].slurmd": {"MemSpecLimit": [1]}}, "nodeSets[0].slurmd.MemSpecLimit: type", id="list-as-a-setting"),
    ],
)
def test_schema_refuses(edits: dict[str, Any], mistake: str) -> None:
    raw = edited("dev", edits)
    assert f".config.{KEY}.{mistake}" in wrong(raw)
    assert read_structure(copy.deepcopy(raw))[1] or mistake.endswith("machine: enum"), "the models accept it"


@pytest.mark.parametrize(
    ("file", "mistake"),
    [
        pytest.param({"confg": {}, "config": stack("dev")["config"]}, ".confg: unknown", id="misspelt-section"),
        pytest.param({"config": {"slipway:clustre": {}}}, ".config.slipway:clustre: unknown", id="misspelt-cluster"),
        pytest.param({"config": {"aws:region": "us-east-2"}}, f".config: required {KEY}", id="no-cluster"),
        pytest.param({}, ": required config", id="empty-file"),
    ],
)
def test_schema_refuses_a_file(file: dict[str, Any], mistake: str) -> None:
    assert mistake in list(mistakes(file, WHOLE))


def test_schema_accepts_what_the_pulumi_cli_writes_into_a_stack_file() -> None:
    written = {"secretsprovider": "passphrase", "encryptionsalt": "v1:abc", "config": {"aws:region": "us-east-2", **stack("dev")["config"]}}
    assert list(mistakes(written, WHOLE)) == []


@pytest.mark.parametrize("name", STACKS)
def test_schema_refuses_nothing_that_the_loader_accepts(name: str) -> None:
    """Each value of the stack file, replaced by others in turn; in the largest, of which the others have most, by some of them each. The
    catalogue of machines is checked by the loader, not by the models."""
    raw = stack(name)["config"][KEY]
    odds: tuple[Any, ...] = (None, -1, 0, 2.0, 2.5, 10**12, True, "", "x", "x y", "10%", "1-00:00:00", "1Gi", [], {}, ["x"], {"x": "x"})
    taken = 0
    for at, place in enumerate(places(raw)):
        parent: Any = raw
        for part in place[:-1]:
            parent = parent[part]
        value = parent[place[-1]]
        for odd in odds if name != "h100" else odds[at % 3 :: 3]:
            parent[place[-1]] = odd
            if errors_of(Cluster, raw):
                continue
            taken += 1
            if found := wrong(raw):
                with pytest.raises(ConfigFaults):
                    load_cluster(copy.deepcopy(raw), ROOT, "x")
                assert found[0].endswith("machine: enum"), (place, odd, found)
        parent[place[-1]] = value
    assert taken > 100


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, "x y", True, None, 2.5]},
        ["12months", "1-00:00:00", "100m", "yes", "1e5", ""],
        {"k/l": "a: b", "m": "#"},
        "-x",
        "[a]",
        "0x1F",
    ],
    ids=["kinds", "almost-numbers", "punctuation", "dash", "brackets", "hexadecimal"],
)
def test_one_line_of_yaml_reads_back_as_it_was(value: Any) -> None:
    assert yaml.safe_load(flow(value)) == value
    assert "\n" not in flow(value)


def test_page_lists_the_limits_of_every_health_check_with_their_defaults() -> None:
    text = " ".join(SECTIONS["HealthCheck"].split())
    for name, check in KINDS.items():
        limits = [f"`{limit}` ({check.limit_text(limit)})" for limit in check.limits]
        assert not limits or f"{name}: {', '.join(limits)}." in text


def test_patterns_are_regular_expressions_of_editors_too() -> None:
    """Editors use ECMAScript with the flag u: no named or inline groups of Python's, and no escape without a meaning."""

    def patterns(schema: Any) -> Iterator[str]:
        if isinstance(schema, dict):
            for key, inner in cast(dict[str, Any], schema).items():
                if key == "pattern" and isinstance(inner, str):
                    yield inner
                yield from patterns(inner)
        elif isinstance(schema, list):
            for inner in cast(list[Any], schema):
                yield from patterns(inner)

    found = set(patterns(WHOLE))
    assert len(found) > 20
    for pattern in found:
        assert not re.search(r"\(\?(?![:=!])", pattern), pattern
        assert set(re.findall(r"\\(.)", pattern)) <= set("dwsux^$\\.*+?()[]{}|/"), pattern
