"""Random values have the provider's shapes, and the same inputs name the same kept value."""

import base64
import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import random_values
from engine.faults import SlipwayError


def make(kind: str, inputs: dict[str, Any], seed: str = "seed") -> dict[str, Any]:
    type_ = f"random:index/{kind[0].lower()}{kind[1:]}:{kind}"
    return random_values.outputs(type_, inputs, random_values.make(type_, inputs, random_values.placeholder(seed)))


def test_bytes_are_given_in_base64_and_hex() -> None:
    made = make("RandomBytes", {"length": 1024})
    assert len(base64.b64decode(made["base64"])) == 1024
    assert bytes.fromhex(made["hex"]) == base64.b64decode(made["base64"])


def test_id_has_its_prefix_in_every_form() -> None:
    made = make("RandomId", {"byteLength": 4, "prefix": "p-"})
    assert re.fullmatch(r"p-[0-9a-f]{8}", made["hex"])
    assert made["dec"] == f"p-{int(made['hex'][2:], 16)}"


def test_uuid_is_a_version_4() -> None:
    assert uuid.UUID(make("RandomUuid", {})["result"]).version == 4


@given(st.integers(-50, 50), st.integers(0, 100), st.text())
def test_integer_is_within_its_bounds(low: int, span: int, seed: str) -> None:
    assert low <= make("RandomInteger", {"min": low, "max": low + span}, seed)["result"] <= low + span


@given(st.integers(8, 64), st.integers(0, 4), st.text())
def test_password_has_its_length_and_the_least_of_each_class(length: int, least: int, seed: str) -> None:
    inputs = {"length": length, "minUpper": least, "minNumeric": least, "special": False}
    made = make("RandomPassword", inputs, seed)["result"]
    assert len(made) == length
    assert re.fullmatch(r"[A-Za-z0-9]*", made)
    assert sum(letter.isupper() for letter in made) >= least
    assert sum(letter.isdigit() for letter in made) >= least


def test_special_letters_can_be_chosen() -> None:
    assert set(
        make("RandomString", {"length": 30, "overrideSpecial": "%", "upper": False, "lower": False, "numeric": False})["result"]
    ) == {"%"}


def test_a_type_that_is_not_covered_names_the_cli() -> None:
    with pytest.raises(SlipwayError, match="RandomPet is made by the Pulumi CLI only"):
        make("RandomPet", {})


def test_other_inputs_are_another_value_and_names_are_fit_for_a_secret() -> None:
    keys = {random_values.key("random:index/randomBytes:RandomBytes", name, {"length": size}) for name in ("a", "a/b c") for size in (1, 2)}
    assert len(keys) == 4
    assert all(re.fullmatch(r"[-_.a-zA-Z0-9]+", key) for key in keys)
