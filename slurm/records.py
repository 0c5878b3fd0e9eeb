"""Frozen value classes without the import of `dataclasses`, which costs each start and stop of a worker 15 ms.

Type checkers treat a record as a frozen dataclass. Use a dataclass wherever start time does not matter.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar, dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def record(cls: type[T]) -> type[T]: ...
else:

    def record(cls: type) -> type:
        """Fields are the class's annotations in their order; a value in the class is a default. Equal are records of one class alone."""
        names = tuple(cls.__annotations__)
        known = {name: vars(cls)[name] for name in names if name in vars(cls)}
        every = frozenset(names)

        def __init__(self, *values, **more):  # noqa: N807
            given = {**known, **dict(zip(names, values, strict=False)), **more}
            if len(values) > len(names) or given.keys() != every or (more and not more.keys().isdisjoint(names[: len(values)])):
                named = ", ".join(more) or "no names"
                raise TypeError(f"{cls.__name__} has the fields {', '.join(names)}; got {len(values)} values and {named}")
            vars(self).update(given)

        def values(self):
            return tuple([getattr(self, name) for name in names])

        def refuse(*_):
            raise AttributeError(f"a {cls.__name__} cannot be changed")

        cls.__init__ = __init__
        cls.__match_args__ = names
        cls.__eq__ = lambda self, other: self is other or (values(self) == values(other) if type(other) is cls else NotImplemented)
        cls.__hash__ = lambda self: hash((cls, values(self)))
        cls.__repr__ = lambda self: f"{cls.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
        cls.__setattr__ = cls.__delattr__ = refuse
        return cls
