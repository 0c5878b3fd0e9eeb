"""Objects by key and by the values of index functions. Decides nothing."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from controllers.runtime.structs import Key

T = TypeVar("T")

Indexer = Callable[[T], Iterable[Hashable]]
"""The values under which an object is found: none, one or several."""


class Store(Generic[T]):
    """A local copy of objects. Objects are frozen; callers must not change the collections."""

    def __init__(self, indexes: Mapping[str, Indexer[T]]) -> None:
        self._objects: dict[Key, T] = {}
        self._indexers = dict(indexes)
        # A dict of None is a set that keeps its order: the same history gives the same answers.
        self._indexes: dict[str, dict[Hashable, dict[Key, None]]] = {name: {} for name in indexes}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> T | None:
        """One object."""
        return self._objects.get(key)

    def values(self) -> Collection[T]:
        """All objects; a view that changes as they do."""
        return self._objects.values()

    def keys(self) -> Collection[Key]:
        """The keys of all objects; a view that changes as they do."""
        return self._objects.keys()

    def by_index(self, index: str, value: Hashable) -> list[T]:
        """The objects for which the index function returned this value."""
        return [self._objects[key] for key in self._indexes[index].get(value, ())]

    def put(self, key: Key, new: T | None) -> None:
        """Sets an object; None removes it."""
        old = self._objects.get(key)
        for name, indexer in self._indexers.items():
            before = set(indexer(old)) if old is not None else set[Hashable]()
            after = set(indexer(new)) if new is not None else set[Hashable]()
            if before != after:
                self._reindex(self._indexes[name], key, before, after)
        if new is not None:
            self._objects[key] = new
        else:
            self._objects.pop(key, None)

    @staticmethod
    def _reindex(index: dict[Hashable, dict[Key, None]], key: Key, before: set[Hashable], after: set[Hashable]) -> None:
        for value in before - after:
            del index[value][key]
            if not index[value]:
                del index[value]
        for value in after - before:
            index.setdefault(value, {})[key] = None
