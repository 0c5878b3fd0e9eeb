"""The paths of `kubectl wait` and of the Pulumi provider, as far as waits use them."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standalone.faults import StandaloneError
from standalone.jsonpath import parse

OBJECT: dict[str, Any] = {
    "metadata": {"labels": {"a.b/c": "x"}},
    "status": {
        "phase": "Ready",
        "zero": 0,
        "gone": None,
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Updated", "status": "False", "why": {"n": 3}}],
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param("{.status.phase}", ["Ready"], id="field"),
        pytest.param(".status.phase", ["Ready"], id="without-braces"),
        pytest.param("status.phase", ["Ready"], id="without-a-dot"),
        pytest.param("{$.status.phase}", ["Ready"], id="from-the-root"),
        pytest.param("{.status.zero}", [0], id="zero-is-there"),
        pytest.param("{.status.gone}", [], id="null-is-not"),
        pytest.param("{.status.nothing.below}", [], id="missing-on-the-way"),
        pytest.param("{.status.phase.below}", [], id="text-has-no-fields"),
        pytest.param("{.status.conditions[0].type}", ["Ready"], id="position"),
        pytest.param("{.status.conditions[7].type}", [], id="position-beyond"),
        pytest.param("{.status.conditions[*].type}", ["Ready", "Updated"], id="all"),
        pytest.param('{.status.conditions[?(@.type=="Updated")].status}', ["False"], id="filter"),
        pytest.param("{.status.conditions[?(@.type == 'Ready')].status}", ["True"], id="filter-in-single-quotes"),
        pytest.param("{.status.conditions[?(@.why.n==3)].type}", ["Updated"], id="filter-by-a-number-deeper"),
        pytest.param('{.status.conditions[?(@.type=="Other")].status}', [], id="filter-that-nothing-meets"),
        pytest.param("{.metadata.labels['a.b/c']}", ["x"], id="quoted-name"),
        pytest.param(r"{.metadata.labels.a\.b/c}", None, id="slash-needs-quotes"),
        pytest.param("{..phase}", None, id="descent"),
        pytest.param("{.status.conditions[0:1]}", None, id="slice"),
        pytest.param("{.status.conditions[?(@.n>3)]}", None, id="comparison"),
    ],
)
def test_path_leads_to_its_values_or_is_refused(path: str, found: list[Any] | None) -> None:
    if found is None:
        with pytest.raises(StandaloneError, match="cannot be followed"):
            parse(path)
    else:
        assert parse(path).find(OBJECT) == found


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_a_clear_refusal(text: str) -> None:
    with contextlib.suppress(StandaloneError):
        parse(text).find(OBJECT)
