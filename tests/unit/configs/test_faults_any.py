"""Whatever a stack file says, loading gives a cluster or faults, never a crash; and what it gives can be rendered."""

import copy
import string
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from configs.faults import ConfigFaults
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.render import users
from configs.render.slurm import render, render_slurmdbd
from slurm.conf import pairs_of
from tests.support.configs.stacks import EXAMPLES, example, places

SLOW = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.dates() | st.binary(max_size=4)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    ["", "gpu", "cpu", "workers", "x-1", "Ä", "a\nb", "/", "/data", "1-0", "1Gi", "UNLIMITED", "{x}", "%s", "\x00", "\u2028"]
)
NAMED = st.sampled_from([*Cluster.model_fields]).map(lambda name: Cluster.model_fields[name].alias or name)


def outcome(raw: Any) -> Cluster | ConfigFaults:
    try:
        return load_cluster(raw, Path("/nowhere"), "Pulumi.any.yaml")
    except ConfigFaults as faults:
        return faults


def assert_sound(result: Cluster | ConfigFaults) -> None:
    if isinstance(result, ConfigFaults):
        lines = str(result).split("\n")
        assert len(lines) == len(result.faults) + 1 > 1
        assert all(line.startswith("  cluster") and line.isprintable() for line in lines[1:])
        assert not any(jargon in str(result) for jargon in ("Input should", "validation error", "pydantic", "type=", "another kind"))
    else:
        texts = {**render(result), "slurmdbd.conf": render_slurmdbd(result)}
        assert all(pairs_of(line) is not None for line in texts["slurm.conf"].splitlines())
        assert all(text.endswith("\n") for text in {**texts, **users.render(result)}.values() if text)


@given(ANY)
@SLOW
def test_anything_gives_faults(raw: Any) -> None:
    result = outcome(raw)
    assert isinstance(result, ConfigFaults)
    assert_sound(result)


@given(
    st.dictionaries(
        NAMED, ANY | st.lists(st.dictionaries(st.sampled_from(["name", "pool", "size", "gpus", "nodeSets", "max"]), ANY)), max_size=9
    )
)
@SLOW
def test_right_keys_with_anything_in_them_give_faults(raw: dict[str, Any]) -> None:
    assert_sound(outcome(raw))


@given(
    st.lists(st.tuples(st.sampled_from(["delete", "rename", "replace", "repeat"]), st.integers(0), ANY | WORDS), min_size=1, max_size=4),
    st.data(),
)
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_example_gives_a_cluster_or_faults(changes: list[tuple[str, int, Any]], data: st.DataObject) -> None:
    raw = example(data.draw(st.sampled_from(EXAMPLES)))
    for verb, seed, value in changes:
        found = places(raw)
        path = found[seed % len(found)] if found else ()
        if not path:
            break
        parent: Any = raw
        for part in path[:-1]:
            parent = parent[part]
        damage(parent, path[-1], verb, value)
    assert_sound(outcome(raw))


def damage(parent: Any, key: Any, verb: str, value: Any) -> None:
    if verb == "delete":
        del parent[key]
    elif verb == "rename" and isinstance(key, str):
        parent[str(value)] = parent.pop(key)
    elif verb == "repeat" and not isinstance(parent, dict):
        parent.append(copy.deepcopy(parent[key]))
    else:
        parent[key] = value


@given(st.text(alphabet=string.printable, max_size=200))
@SLOW
def test_any_yaml_gives_faults(text: str) -> None:
    try:
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return
    assert_sound(outcome(raw))


@given(
    st.dictionaries(st.sampled_from(["MailDomain", "Epilog", "TaskProlog"]), st.text(max_size=30), max_size=2),
    st.lists(st.text(max_size=40), max_size=2),
)
@settings(deadline=None, max_examples=100)
def test_no_text_smuggles_a_key_into_slurm_conf(given_settings: dict[str, str], raw: list[str]) -> None:
    """Whatever is accepted, Slurm reads the keys that were given, and the ones it would read without them."""
    stack = {**example("dev"), "slurm": {"settings": given_settings, "raw": raw}}
    result = outcome(stack)
    if isinstance(result, ConfigFaults):
        return
    keys = [key for line in render(result)["slurm.conf"].splitlines() for key, _ in (pairs_of(line) or [])]
    plain = outcome({**example("dev"), "slurm": {}})
    assert isinstance(plain, Cluster)
    expected = [key for line in render(plain)["slurm.conf"].splitlines() for key, _ in (pairs_of(line) or [])]
    said = [key for line in raw for key, _ in (pairs_of(line) or [])]
    assert sorted(keys) == sorted([*expected, *given_settings, *said])
