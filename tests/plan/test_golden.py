"""Golden plans show every change: of a value, a key, an item or an order, in any resource of both example stacks."""

import difflib
import functools
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from engine.plan import as_json
from tests.plan.examples import plan_of
from tests.plan.folding import ABSENT, Part, exact, fold, prototype
from tests.plan.golden import Folds, References, fold_object, folds_of, object_of, render
from tests.plan.golden_yaml import WIDTH, yaml_of
from tests.support.configs import golden
from tests.support.configs.stacks import EXAMPLES

Path = tuple[str | int, ...]
Edit = Callable[[Any, Any], None]
VALUES = some.recursive(
    some.sampled_from([None, True, False, 0, 1, 1.0, "", "0", "a", "<own pods>"]),
    lambda inner: some.lists(inner, max_size=2) | some.dictionaries(some.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
PARTS = some.dictionaries(some.sampled_from("abc"), VALUES, max_size=3)


def test_a_part_shows_what_it_has_beside_others_and_what_it_lacks() -> None:
    proto = prototype([{"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 4}}])
    assert proto == {"a": {"b": 1, "c": 2}}
    assert fold({"a": {"b": 4}, "d": 3}, proto) == {"a": {"b": 4, "c": ABSENT}, "d": 3}


def unfold(folded: Any, proto: Any) -> Any:
    """What `fold` folded."""
    if not isinstance(folded, dict) or not isinstance(proto, dict):
        return cast(Any, folded)
    part, common = cast(Part, folded), cast(Part, proto)
    both = common | {key: unfold(inner, common.get(key)) for key, inner in part.items()}
    return {key: inner for key, inner in both.items() if inner != ABSENT}


@given(some.lists(PARTS, max_size=3), PARTS)
def test_a_folded_part_holds_all_of_it(others: list[Part], part: Part) -> None:
    proto = prototype([*others, part])
    assert exact(unfold(fold(part, proto), proto)) == exact(part)


def test_the_mark_of_a_missing_key_is_no_value() -> None:
    with pytest.raises(ValueError, match="marks a key that is missing"):
        fold({"a": ABSENT}, {})


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all that a value holds."""
    items = cast(Part, value).items() if isinstance(value, dict) else enumerate(cast(list[Any], value)) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def edited(value: Any, path: Path, edit: Edit) -> Any:
    """A copy of a value with an edit of the mapping or list that holds what is at the path."""
    key, *below = path
    holder: Any = dict(cast(Part, value)) if isinstance(value, dict) else list(value)
    if below:
        holder[key] = edited(holder[key], tuple(below), edit)
    else:
        edit(holder, key)
    return holder


def change(holder: Any, key: Any) -> None:
    value = holder[key]
    holder[key] = f"{value}z" if isinstance(value, str) else not value if isinstance(value, bool) else str(value)


def remove(holder: Any, key: Any) -> None:
    del holder[key]


def add_beside(holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder["added"] = holder[key]
    else:
        holder.insert(key, holder[key])


def swap(holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder[key - 1], holder[key] = holder[key], holder[key - 1]


EDITS = (change, remove, add_beside, swap)
REQUIRED = ("custom", "inputs", "name", "type", "urn")
"""What every resource has: it can change, but not go."""


def is_possible(path: Path, edit: Edit) -> bool:
    """False for what no plan has: a resource without a name, and an order or doublets in the set of dependencies."""
    top, *below = path
    return edit in (change, remove) if top == "dependencies" else edit is not remove or bool(below) or top not in REQUIRED


@functools.cache
def prepared(stack: str) -> tuple[References, Folds, list[tuple[Part, Path, Edit]]]:
    """A stack's names and prototypes, and every edit of its resources."""
    plan = as_json(plan_of(stack))
    names = References(plan)
    folds = folds_of([object_of(each, names) for each in plan["resources"]])
    edits = [(each, path, edit) for each in plan["resources"] for path in paths(each) for edit in EDITS if is_possible(path, edit)]
    return names, folds, edits


@functools.cache
def rendered(stack: str) -> dict[str, str]:
    return render(as_json(plan_of(stack)))


def shown(resource: Part, names: References, folds: Folds) -> str:
    """What the files show of a resource."""
    try:
        each = object_of(resource, names)
        return exact([each.group, each.name, fold_object(each, folds)])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return f"nothing, as this is no such resource: {error!r}"


@pytest.mark.parametrize("stack_name", EXAMPLES)
@settings(max_examples=100)
@given(data=some.data())
def test_every_change_of_a_resource_is_shown(stack_name: str, data: some.DataObject) -> None:
    """While the prototypes are the same. They are in the files too, so their change shows as well."""
    names, folds, edits = prepared(stack_name)
    resource, path, edit = edits[data.draw(some.integers(0, len(edits) - 1))]
    after = edited(resource, path, edit)
    is_changed = exact(after) != exact(resource)
    assert (shown(after, names, folds) != shown(resource, names, folds)) == is_changed, f"{edit.__name__} {path} of {resource['urn']}"


def test_prototypes_are_shown(stack: str) -> None:
    _, folds, _ = prepared(stack)
    files = {name: yaml.safe_load(text) for name, text in rendered(stack).items()}
    common = files["common.yaml"]
    named = {"metadata": folds.metadata, "pod": folds.pod, "container": folds.container, "panels": folds.panels, **folds.lists}
    assert {key: common[key] for key in named} == named
    assert {name: unfold(each, folds.container) for name, each in common["containers"].items()}.items() <= folds.containers.items()
    for group, proto in folds.groups.items():
        head = files[f"{group}.yaml"].get("most objects", {})
        assert {**head, "pulumi": head.get("pulumi", {}).keys()} == {**proto, "pulumi": proto.get("pulumi", {}).keys()}


def test_a_further_node_set_adds_lines_and_changes_none() -> None:
    plan = as_json(plan_of("dev"))
    text = json.dumps([each for each in plan["resources"] if each["name"] == "dev-cpu"])
    more = json.loads(text.replace("dev-cpu", "dev-more").replace(': "cpu"', ': "more"'))
    before, after = rendered("dev"), render({**plan, "resources": [*plan["resources"], *more]})
    lines = {name: list(difflib.ndiff(before[name].splitlines(), after[name].splitlines())) for name in before}
    assert {name for name, diff in lines.items() if any(line[0] == "+" for line in diff)} == {"Component.yaml", "NodeSet.yaml"}
    assert [line for diff in lines.values() for line in diff if line[0] == "-"] == []


def test_two_resources_of_one_kind_and_name_are_shown_by_urn() -> None:
    plan = as_json(plan_of("dev"))
    [role] = [each for each in plan["resources"] if each["type"].endswith(":Role") and each["name"] == "dev-guard"]
    other = {**role, "urn": role["urn"].replace("index:Guard", "index:Other")}
    objects = [object_of(each, References({**plan, "resources": [role, other]})) for each in (role, other)]
    assert [each.name for each in objects] == [role["urn"], other["urn"]]


def test_a_file_too_many_fails_until_it_is_removed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "GOLDEN", tmp_path)
    monkeypatch.setenv("SLIPWAY_GOLDEN", "write")
    golden.assert_golden("plan/dev", {"Job.yaml": "a\n", "Role.yaml": "b\n"})
    monkeypatch.delenv("SLIPWAY_GOLDEN")
    with pytest.raises(AssertionError, match=r"Role.yaml of tests/golden/plan/dev changed.*\n.*\n.*\n.*\n *-b"):
        golden.assert_golden("plan/dev", {"Job.yaml": "a\n"})
    monkeypatch.setenv("SLIPWAY_GOLDEN", "write")
    golden.assert_golden("plan/dev", {"Job.yaml": "a\n"})
    assert [file.name for file in (tmp_path / "plan" / "dev").iterdir()] == ["Job.yaml"]


def test_long_texts_are_blocks_and_lines_are_short() -> None:
    text = yaml_of({"script": "#!/bin/sh\necho a\n", "words": ["word"] * 100, "same": {"a": [1], "b": None}, "no": "no"})
    assert text.startswith("script: |\n  #!/bin/sh\n  echo a\nwords: [word, ")
    assert text.endswith("same: {a: [1], b: null}\n'no': 'no'\n")
    assert max(map(len, text.splitlines())) <= WIDTH
