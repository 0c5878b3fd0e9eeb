"""Generations of keys: one more in the config makes a new value, and nothing else does.

Each generation is a random value of its own and the older ones stay in the stack's state: with deletion protection a value may neither go
nor be replaced, and a rotation must still be one change of the config. The first has the plain name, so that older stacks show no change.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def newest(name: str, generation: int, make: Callable[[str], T]) -> T:
    """Makes the values of all generations, called after `name`, and gives the newest."""
    return [make(name if each == 1 else f"{name}-{each}") for each in range(1, generation + 1)][-1]


def annotations(**generations: int) -> dict[str, str]:
    """Annotations of a pod that reads keys only as it starts: with a new generation it is another pod. The first leaves no mark."""
    return {f"slipway.dev/{key}-generation": str(number) for key, number in generations.items() if number > 1}
