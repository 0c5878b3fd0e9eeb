"""Pulumi.yaml, stack files and `--config` are read as the Pulumi CLI reads them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standalone import project
from standalone.faults import StandaloneError

ABOUT = "name: demo\nruntime: python\n"


def load(tmp_path: Path, stack_file: str, *overrides: str, about: str = ABOUT) -> dict[str, str]:
    (tmp_path / "Pulumi.yaml").write_text(about)
    (tmp_path / "Pulumi.dev.yaml").write_text(stack_file)
    return dict(project.load(tmp_path, "dev", overrides).config)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param("hello", "hello", id="text"),
        pytest.param("true", "true", id="bool"),
        pytest.param("7", "7", id="integer"),
        pytest.param("1:00:00", "1:00:00", id="sexagesimal-is-text"),
        pytest.param("yes", "yes", id="yes-is-text"),
        pytest.param("on", "on", id="on-is-text"),
        pytest.param("2026-01-31", "2026-01-31", id="date-is-text"),
        pytest.param("'007'", "007", id="quoted"),
        pytest.param("{a: [1, x, true], b: 0.5}", '{"a": [1, "x", true], "b": 0.5}', id="object-as-json"),
    ],
)
def test_values_reach_the_program_as_the_cli_gives_them(tmp_path: Path, given: str, text: str) -> None:
    assert load(tmp_path, f"config:\n  demo:key: {given}\n") == {"demo:key": text}


def test_defaults_and_short_keys_get_the_project_as_namespace(tmp_path: Path) -> None:
    about = ABOUT + "config:\n  one:\n    type: integer\n    default: 1\n  two:\n    type: string\n  aws:region: us-east-2\n"
    assert load(tmp_path, "config:\n  two: b\n", about=about) == {"demo:one": "1", "demo:two": "b", "aws:region": "us-east-2"}


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        pytest.param("cluster", ["cluster"], id="key"),
        pytest.param("cluster.a.b", ["cluster", "a", "b"], id="nested"),
        pytest.param("cluster.nodeSets[0].size", ["cluster", "nodeSets", 0, "size"], id="index"),
        pytest.param('slipway:cluster.labels["a.b/c"]', ["slipway:cluster", "labels", "a.b/c"], id="quoted"),
        pytest.param("a[0][12]", ["a", 0, 12], id="nested-lists"),
    ],
)
def test_property_paths(path: str, steps: list[str | int]) -> None:
    assert project.parse_path(path) == steps


@pytest.mark.parametrize("path", ["", ".", "a..b", "a.", "[0]", "a[", "a]", "a[-1]", "a[x]", 'a["b]'])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(StandaloneError, match="not a property path"):
        project.parse_path(path)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        pytest.param("cluster.sets[0].size=3", {"sets": [{"size": 3}], "name": "x"}, id="replaces"),
        pytest.param("cluster.sets[1].size=4", {"sets": [{"size": 1}, {"size": 4}], "name": "x"}, id="appends"),
        pytest.param('cluster.sets[1]={"size":5}', {"sets": [{"size": 1}, {"size": 5}], "name": "x"}, id="json-object"),
        pytest.param("cluster.sets=[]", {"sets": [], "name": "x"}, id="json-list"),
        pytest.param("slipway:cluster.name=true", {"sets": [{"size": 1}], "name": True}, id="bool"),
        pytest.param("cluster.name=0123", {"sets": [{"size": 1}], "name": "0123"}, id="leading-zero-is-text"),
        pytest.param("cluster.name=1:00", {"sets": [{"size": 1}], "name": "1:00"}, id="time-is-text"),
        pytest.param("cluster.name=a=b", {"sets": [{"size": 1}], "name": "a=b"}, id="equals-in-value"),
        pytest.param("cluster.new.deep[0]=1", {"sets": [{"size": 1}], "name": "x", "new": {"deep": [1]}}, id="makes-what-is-missing"),
    ],
)
def test_overrides_are_typed_and_placed_as_config_path_does(override: str, expected: dict[str, Any]) -> None:
    config: dict[str, Any] = {"slipway:cluster": {"sets": [{"size": 1}], "name": "x"}}
    project.set_path(config, override, "slipway")
    assert config == {"slipway:cluster": expected}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        pytest.param("cluster.sets[2].size=1", "past the end", id="gap"),
        pytest.param("cluster.name.deep=1", "needs an object, found str", id="into-text"),
        pytest.param("cluster[0]=1", "needs a list, found dict", id="index-of-object"),
        pytest.param("cluster.sets={oops", "not JSON", id="bad-json"),
        pytest.param("cluster.name", "expected KEY.PATH=VALUE", id="no-value"),
    ],
)
def test_an_override_that_does_not_fit_is_named(override: str, words: str) -> None:
    config: dict[str, Any] = {"slipway:cluster": {"sets": [{"size": 1}], "name": "x"}}
    with pytest.raises(StandaloneError, match=words) as caught:
        project.set_path(config, override, "slipway")
    assert override in str(caught.value)


@given(st.dictionaries(st.text(st.characters(categories=["L", "N"]), min_size=1), st.integers() | st.booleans(), min_size=1, max_size=4))
def test_any_value_set_by_path_is_found_again(values: dict[str, Any]) -> None:
    config: dict[str, Any] = {}
    for key, value in values.items():
        project.set_path(config, f'top["{key}"]={json.dumps(value)}', "p")
    assert config == {"p:top": values}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("config:\n  a: [1\n  b: 2\n", r"Pulumi\.dev\.yaml:3:4: expected", id="broken-yaml-with-line"),
        pytest.param("config:\n  a: 1\n  a: 2\n", r"Pulumi\.dev\.yaml:3:3: \"a\" is said twice", id="key-said-twice"),
        pytest.param("config: [a]\n", "expected `key: value` lines", id="list-for-mapping"),
        pytest.param("config:\n  demo:o:\n    list: [{secure: v1:abc}]\n", r"demo:o\.list\[0\] is encrypted.*pulumi up", id="encrypted"),
        pytest.param("environment: [prod]\n", "Pulumi ESC", id="environment"),
    ],
)
def test_a_bad_stack_file_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(StandaloneError, match=words):
        load(tmp_path, text)


def test_an_unknown_stack_lists_the_ones_there_are(tmp_path: Path) -> None:
    load(tmp_path, "config: {}\n")
    (tmp_path / "Pulumi.h100.yaml").write_text("")
    with pytest.raises(StandaloneError, match=r'called "h10"\. Did you mean "h100"\? There are: dev, h100'):
        project.load(tmp_path, "h10")


def test_outside_a_project_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(StandaloneError, match=r"Pulumi\.yaml: no such file"):
        project.load(tmp_path, "dev")
