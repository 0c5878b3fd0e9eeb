"""The text format, read back by Prometheus' own parser."""

from hypothesis import given
from hypothesis import strategies as st

from programs.metrics.text import OTHER, Bounded, Family, Histogram, largest, render
from tests.support.programs.metrics.recorded import samples


@given(st.dictionaries(st.text(st.characters(exclude_characters="\r", exclude_categories=("Cs",)), min_size=1), st.integers(0, 10**12)))
def test_any_label_value_comes_back_as_it_was(values: dict[str, int]) -> None:
    text = render([Family("m", 'a help with \\ and\nmore than "one" line', ("l",), {(value,): amount for value, amount in values.items()})])
    assert samples(text) == {("m", (("l", value),)): amount for value, amount in values.items()}


def test_family_without_series_is_left_out() -> None:
    assert render([Family("m", "help", ("l",), {})]) == ""


def test_numbers_are_exact() -> None:
    assert render([Family("m", "h", (), {(): 0.1})]).endswith("m 0.1\n")
    assert render([Family("m", "h", (), {(): 1e15})]).endswith("m 1000000000000000\n")


def test_histogram_is_cumulative() -> None:
    made = Histogram("h", "help", ("l",), (1, 5))
    for amount in (0.5, 1, 3, 100):
        made.observe(("a",), amount)
    found = samples(made.render())
    buckets = [found["h_bucket", (("l", "a"), ("le", bound))] for bound in ("1", "5", "+Inf")]
    assert (buckets, found["h_sum", (("l", "a"),)], found["h_count", (("l", "a"),)]) == ([2, 3, 4], 104.5, 4)


def test_first_values_keep_their_names() -> None:
    bounded = Bounded(2)
    assert [bounded(value) for value in ("a", "b", "c", "a", "b", "d")] == ["a", "b", OTHER, "a", "b", OTHER]


def test_largest_are_chosen_in_a_fixed_order() -> None:
    assert largest({"b": 1, "a": 1, "c": 2}, 2) == {"a", "c"}
