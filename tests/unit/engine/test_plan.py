"""Plans as JSON: stable, without secrets; two of them compared as the engine would."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.plan import (
    Difference,
    Plan,
    Resource,
    Secret,
    Unknown,
    as_json,
    compare,
    differences,
    masked,
    revealed,
    secret_texts,
    unknown_path,
)
from tests.support.engine.recorded import Recorder

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MARKED = st.text(alphabet="0123456789abcdef", min_size=16, max_size=16).map(lambda text: f"hush-{text}")


def resource(name: str, type_: str = "kubernetes:core/v1:ConfigMap", aliases: tuple[str, ...] = (), **inputs: Any) -> Resource:
    return Resource(f"urn:pulumi:dev::demo::{type_}::{name}", type_, name, inputs={"metadata": {"name": "x"}, **inputs}, aliases=aliases)


def plan_json(*resources: Resource) -> dict[str, Any]:
    return as_json(Plan("demo", "dev", resources, {}))


@given(st.data())
def test_no_marked_value_is_ever_in_a_plan(data: st.DataObject) -> None:
    hushed = data.draw(st.lists(MARKED, min_size=1, max_size=4))
    holders = st.sampled_from(hushed).map(Secret) | st.sampled_from(hushed).map(lambda text: Secret({"inner": [text]}))
    tree = data.draw(
        st.recursive(holders | JSON, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3))
    )
    made = plan_json(resource("one", tree=tree), resource("two", direct=Secret(hushed[0])))
    text = json.dumps(made)
    assert "hush-" not in text
    assert "[secret]" in text
    assert set(secret_texts({"tree": tree})) <= set(hushed)


@given(JSON)
def test_what_has_no_secret_is_shown_and_kept_as_it_is(value: Any) -> None:
    assert masked(value) == value
    assert revealed(value) == value


@given(JSON, JSON)
def test_differences_are_none_exactly_for_equal_values(old: Any, new: Any) -> None:
    def normal(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        entries = cast(dict[str, Any], value)
        return {key: normal(inner) for key, inner in entries.items() if normal(inner) not in (None, {})}

    assert not list(differences(old, old))
    if type(old) is type(new) is dict and normal(old) != normal(new):
        assert list(differences(old, new))


def test_lists_of_named_things_are_compared_by_name() -> None:
    old = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}
    new = {"containers": [{"name": "b", "image": "2"}, {"name": "a", "image": "1"}]}
    assert list(differences(old, new)) == [Difference(("containers", "[b]", "image"), "1", "2")]


def test_other_lists_are_compared_by_place() -> None:
    assert list(differences({"args": ["a", "b"]}, {"args": ["a", "c", "d"]})) == [
        Difference(("args", "[1]"), "b", "c"),
        Difference(("args", "[2]"), None, "d"),
    ]


@pytest.mark.parametrize(
    ("new", "ops"),
    [
        pytest.param([resource("one", data={"a": "1"})], ["same"], id="same"),
        pytest.param([resource("one", data={"a": "2"})], ["update"], id="changed"),
        pytest.param([resource("one", data={"a": "1"}), resource("two")], ["same", "create"], id="added"),
        pytest.param([], ["delete"], id="removed"),
        pytest.param([resource("renamed", data={"a": "1"})], ["create", "delete"], id="rename-without-alias-replaces"),
        pytest.param(
            [resource("renamed", data={"a": "1"}, aliases=("urn:pulumi:dev::demo::kubernetes:core/v1:ConfigMap::one",))],
            ["same"],
            id="rename-with-alias-keeps",
        ),
        pytest.param([resource("one", data={"a": "1"}, metadata={"name": "other"})], ["replace"], id="new-object-name"),
        pytest.param([resource("one", data={"a": "1"}), resource("p", "pulumi:providers:kubernetes")], ["same"], id="providers-left-aside"),
        pytest.param([replace(resource("one", data={"a": "2"}), options={"ignoreChanges": ["data.a"]})], ["same"], id="ignored-change"),
        pytest.param(
            [replace(resource("one", data={"a": "2"}), options={"ignoreChanges": ["data.b"]})], ["update"], id="change-of-another"
        ),
    ],
)
def test_two_plans_compared(new: list[Resource], ops: list[str]) -> None:
    assert [change.op for change in compare(plan_json(resource("one", data={"a": "1"})), plan_json(*new))] == ops


def test_without_a_saved_plan_everything_is_new(recorded: Recorder) -> None:
    assert {change.op for change in compare(None, as_json(recorded()))} == {"create"}


def test_unknowns_are_found_at_their_path() -> None:
    assert unknown_path({"a": [{"b": 1}, {"c": Unknown()}]}) == "a[1].c"
    assert unknown_path(Secret({"x": Unknown()})) == "x"
    assert unknown_path({"a": [1, "x", None]}) is None


def test_a_recorded_plan_is_stable_and_sorted(recorded: Recorder) -> None:
    texts = {json.dumps(as_json(recorded())) for _ in range(3)}
    assert len(texts) == 1
    urns = [resource["urn"] for resource in as_json(recorded())["resources"]]
    assert urns == sorted(urns)
