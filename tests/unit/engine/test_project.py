"""Pulumi.yaml, stack files and `--config` are read as the Pulumi CLI reads them."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import project
from engine.faults import SlipwayError

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
    with pytest.raises(SlipwayError, match="not a property path"):
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
    with pytest.raises(SlipwayError, match=words) as caught:
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
        pytest.param("config:\n  a: 1\n  a: 2\n", r"Pulumi\.dev\.yaml:3:3: \"a\" is set twice", id="key-twice"),
        pytest.param("config: [a]\n", "expected `key: value` lines", id="list-for-mapping"),
        pytest.param("config:\n  demo:o:\n    list: [{secure: v1:abc}]\n", r"demo:o\.list\[0\] is encrypted.*pulumi up", id="encrypted"),
        pytest.param("environment: [prod]\n", "Pulumi ESC", id="environment"),
    ],
)
def test_a_bad_stack_file_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SlipwayError, match=words):
        load(tmp_path, text)


def test_an_unknown_stack_lists_the_ones_there_are(tmp_path: Path) -> None:
    load(tmp_path, "config: {}\n")
    (tmp_path / "Pulumi.h100.yaml").write_text("")
    with pytest.raises(SlipwayError, match=r'called "h10"\. Did you mean "h100"\? There are: dev, h100'):
        project.load(tmp_path, "h10")


def test_outside_a_project_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(SlipwayError, match=r"Pulumi\.yaml: no such file"):
        project.load(tmp_path, "dev")


BAD_BYTES = [
    pytest.param("config:\n  # Köln\n  a: 1\n".encode("latin-1"), r"Pulumi\.dev\.yaml:2: is not UTF-8", id="latin-1"),
    pytest.param("config: {}\n".encode("utf-16"), r"Pulumi\.dev\.yaml: is UTF-16", id="utf-16"),
    pytest.param("config: {}\n".encode("utf-16-le"), r"Pulumi\.dev\.yaml:1: holds the control character U\+0000", id="utf-16-without-mark"),
    pytest.param(b"config:\n  a: x\0y\n", r"Pulumi\.dev\.yaml:2: holds the control character U\+0000", id="nul"),
    pytest.param(b"config:\n  a: &a [1, *a]\n", r"Pulumi\.dev\.yaml:2:13: \*a is inside &a", id="alias-loop"),
    pytest.param(b"config:\n  a: &a {<<: *a}\n", r"Pulumi\.dev\.yaml:2:14: \*a is inside &a", id="merge-loop"),
    pytest.param(
        b"config:\n  a: &0 [x]\n" + b"".join(b"  b%d: &%d [*%d, *%d, *%d]\n" % (at, at, at - 1, at - 1, at - 1) for at in range(1, 40)),
        r"Pulumi\.dev\.yaml:\d+:\d+: is too large when its aliases are expanded",
        id="alias-bomb",
    ),
    pytest.param(b"config:\n  a: !!binary aGk=\n", r"Pulumi\.dev\.yaml:2:6: has the tag !!binary", id="binary"),
    pytest.param(b"config:\n  a: !!set {x}\n", r"Pulumi\.dev\.yaml:2:6: has the tag !!set", id="set"),
    pytest.param(b"config:\n  a: !!timestamp 2026-01-01\n", r"2:6: has the tag !!timestamp", id="timestamp"),
    pytest.param(b"config:\n  a: !!python/object:os.system x\n", r"2:6: has the tag !!python/object:os\.system", id="python"),
    pytest.param(b"config:\n  a: !!int x\n", r"Pulumi\.dev\.yaml:2:6: does not match its tag", id="tag-that-lies"),
    pytest.param(b"config:\n  a: " + b"7" * 5000 + b"\n", r"Pulumi\.dev\.yaml:2:6: .*digits", id="number-of-5000-digits"),
    pytest.param(b"config:\n  a: 0x" + b"7" * 5000 + b"\n", r"Pulumi\.dev\.yaml:2:6: .*digits", id="hexadecimal-of-5000-digits"),
    pytest.param(b"config:\n  a: " + b"[" * 100_000, r"Pulumi\.dev\.yaml:2:\d+: is nested too deeply", id="deep-in-brackets"),
    pytest.param(
        b"config:\n" + b"".join(b" " * at + b"a:\n" for at in range(1, 2000)), r":\d+:\d+: is nested too deeply", id="deep-in-lines"
    ),
    pytest.param(b"config:\n  ? [a, b]\n  : 1\n", r"Pulumi\.dev\.yaml:2:5: has a list as a key", id="list-as-key"),
    pytest.param(b"config:\n  {a: 1}: 1\n", r"Pulumi\.dev\.yaml:2:3: has a mapping as a key", id="mapping-as-key"),
    pytest.param(b'config:\n  a: "\\UFFFFFFFF"\n', r"Pulumi\.dev\.yaml: is not YAML", id="escape-of-no-character"),
    pytest.param(b'config:\n  a: "\\ud800"\n', r"Pulumi\.dev\.yaml:2:6: contains half of a character", id="surrogate"),
    pytest.param(b"a: 1\n---\nb: 2\n", r"Pulumi\.dev\.yaml:2:1: but found another document", id="two-documents"),
]


@pytest.mark.parametrize(("data", "words"), BAD_BYTES)
def test_stack_file_that_cannot_be_read_is_one_line_with_its_place(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text(ABOUT)
    (tmp_path / "Pulumi.dev.yaml").write_bytes(data)
    with pytest.raises(SlipwayError, match=words) as caught:
        project.load(tmp_path, "dev")
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 400


def test_mark_at_the_start_of_utf_8_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text(ABOUT)
    (tmp_path / "Pulumi.dev.yaml").write_bytes("config:\n  a: Köln\n".encode("utf-8-sig"))
    assert project.load(tmp_path, "dev").config == {"demo:a": "Köln"}


def test_folder_in_place_of_a_stack_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text(ABOUT)
    (tmp_path / "Pulumi.dev.yaml").mkdir()
    with pytest.raises(SlipwayError, match=r"Pulumi\.dev\.yaml: cannot be read: Is a directory"):
        project.load(tmp_path, "dev")


PIECES = [
    *(
        b"config:",
        b"\n",
        b"  ",
        b"a: ",
        b"- ",
        b"? ",
        b": ",
        b"[",
        b"]",
        b"{",
        b"}",
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!int ",
        b"!!binary ",
        b"!x ",
    ),
    *(
        b"|\n",
        b">",
        b'"',
        b"'",
        b"\\u",
        b"\\U0",
        b"%YAML 9",
        b"%TAG ! x",
        b"---",
        b"...",
        b"\xff",
        b"\0",
        b"\xc3\xa4",
        b"9" * 400,
        b"0x",
        b"!<",
    ),
    *(
        b"~",
        b"1:2",
        b"2026-01-01",
        b"#",
        b",",
        b"@",
        b"`",
        b"\t",
        b"\r",
        b"\xe2\x80\xa8",
        b"main: ",
        b"environment: ",
        b"secure: ",
        b".inf",
    ),
]


@given(
    st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join),
    st.sampled_from(["Pulumi.yaml", "Pulumi.dev.yaml"]),
)
@settings(deadline=None, max_examples=700, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_give_a_project_or_one_line(tmp_path: Path, data: bytes, name: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text(ABOUT)
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (tmp_path / name).write_bytes(data)
    try:
        found = project.load(tmp_path, "dev")
    except SlipwayError as error:
        said = str(error)
    else:
        said = "".join("." for value in found.config.values() if json.dumps(value).startswith('"'))
        assert len(said) == len(found.config)
    assert said.isprintable(), said


@given(st.text(max_size=30), st.text(max_size=30))
@settings(deadline=None, max_examples=500)
def test_any_override_is_taken_or_one_line(path: str, value: str) -> None:
    with contextlib.suppress(SlipwayError):
        project.set_path({}, f"{path}={value}", "p")


@pytest.mark.parametrize(
    "override",
    [
        pytest.param("a=" + "[" * 100_000, id="deep-json"),
        pytest.param("a=" + "[" * 2000 + "]" * 2000, id="deep-json-that-ends"),
        pytest.param("a" + "[0]" * 5000 + "=1", id="deep-path"),
        pytest.param("a[" + "7" * 5000 + "]=1", id="index-of-5000-digits"),
        pytest.param("a={" + '"b":' + "7" * 5000 + "}", id="number-of-5000-digits-in-json"),
    ],
)
def test_override_that_python_cannot_hold_is_one_short_line(override: str) -> None:
    with pytest.raises(SlipwayError) as caught:
        project.set_path({}, override, "p")
    assert len(str(caught.value)) < 400
