from hypothesis import given
from hypothesis import strategies as st

from controllers.runtime.store import Store

Value = frozenset[int]
HISTORY = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.frozensets(st.integers(min_value=0, max_value=4))))


@given(HISTORY)
def test_index_is_what_a_search_would_find(history: list[tuple[str, Value | None]]) -> None:
    store: Store[Value] = Store({"member": lambda item: item, "size": lambda item: [len(item)] if item else []})
    plain: dict[tuple[str, str], Value] = {}
    for name, value in history:
        key = ("n", name)
        store.put(key, value)
        plain.pop(key, None)
        if value is not None:
            plain[key] = value
        for number in range(6):
            assert sorted(map(sorted, store.by_index("member", number))) == sorted(sorted(one) for one in plain.values() if number in one)
            assert len(store.by_index("size", number)) == sum(len(one) == number for one in plain.values() if one)
    assert dict(zip(store.keys(), store.values(), strict=True)) == plain
    assert len(store) == len(plain)
