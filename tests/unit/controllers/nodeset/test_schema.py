"""The kinds as the API server checks them, and the structs that the controller decodes: the same fields, types, choices and defaults."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from components.kinds import build_crds
from controllers.nodeset.structs import NodeSetSpec, NodeSetStatus, SlurmNodeStatus

NODE_SET, SLURM_NODE = (kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] for kind in build_crds("dev"))


def fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field of the kind with its path; not what is passed on as it is."""
    for name, one in schema.get("properties", {}).items():
        yield f"{path}.{name}", one
        if one.get("x-kubernetes-preserve-unknown-fields"):
            continue
        yield from fields(one, f"{path}.{name}")
        if "items" in one:
            yield from fields(one["items"], f"{path}.{name}[]")


def decoded(struct: type[msgspec.Struct], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field that the struct decodes, as JSON schema says it."""
    (root,), parts = msgspec.json.schema_components([struct], ref_template="{name}")

    def walk(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        schema = parts[schema["$ref"]] if "$ref" in schema else schema
        for name, one in schema.get("properties", {}).items():
            # `int | None` is a field that may be left out.
            kinds = [each for each in one.get("anyOf", [one]) if each.get("type") != "null"]
            resolved = {**(parts[kinds[0]["$ref"]] if "$ref" in kinds[0] else kinds[0]), **{k: v for k, v in one.items() if k == "default"}}
            yield f"{path}.{name}", {**resolved, "kinds": {each.get("type", "string" if "enum" in each else "object") for each in kinds}}
            yield from walk(kinds[0], f"{path}.{name}")
            if isinstance(resolved.get("items"), dict):
                yield from walk(resolved["items"], f"{path}.{name}[]")

    return walk(root, path)


OURS = dict([*decoded(NodeSetSpec, "spec"), *decoded(NodeSetStatus, "status"), *decoded(SlurmNodeStatus, "SlurmNode.status")])
THEIRS = dict(
    [
        *(*fields(NODE_SET["spec"], "spec"), *fields(NODE_SET["status"], "status")),
        *fields(SLURM_NODE["status"], "SlurmNode.status"),
    ]
)


def test_kind_and_structs_have_the_same_fields() -> None:
    assert OURS.keys() == THEIRS.keys()


@pytest.mark.parametrize("path", sorted(OURS.keys() & THEIRS.keys()))
def test_field_has_the_type_and_choices_that_the_kind_has(path: str) -> None:
    ours, theirs = OURS[path], THEIRS[path]
    kinds = {"integer", "string"} if theirs.get("x-kubernetes-int-or-string") else {theirs["type"]}
    assert ours["kinds"] == kinds
    assert sorted(ours.get("enum", [])) == sorted(theirs.get("enum", []))


@pytest.mark.parametrize("path", [path for path, one in sorted(THEIRS.items()) if "default" in one])
def test_field_that_is_left_out_is_the_default_of_the_kind(path: str) -> None:
    ours, theirs = OURS[path]["default"], THEIRS[path]["default"]
    if isinstance(theirs, dict):  # what it leaves out has a default of its own
        ours = {name: value for name, value in ours.items() if name in theirs}
    assert ours == theirs
