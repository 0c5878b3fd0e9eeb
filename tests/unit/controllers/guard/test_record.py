"""The record as the guard reads it."""

import base64
import bz2
import json
from typing import Any

import pytest

from controllers.guard.record import KINDS, Declared, read_record
from names import annotations
from tests.support.controllers.guard.examples import entry, files, secret

NAME = ("ConfigMap", "files")
KEY = "ConfigMap.files"


def test_entries_name_kind_and_object() -> None:
    record = read_record([secret({KEY: entry(files(), "data.a", "spec"), "Service.dev-slurm.a": "", "Pod.x": "", "": ""})])
    assert set(record.entries) == {NAME, ("Service", "dev-slurm.a")}
    assert record.declared(NAME) == Declared(files(), (("data", "a"), ("spec",)))
    assert record.declared(("ConfigMap", "others")) is None
    assert record.secret_of(("ConfigMap", "others")) is None


def test_all_secrets_of_the_record_count() -> None:
    second = secret({"Service.a": ""}, "dev-deployed-2")
    record = read_record([second, secret({KEY: entry(files())})])
    assert set(record.entries) == {NAME, ("Service", "a")}
    assert record.secret_of(("Service", "a")) is second


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_entry_of_an_earlier_version_is_not_compressed() -> None:
    plain = encoded(json.dumps({"manifest": files(), "ignored": ["data.a"]}))
    assert plain != entry(files(), "data.a")
    assert read_record([secret({KEY: plain})]).declared(NAME) == Declared(files(), (("data", "a"),))


COMPRESSED = base64.b64decode(entry(files()))
GARBAGE: dict[str, str] = {
    "no-json": encoded("{"),
    "no-base64": "a",
    "no-text": base64.b64encode(b"\xff\xfe").decode(),
    "compressed-and-cut": base64.b64encode(COMPRESSED[:-9]).decode(),
    "compressed-and-damaged": base64.b64encode(COMPRESSED[:20] + bytes(9) + COMPRESSED[29:]).decode(),
    "compressed-and-no-json": base64.b64encode(bz2.compress(b"{")).decode(),
    "no-manifest": encoded("{}"),
    "manifest-is-a-text": entry("text"),
    "empty-manifest": entry({}),
    "metadata-is-a-text": entry({"kind": "ConfigMap", "metadata": "text"}),
    "another-name": entry({"kind": "ConfigMap", "metadata": {"name": "others"}}),
    "another-kind": entry({"kind": "Secret", "metadata": {"name": "files"}}),
}


@pytest.mark.parametrize("value", GARBAGE.values(), ids=GARBAGE)
def test_entry_that_cannot_be_read_is_an_error_of_its_own_and_of_no_other(value: str) -> None:
    record = read_record([secret({KEY: value, "Service.a": entry({"kind": "Service", "metadata": {"name": "a"}})})])
    with pytest.raises(ValueError, match=f"entry {KEY} of Secret dev-deployed "):
        record.declared(NAME)
    assert record.declared(("Service", "a")) is not None


def test_secret_that_is_being_deleted_guards_nothing() -> None:
    assert read_record([secret({KEY: entry(files())}, deletion_timestamp="2026-11-23T03:00:00Z")]).entries == {}


PAUSES: dict[str, tuple[dict[str, str], bool]] = {
    "none": ({}, False),
    "other": ({"a": "b"}, False),
    "paused": ({annotations.GUARD: "paused"}, True),
    "empty": ({annotations.GUARD: ""}, True),
}


@pytest.mark.parametrize(("annotations", "holds"), PAUSES.values(), ids=PAUSES)
def test_annotation_on_any_secret_of_the_record_pauses_all(annotations: dict[str, str], holds: bool) -> None:
    record = read_record([secret({}, "dev-deployed-2", annotations=annotations), secret({KEY: ""})])
    assert record.is_paused is holds


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_watched_by_their_metadata_only(kind: str) -> None:
    resource: Any = KINDS[kind]
    assert (resource.kind, resource.is_metadata_only, resource.namespaced) == (kind, True, True)
