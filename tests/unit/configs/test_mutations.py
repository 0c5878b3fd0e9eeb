"""A mistake anywhere in an example stack file is told where it is, whatever it is; see mutations.py for how they are made."""

import pytest

from configs.faults import ConfigFaults
from configs.load import load_cluster
from tests.support.configs.stacks import ROOT
from tests.unit.configs.mutations import FILES, Mutation, mutations, stack

ALL = mutations()


def _is_told(path: str, told: tuple[str, ...]) -> bool:
    """At one of the paths or below it. A key that is no name of a key is told at the mapping that it stands in."""
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in told)


@pytest.mark.parametrize("mutation", [pytest.param(each, id=each.id) for each in ALL])
def test_mistake_is_told_at_its_place(mutation: Mutation) -> None:
    with pytest.raises(ConfigFaults) as caught:
        load_cluster(mutation.raw(), ROOT, "Pulumi.x.yaml")
    paths = [fault.path for fault in caught.value.faults]
    assert any(_is_told(path, mutation.told) for path in paths), str(caught.value)
    assert not any(jargon in str(caught.value) for jargon in ("Input should", "validation error", "pydantic", "type="))


def test_there_are_many_mistakes_of_many_kinds() -> None:
    """The contract of issue 13: 300 at least. No two have a name in common."""
    assert len(ALL) >= 300
    assert len({each.id for each in ALL}) == len(ALL)
    assert {each.file for each in ALL} == {*FILES}
    assert len({each.kind for each in ALL}) >= 15


@pytest.mark.parametrize("file", FILES)
def test_file_without_a_mistake_is_accepted(file: str) -> None:
    assert load_cluster(stack(file), ROOT, "Pulumi.x.yaml")
