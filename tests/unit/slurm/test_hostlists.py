import pytest
from ClusterShell.NodeSet import NodeSet as Reference  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import given
from hypothesis import strategies as st

from slurm.hostlists import HostlistError, expand, fold

names = st.lists(st.builds("{}-{}".format, st.sampled_from(["gpu", "cpu", "a-b", "big2"]), st.integers(0, 300)), max_size=60)


@given(names)
def test_folded_names_expand_to_themselves(each: list[str]) -> None:
    assert sorted(set(expand(fold(each)))) == sorted(set(each))
    assert len(expand(fold(each))) == len(set(each))


@given(names.filter(bool))
def test_another_program_reads_the_same_names(each: list[str]) -> None:
    assert set(Reference(fold(each))) == set(each)


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 20)), min_size=1, max_size=5))
def test_ranges_of_another_program_are_read(ranges: list[tuple[int, int]]) -> None:
    text = str(Reference(",".join(f"n[{first}-{first + more}]" for first, more in ranges)))
    assert set(expand(text)) == set(Reference(text))


@pytest.mark.parametrize(
    ("each", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param(["gpu-7"], "gpu-7", id="one"),
        pytest.param(["gpu-2", "gpu-0", "gpu-1", "gpu-0"], "gpu-[0-2]", id="range-each-once"),
        pytest.param(["gpu-0", "gpu-2", "gpu-10", "gpu-11"], "gpu-[0,2,10-11]", id="gaps"),
        pytest.param(["b-1", "a-1", "a-0"], "a-[0-1],b-1", id="prefixes"),
        pytest.param(["n1", "n01"], "n01,n1", id="padding-stays-apart"),
        pytest.param(["login"], "login", id="without-a-number"),
    ],
)
def test_fold(each: list[str], text: str) -> None:
    assert fold(each) == text


@pytest.mark.parametrize(
    ("text", "each"),
    [
        pytest.param("n[08-11]", ["n08", "n09", "n10", "n11"], id="padded"),
        pytest.param("a[1,3-4]b,c", ["a1b", "a3b", "a4b", "c"], id="suffix"),
    ],
)
def test_expand(text: str, each: list[str]) -> None:
    assert expand(text) == each


@pytest.mark.parametrize("text", ["n[1-", "n[1]]", "n[a-b]", "n[5-1]", "n[0-99999999]", "a,", "n[1][2]"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(HostlistError):
        expand(text)
